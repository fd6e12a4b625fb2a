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
    raise NotImplementedError("Lab 8.4: find_changes()")


class _Finder:
    """Looks for texts in one file. The tolerant form of the file is made once, if at all."""

    def __init__(self, text: str, name: str) -> None:
        raise NotImplementedError("Lab 8.4: _Finder.__init__()")

    def change(self, index: int, edit: Replacement) -> Change:
        raise NotImplementedError("Lab 8.4: _Finder.change()")

    def _tolerant(self, old: str, name: str) -> Iterator[tuple[int, int]]:
        raise NotImplementedError("Lab 8.4: _Finder._tolerant()")

    def _first_spans(self, spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
        raise NotImplementedError("Lab 8.4: _Finder._first_spans()")

    def _many(self, spans: list[tuple[int, int]]) -> str:
        raise NotImplementedError("Lab 8.4: _Finder._many()")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def apply_changes(source: LineEnds, changes: Sequence[Change]) -> str:
    """The original text with the changes in it; everything between them is taken over as it is."""
    raise NotImplementedError("Lab 8.4: apply_changes()")


def edit_bytes(
    data: bytes, edits: Sequence[Replacement], name: str
) -> tuple[bytes, dict[str, object]]:
    """The new bytes, and what a program may want to know about the change. Touches no file."""
    raise NotImplementedError("Lab 8.4: edit_bytes()")


def _read_whole(path: Path, name: str, limits: Limits) -> bytes:
    raise NotImplementedError("Lab 8.6: _read_whole()")


def edit_tool(workspace: Workspace, queue: MutationQueue, limits: Limits) -> Tool:
    raise NotImplementedError("Lab 8.6: edit_tool()")
