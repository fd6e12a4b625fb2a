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
    passed = {name: inherited[name] for name in PASSED_ON if name in inherited}
    return {**passed, **(given or {})}


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
    loop = asyncio.get_running_loop()
    first: asyncio.Future[Ending] = loop.create_future()  # what ends the command

    def comes(ending: Ending) -> None:
        if not first.done():
            first.set_result(ending)

    def take(data: bytes) -> None:
        room = limits.bytes - output.bytes  # progress is for the eye, and no second result
        piece = output.take(data)
        if output.bytes > limits.output_bytes:
            comes("output")
        if room > 0:
            context.report_progress(piece[:room])

    pipe = OutputPipe(take)
    try:
        with told_as("the command"):
            group = ProcessGroup(
                [*shell.argv, command],
                folder=shell.folder,
                environment=shell.environment,
                output=pipe.into,
                start=shell.start,
            )
        timer = loop.call_later(seconds, comes, "timeout")
        try:
            pipe.started()
            group.exited.add_done_callback(lambda _: comes("exit"))
            with _told_of_abort(context.signal, lambda: comes("abort")):
                ending = await first
            if ending == "exit":
                await pipe.drain(limits.idle_seconds, limits.drain_seconds)
            else:
                group.send(signal.SIGTERM)
                await asyncio.wait([group.exited, pipe.ended], timeout=limits.grace_seconds)
        finally:
            timer.cancel()
            code = await group.end()
    finally:
        pipe.close()
    return ending, code


@contextmanager
def _told_of_abort(stop: Signal, tell: Callable[[], None]) -> Generator[None]:
    if not isinstance(stop, AbortSignal):  # it can be looked at, and not be waited for
        yield
        return
    watcher = asyncio.create_task(_tell(stop, tell))
    try:
        yield
    finally:
        watcher.cancel()


async def _tell(stop: AbortSignal, tell: Callable[[], None]) -> None:
    await stop.wait()
    tell()


def bash_tool(shell: Shell, folder: OutputFolder, limits: Limits) -> Tool:
    async def execute(arguments: BashArguments, context: ToolContext) -> ToolOutput:
        seconds = _seconds(arguments.timeout, limits)
        if "\0" in arguments.command:
            raise ToolRefused("command holds a NUL character, which no command can")
        must_be_there(shell.folder)
        stop_if_aborted(context.signal)
        output = OutputTail(limits, folder)
        try:
            ending, code = await run_command(
                arguments.command, shell, output, context, seconds, limits
            )
            status = _status(ending, code, seconds, context.signal, limits)
            shown, note = output.finish(status)
        finally:
            output.close()
        blocks = [text(shown or "(no output)"), *([text(note)] if note else [])]
        details = {
            "ending": ending,
            "exitCode": code,
            "outputBytes": output.bytes,
            "outputFile": None if output.path is None else str(output.path),
        }
        return ToolOutput(blocks, details=details, is_error=bool(status))

    return Tool(
        "bash",
        "Run a command with bash in the workspace folder. Each call is a new shell without input."
        " Gives output and errors together, at most the last"
        f" {limits.lines} lines or {limits.bytes} bytes. Ends after {limits.seconds:g} seconds"
        " unless timeout says otherwise. What is left running in the background is ended, too.",
        BashArguments,
        execute,
        # A command may need what the call before it wrote, and nobody can tell which one does.
        sequential=True,
    )


def _seconds(given: float | None, limits: Limits) -> float:
    if given is None:
        return limits.seconds
    if not 0 < given <= limits.max_seconds:
        raise ToolRefused(
            f"timeout is {given:g}: give seconds above 0, at most {limits.max_seconds:g}"
        )
    return given


def _status(ending: Ending, code: int | None, seconds: float, stop: Signal, limits: Limits) -> str:
    """What has to be said beside the output; nothing when all went well."""
    still = "" if code is not None else ". It can't be ended, and may still be running"
    match ending:
        case "timeout":
            return f"Command timed out after {seconds:g} s{still or ' and was ended'}"
        case "abort":
            line = " ".join(replace_surrogates(str(stop.reason)).split())
            short = line.encode("utf-8")[:MOST_REASON_BYTES].decode("utf-8", "ignore")
            reason = "" if stop.reason is None else f": {short}"
            return f"Command aborted{reason}{still}"
        case "output":
            most = limits.output_bytes
            return f"Command wrote more than {most} bytes{still or ' and was ended'}"
        case "exit":
            return f"Command exited with code {code}" if code else ""
