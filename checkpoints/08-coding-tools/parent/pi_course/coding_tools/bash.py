"""bash: run a command in the workspace, wait for it, and leave nothing of it behind.

Each call is a new shell in a process group of its own. It gets no input, a few harmless variables
and a limit of time; when the call returns, the group is gone.

That keeps mistakes small and keeps no secret. Without a sandbox a command may do what the user may:
open every file of his, use the network, and read the environment with which the agent was started,
in /proc/$PPID/environ. A key that came in that way is one `cat` away.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from pi_course.abort import AbortSignal
from pi_course.coding_tools.limits import Limits
from pi_course.coding_tools.output_pipe import OutputPipe
from pi_course.coding_tools.output_tail import OutputFolder, OutputTail
from pi_course.coding_tools.paths import must_be_there
from pi_course.coding_tools.process_group import ProcessGroup
from pi_course.coding_tools.refusal import ToolRefused, stop_if_aborted, told_as
from pi_course.messages import Signal, text
from pi_course.surrogates import replace_surrogates
from pi_course.tool import Tool, ToolContext
from pi_course.tool_result import ToolOutput

# What a program needs to run and to write text. Keys stand in other variables, whose names nobody
# knows in advance: so what may pass is listed, and not what may not.
PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
)

MOST_REASON_BYTES = 200  # of an abort, in one line: the output needs the rest of the limit

Ending: TypeAlias = Literal["exit", "timeout", "abort", "output"]


class BashArguments(BaseModel):
    model_config = ConfigDict(frozen=True)

    command: str = Field(description="What bash is to run, in the workspace folder")
    timeout: float | None = Field(None, description="Seconds after which it is ended")


@dataclass(frozen=True, slots=True)
class Shell:
    """How commands are started: by which program, where, with which variables, by what call."""

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen


def child_environment(
    given: Mapping[str, str] | None, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The few variables that are passed on, and those that the caller names himself."""
    raise NotImplementedError("Lab 8.5: child_environment()")


def bash_shell(folder: Path, environment: Mapping[str, str], front: Sequence[str] = ()) -> Shell:
    """`front` is what a sandbox puts before the command."""
    program = shutil.which("bash") or "/bin/sh"
    return Shell((*front, program, "-c", "--"), Path(os.path.realpath(folder)), environment)


async def run_command(
    command: str,
    shell: Shell,
    output: OutputTail,
    context: ToolContext,
    seconds: float,
    limits: Limits,
) -> tuple[Ending, int | None]:
    """Run it to its end, whichever that is, and give the exit code. Everything goes to `output`."""
    raise NotImplementedError("Lab 8.5: run_command()")


@contextmanager
def _told_of_abort(stop: Signal, tell: Callable[[], None]) -> Generator[None]:
    raise NotImplementedError("Lab 8.5: _told_of_abort()")


async def _tell(stop: AbortSignal, tell: Callable[[], None]) -> None:
    raise NotImplementedError("Lab 8.5: _tell()")


def bash_tool(shell: Shell, folder: OutputFolder, limits: Limits) -> Tool:
    raise NotImplementedError("Lab 8.5: bash_tool()")


def _seconds(given: float | None, limits: Limits) -> float:
    raise NotImplementedError("Lab 8.5: _seconds()")


def _status(ending: Ending, code: int | None, seconds: float, stop: Signal, limits: Limits) -> str:
    """What has to be said beside the output; nothing when all went well."""
    raise NotImplementedError("Lab 8.5: _status()")
