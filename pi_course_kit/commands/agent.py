"""pi-course agent [DIR]"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pi_course_kit import endpoint as endpoints
from pi_course_kit import terminal
from pi_course_kit.agent_screen import Screen, in_words
from pi_course_kit.agent_talk import COLUMNS, Talk, ask_at_terminal, json_line
from pi_course_kit.endpoint import Endpoint
from pi_course_kit.errors import CourseError
from pi_course_kit.output import WIDTH
from pi_course_kit.values import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pi_course.agent_loop import LoopEvent
    from pi_course.messages import AgentMessage
    from pi_course.tool import ToolRegistry

WHAT = "a run"  # that Ctrl-C stops
NEEDS = 8  # the chapter that brings the tools
NO_MODEL = (
    "Which model? `pi-course agent --demo` runs offline, on a small project in a temporary "
    "folder. For this folder, name an endpoint: "
    f"`pi-course agent --base-url {endpoints.EXAMPLE} --model NAME`."
)


@click.command("agent")
@click.argument(
    "folder", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[DIR]"
)
@click.option("--demo", is_flag=True, help="Mend a small sample project, offline, by a script.")
@click.option("--print", "prompt", metavar="PROMPT", help="Do this one thing and end; for pipes.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as one line of JSON.")
@click.option("--yes", is_flag=True, help="Don't ask before it writes or runs a command.")
@endpoints.options
@terminal.told_to_end(terminal.leave)
def command(
    folder: Path | None,
    demo: bool,
    prompt: str | None,
    as_json: bool,
    yes: bool,
    endpoint: Endpoint | None,
    mine: Path | None,
) -> None:
    """Let an agent read, edit and run what is in a folder.

    DIR is the current folder by default. The agent can't reach files outside of it by read, write
    and edit; a command that it runs can do what you can. You are asked before the first one.

    \b
    Exit code: 0 done, 1 the run ended another way, 2 wrong use;
    128 and the signal's number when SIGTERM or SIGHUP ends it.
    """
    if demo and (endpoint is not None or folder is not None or prompt is not None):
        raise CourseError("--demo has its own model, folder and task: leave the others out.")
    if endpoint is None and not demo:
        raise CourseError(NO_MODEL)
    if prompt is not None and not prompt.strip():
        raise CourseError("--print needs a prompt: say what is to be done.")
    if as_json and not demo and prompt is None:
        raise CourseError("--json needs --print, or --demo: a talk is for people.")
    own = endpoints.serve_runtime(mine, needs=NEEDS)
    on_event = _print_json if as_json else Screen(partial(click.echo, nl=False)).show
    try:
        if demo:
            from pi_course_kit.agent_demo import play

            raise SystemExit(play(on_event, _say_nothing if as_json else click.echo))
        assert endpoint is not None
        ask = (
            ask_at_terminal if sys.stdin.isatty() and sys.stdout.isatty() and not as_json else None
        )
        place = (folder or Path.cwd()).resolve()
        tools = _tools(place)
        talk = Talk(endpoints.open_model(endpoint), tools, place, on_event, ask, allowed=yes)
    except (ImportError, NotImplementedError) as error:
        raise CourseError(
            f"These files are no agent yet: {str(error).rstrip('.')}. "
            "Make chapter 08 green there, or leave out --mine."
        ) from error
    if prompt is not None:
        raise SystemExit(0 if talk.prompt(prompt).reason == "stop" else 1)
    terminal.settle()
    click.echo(f"pi-course agent with {endpoint.model}, in {terminal.plain(str(place))}")
    if own is not None:
        click.echo(f"It runs on your own files, in {terminal.plain(str(own))}")
    click.echo(terminal.KEYS.format(what=WHAT))
    _talk(talk)


def _tools(folder: Path) -> ToolRegistry:
    from pi_course.coding_tools import create_coding_tools

    if not folder.is_dir():
        raise CourseError(f"There is no folder {folder}. Name one that exists.")
    return create_coding_tools(folder, environment={"COLUMNS": COLUMNS})


def _talk(talk: Talk) -> None:
    def answer(line: str) -> None:
        result = talk.prompt(line)
        lines.stopped = result.reason == "aborted"
        click.echo()

    lines = terminal.Lines(answer, lambda: _history(talk.messages), WHAT)
    lines.read()


def _history(messages: Iterable[AgentMessage]) -> str:
    return "".join(_line(message) for message in messages)


def _line(message: AgentMessage) -> str:
    from pi_course.messages import AssistantMessage, text_of

    said = [text_of(message)] if text_of(message) else []
    if isinstance(message, AssistantMessage):
        said += [in_words(block) for block in message.content if block.type == "toolCall"]
    return cut(terminal.plain(f"{message.role:<11} {' | '.join(said)}"), WIDTH) + "\n"


def _say_nothing(text: str) -> None:
    """With --json only events go out."""


def _print_json(event: LoopEvent) -> None:
    line = json_line(event)
    if line is not None:
        click.echo(line)
