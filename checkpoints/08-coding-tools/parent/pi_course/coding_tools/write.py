"""write: put a whole file into the place of the old one, in one step.

Whoever looks sees the old file or the new one and never a half of either, also after a crash.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pi_course.coding_tools.mutation_queue import MutationQueue, to_its_end
from pi_course.coding_tools.paths import Workspace
from pi_course.coding_tools.refusal import stop_if_aborted, told_as
from pi_course.coding_tools.text_file import must_be_file
from pi_course.tool import Tool, ToolContext
from pi_course.tool_result import ToolOutput


class WriteArguments(BaseModel):
    model_config = ConfigDict(frozen=True)

    path: str = Field(description="The file, from the workspace folder on")
    content: str = Field(description="All that the file is to hold")


def replace_file(
    path: Path, data: bytes, *, replace: Callable[[Path, Path], None] = os.replace
) -> bool:
    """Give the file new bytes in one step, and say whether there was none before.

    Parents are made. Mode and, where the system allows it, the owner are kept; a second hard link
    keeps the old bytes. If anything fails, the old file stands and nothing lies beside it.
    """
    raise NotImplementedError("Lab 8.3: replace_file()")


def _file_at(path: Path) -> os.stat_result | None:
    """What is to be replaced: a file that may be written, or nothing."""
    raise NotImplementedError("Lab 8.3: _file_at()")


def _dress(descriptor: int, before: os.stat_result) -> None:
    """Give an open file the owner, where the system allows it, and the mode of the old one."""
    raise NotImplementedError("Lab 8.3: _dress()")


def write_tool(workspace: Workspace, queue: MutationQueue) -> Tool:
    raise NotImplementedError("Lab 8.6: write_tool()")
