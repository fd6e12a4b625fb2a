"""read: a window of a text file, exactly as edit will have to match it.

The file is streamed. What lies before the window is counted and dropped, what lies behind it is
not read at all.
"""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, Field

from pi_course.coding_tools.limits import DEFAULT_LIMITS, Limits
from pi_course.coding_tools.mutation_queue import to_its_end
from pi_course.coding_tools.paths import Workspace
from pi_course.coding_tools.refusal import ToolRefused, stop_if_aborted, told_as
from pi_course.coding_tools.text_file import BOM, HEAD_BYTES, decode, open_file
from pi_course.messages import text
from pi_course.tool import Tool, ToolContext
from pi_course.tool_result import ToolOutput

BLOCK_BYTES = 64 * 1024


class ReadArguments(BaseModel):
    model_config = ConfigDict(frozen=True)

    path: str = Field(description="The file, from the workspace folder on")
    offset: int | None = Field(None, ge=1, description="The first line to read, counted from 1")
    limit: int | None = Field(None, ge=1, description="How many lines to read at most")


@dataclass(frozen=True, slots=True)
class Window:
    """Lines `first` to `last` of a file, line ends included."""

    text: str
    first: int
    last: int
    more: bool  # the file goes on behind it

    @property
    def note(self) -> str:
        return _note(self.first, self.last) if self.more else ""


def read_window(
    file: BinaryIO,
    name: str,
    offset: int = 1,
    limit: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    taken: int = 0,
) -> Window:
    """The lines from `offset` on that fit into the limits, together with the window's note.

    A BOM is left out, CRLF is given as LF; nothing else is changed. `name` is for errors, and
    `taken` is how many bytes something else needs that is said beside it.
    """
    head = file.read(HEAD_BYTES)
    file.seek(len(BOM) if head.startswith(BOM) else 0)
    passed = _skip(file, offset - 1)
    most = min(limit or limits.lines, limits.lines)
    lines: list[bytes] = []
    size, more = taken, False
    while line := file.readline(limits.bytes + 2):  # a line that fills the limit, and its CR
        if line.endswith(b"\r\n"):
            line = line[:-2] + b"\n"
        if len(lines) == most or size + len(line) > limits.bytes:
            more = True
            break
        lines.append(line)
        size += len(line)
    if offset > 1 and not lines and not more:
        lines_there = "1 line" if passed == 1 else f"{passed} lines"
        raise ToolRefused(f"{name}: it has {lines_there}, and offset {offset} is behind the end")
    while lines and more and size + 1 + len(_note(offset, offset + len(lines) - 1)) > limits.bytes:
        size -= len(lines.pop())
    if more and not lines:
        raise _line_too_long(name, offset, limits)
    return Window(decode(b"".join(lines), name, head=head), offset, offset + len(lines) - 1, more)


def _skip(file: BinaryIO, count: int) -> int:
    """Go behind `count` lines, and return how many there were to pass."""
    passed, inside = 0, False  # inside: a line has begun that no line end has ended
    while passed < count and (block := file.read(BLOCK_BYTES)):
        ends = block.count(b"\n")
        if passed + ends >= count:
            at = -1
            for _ in range(count - passed):
                at = block.index(b"\n", at + 1)
            file.seek(at + 1 - len(block), os.SEEK_CUR)
            return count
        passed += ends
        inside = not block.endswith(b"\n")
    return passed + 1 if inside else passed


def _note(first: int, last: int) -> str:
    return f"[Lines {first}-{last}. The file goes on: read it with offset={last + 1}]"


def _called(name: str) -> str:
    """repr shows an odd space as what it is."""
    return f"[No file has the name that was given. This one is called {Path(name).name!r}]"


def _line_too_long(name: str, number: int, limits: Limits) -> ToolRefused:
    command = f"sed -n {number}p < {shlex.quote(name)} | head -c 1000"  # a name may begin with -
    return ToolRefused(
        f"{name}: line {number} does not fit into {limits.bytes} bytes, the most that read gives."
        f" Take a part of it with bash: {command}"
    )


def read_tool(workspace: Workspace, limits: Limits) -> Tool:
    def window(arguments: ReadArguments) -> tuple[Window, str]:
        with told_as(arguments.path):
            name = workspace.spelled(arguments.path)
            called = _called(name) if name != arguments.path else ""
            taken = len(called.encode("utf-8")) + 1 if called else 0
            with open_file(workspace.to_read(name)) as file:
                offset = arguments.offset or 1
                found = read_window(file, name, offset, arguments.limit, limits, taken)
            return found, called

    async def execute(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
        stop_if_aborted(context.signal)
        found, called = await to_its_end(window, arguments)
        notes = [note for note in (found.note, called) if note]
        return ToolOutput(
            [text(found.text), *map(text, notes)],
            details={
                "firstLine": found.first,
                "lastLine": found.last,
                "nextOffset": found.last + 1 if found.more else None,
            },
        )

    return Tool(
        "read",
        f"Read a text file. Gives its lines as they are, without numbers: at most {limits.lines}"
        f" lines or {limits.bytes} bytes, then a note with the offset at which to go on.",
        ReadArguments,
        execute,
    )
