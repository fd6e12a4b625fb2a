"""edit: replace parts of a file, all of them or none.

Everything is found and checked in memory, against the text as it was before the first change. Then
the file is replaced in one step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pi_course.coding_tools.limits import Limits
from pi_course.coding_tools.line_diff import unified_diff
from pi_course.coding_tools.line_ends import LineEnds
from pi_course.coding_tools.mutation_queue import MutationQueue, to_its_end
from pi_course.coding_tools.paths import Workspace
from pi_course.coding_tools.refusal import ToolRefused, stop_if_aborted, told_as
from pi_course.coding_tools.text_file import BOM, decode, open_file
from pi_course.coding_tools.tolerant_match import FoldedText, occurrences
from pi_course.coding_tools.write import replace_file
from pi_course.tool import Tool, ToolContext
from pi_course.tool_result import ToolOutput

SHOWN_MATCHES = 10


class Replacement(BaseModel):
    model_config = ConfigDict(frozen=True)

    old_text: str = Field(
        alias="oldText", description="A text that stands in the file exactly once, as read shows it"
    )
    new_text: str = Field(alias="newText", description="What takes its place")


class EditArguments(BaseModel):
    model_config = ConfigDict(frozen=True)

    path: str = Field(description="The file, from the workspace folder on")
    edits: tuple[Replacement, ...] = Field(
        description="All of them match the file as it is now; they must not overlap"
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What edit `index` does: the span from start to end (with \\n line ends) becomes `new`."""

    index: int
    start: int
    end: int
    new: str
    exact: bool


def find_changes(source: LineEnds, edits: Sequence[Replacement], name: str) -> tuple[Change, ...]:
    """The changes in the order of their places. Raises ToolRefused unless all are possible."""
    if not edits:
        raise ToolRefused(f"{name}: edits is empty: give at least one of oldText and newText")
    finder = _Finder(source.text, name)
    found = [finder.change(index, edit) for index, edit in enumerate(edits)]
    found.sort(key=lambda change: (change.start, change.end))
    for first, second in pairwise(found):
        if second.start < first.end:
            one, other = sorted((first.index, second.index))
            line = _line(source.text, second.start)
            raise ToolRefused(
                f"{name}: edits[{one}] and edits[{other}] overlap in line {line}: make one of them"
            )
    return tuple(found)


class _Finder:
    """Looks for texts in one file. The tolerant form of the file is made once, if at all."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._folded: FoldedText | None = None

    def change(self, index: int, edit: Replacement) -> Change:
        old = edit.old_text.replace("\r\n", "\n")
        new = edit.new_text.replace("\r\n", "\n")
        where = f"{self._name}: edits[{index}]"
        if not old:
            raise ToolRefused(f"{where}.oldText is empty: name the text that is to be replaced")
        exact = self._first_spans((at, at + len(old)) for at in occurrences(self._text, old))
        spans = exact or self._first_spans(self._tolerant(old, f"{where}.oldText"))
        if not spans:
            raise ToolRefused(
                f"{where}.oldText was not found. It must be as in the file, blanks at the start of"
                " lines included: read the file again"
            )
        if len(spans) > 1:
            raise ToolRefused(f"{where}.oldText {self._many(spans)}: add what stands around it")
        start, end = spans[0]
        if self._text[start:end] == new:
            raise ToolRefused(f"{where} changes nothing: newText is what stands there already")
        return Change(index, start, end, new, exact=bool(exact))

    def _tolerant(self, old: str, name: str) -> Iterator[tuple[int, int]]:
        if self._folded is None:
            self._folded = FoldedText(self._text)
        return self._folded.spans(old, name)

    def _first_spans(self, spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
        return list(islice(spans, SHOWN_MATCHES + 1))

    def _many(self, spans: list[tuple[int, int]]) -> str:
        shown = spans[:SHOWN_MATCHES]
        lines = ", ".join(str(_line(self._text, start)) for start, _ in shown)
        count = f"{len(spans)}" if shown == spans else f"more than {SHOWN_MATCHES}"
        return f"was found {count} times (lines {lines})"


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def apply_changes(source: LineEnds, changes: Sequence[Change]) -> str:
    """The original text with the changes in it; everything between them is taken over as it is."""
    pieces: list[str] = []
    done = 0
    for change in changes:
        start, end = source.place(change.start), source.place(change.end)
        pieces += [source.original[done:start], source.fit(change.new, change.start, change.end)]
        done = end
    return "".join([*pieces, source.original[done:]])


def edit_bytes(
    data: bytes, edits: Sequence[Replacement], name: str
) -> tuple[bytes, dict[str, object]]:
    """The new bytes, and what a program may want to know about the change. Touches no file."""
    bom = BOM if data.startswith(BOM) else b""
    source = LineEnds(decode(data[len(bom) :], name, head=data))
    changes = find_changes(source, edits, name)
    edited = apply_changes(source, changes)
    after = bom + edited.encode("utf-8")
    if after == data:
        raise ToolRefused(f"{name}: edits[0] to edits[{len(edits) - 1}] together change nothing")
    return after, {
        "diff": unified_diff(source.text, [(c.start, c.end, c.new) for c in changes], name),
        "bytesBefore": len(data),
        "bytesAfter": len(after),
        "inexact": sorted(change.index for change in changes if not change.exact),
    }


def _read_whole(path: Path, name: str, limits: Limits) -> bytes:
    with open_file(path) as file:
        data = file.read(limits.file_bytes + 1)
    if len(data) > limits.file_bytes:
        raise ToolRefused(
            f"{name}: it is larger than the {limits.file_bytes} bytes that edit takes:"
            " change it with bash"
        )
    return data


def edit_tool(workspace: Workspace, queue: MutationQueue, limits: Limits) -> Tool:
    def edit(arguments: EditArguments) -> ToolOutput:
        name = arguments.path
        with told_as(name):
            name = workspace.spelled(name)
            path = workspace.to_write(name)
            data, details = edit_bytes(_read_whole(path, name, limits), arguments.edits, name)
            replace_file(path, data)
        count = len(arguments.edits)
        return ToolOutput(f"Successfully replaced {count} block(s) in {name}.", details=details)

    async def execute(arguments: EditArguments, context: ToolContext) -> ToolOutput:
        async with queue.turn(workspace.locate(arguments.path)):
            stop_if_aborted(context.signal)
            return await to_its_end(edit, arguments)

    return Tool(
        "edit",
        "Replace parts of a file. Each oldText must stand in it exactly once, blanks and line ends"
        " included. All edits match the file as it is now, and all are made or none.",
        EditArguments,
        execute,
    )
