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
        raise NotImplementedError("Lab 8.1: Window.note()")


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
    raise NotImplementedError("Lab 8.1: read_window()")


def _skip(file: BinaryIO, count: int) -> int:
    """Go behind `count` lines, and return how many there were to pass."""
    raise NotImplementedError("Lab 8.1: _skip()")


def _note(first: int, last: int) -> str:
    return f"[Lines {first}-{last}. The file goes on: read it with offset={last + 1}]"


def _called(name: str) -> str:
    """repr shows an odd space as what it is."""
    return f"[No file has the name that was given. This one is called {Path(name).name!r}]"


def _line_too_long(name: str, number: int, limits: Limits) -> ToolRefused:
    raise NotImplementedError("Lab 8.1: _line_too_long()")


def read_tool(workspace: Workspace, limits: Limits) -> Tool:
    raise NotImplementedError("Lab 8.6: read_tool()")
