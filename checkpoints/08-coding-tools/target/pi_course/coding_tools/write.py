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
    before = _file_at(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    # A plain open() makes the file with the mode that the umask leaves, which mkstemp does not.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            if before is not None:
                _dress(descriptor, before)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        replace(temporary, path)
    except BaseException:
        temporary.unlink()
        raise
    return before is None


def _file_at(path: Path) -> os.stat_result | None:
    """What is to be replaced: a file that may be written, or nothing."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    must_be_file(found.st_mode)
    if not os.access(path, os.W_OK):
        # A rename asks the folder only, and would replace a file that is protected from writing.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return found


def _dress(descriptor: int, before: os.stat_result) -> None:
    """Give an open file the owner, where the system allows it, and the mode of the old one."""
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))  # last: a new owner takes bits away


def write_tool(workspace: Workspace, queue: MutationQueue) -> Tool:
    def write(arguments: WriteArguments) -> ToolOutput:
        data = arguments.content.encode("utf-8")
        with told_as(arguments.path):
            created = replace_file(workspace.to_write(arguments.path), data)
        return ToolOutput(
            f"Successfully wrote {len(data)} bytes to {arguments.path}.",
            details={"bytes": len(data), "created": created},
        )

    async def execute(arguments: WriteArguments, context: ToolContext) -> ToolOutput:
        async with queue.turn(workspace.locate(arguments.path)):
            stop_if_aborted(context.signal)
            return await to_its_end(write, arguments)

    return Tool(
        "write",
        "Write a file, and the folders it needs. A file that is there is replaced as a whole;"
        " take edit to change a part of it.",
        WriteArguments,
        execute,
    )
