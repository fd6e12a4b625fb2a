"""pi-course agent [DIR]"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pi_course_kit import endpoint as endpoints
from pi_course_kit.endpoint import Endpoint
from pi_course_kit.errors import CourseError

if TYPE_CHECKING:
    from pi_course.messages import Model
    from pi_course_kit.agent_talk import Talk

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
    Exit code: 0 done, 1 the run ended another way, 2 wrong use.
    """
    from pi_course_kit import agent_demo

    if demo and (endpoint is not None or folder is not None or prompt is not None):
        raise CourseError("--demo has its own model, folder and task: leave the others out.")
    if endpoint is None and not demo:
        raise CourseError(NO_MODEL)
    if as_json and not demo and prompt is None:
        raise CourseError("--json needs --print, or --demo: a talk is for people.")
    endpoints.serve_runtime(mine, needs=NEEDS)
    on_event = _print_json if as_json else Screen(partial(click.echo, nl=False)).show
    try:
        if demo:
            from pi_course_kit.agent_demo import play

            raise SystemExit(play(on_event, silent=as_json))
        assert endpoint is not None
        ask = ask_at_terminal if sys.stdin.isatty() and not as_json else None
        place = (folder or Path.cwd()).resolve()
        talk = Talk(endpoints.open_model(endpoint), place, on_event, ask, allowed=yes)
    except (ImportError, NotImplementedError) as error:
        raise CourseError(
            f"These files are no agent yet: {str(error).rstrip('.')}. "
            "Make chapter 08 green there, or leave out --mine."
        ) from error
    if prompt is not None:
        raise SystemExit(0 if _run(talk, prompt) == "stop" else 1)
    terminal.settle()
    click.echo(f"pi-course agent with {endpoint.model}, in {place}\n{KEYS}")
    terminal.lines(lambda line: _take(talk, line))


def _print_json(event: LoopEvent) -> None:
    line = as_json_line(event)
    if line is not None:
        click.echo(line)


def _run(talk: Talk, prompt: str) -> str:
    return asyncio.run(talk.prompt(prompt)).reason
