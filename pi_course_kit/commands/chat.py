"""pi-course chat"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pi_course_kit.errors import CourseError

if TYPE_CHECKING:
    from pi_course.chat import Conversation

BANNER = """\
pi-course chat. Offline: the answers come from rules, try hello or streaming.
/history shows the messages, /quit or Ctrl-D ends, Ctrl-C stops an answer.
"""
INDENT = " " * 16
GRACE = 2.0  # seconds that a model has to end its answer after Ctrl-C


@click.command("chat")
@click.option("--system", metavar="TEXT", help="A system prompt, put in front of the conversation.")
@click.option(
    "--delay-ms",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    help="Milliseconds between two pieces of an answer.",
)
@click.option(
    "--mine",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Talk through the pi_course/ of your practice folder.",
)
def command(system: str | None, delay_ms: int, mine: Path | None) -> None:
    """Talk with a model in the terminal.

    It runs on the finished runtime, or on your own with --mine.
    """
    _serve(mine)
    conversation = _conversation(system, delay_ms / 1000)
    _settle_terminal()
    click.echo(BANNER)
    _talk(conversation)
    count = len(conversation.messages)
    click.echo(f"{count} message{'s' * (count != 1)}")


def _serve(mine: Path | None) -> None:
    from pi_course_kit import practice, snapshot, source
    from pi_course_kit.checkpoint import folders
    from pi_course_kit.data import data_dir

    brings = source.brought_by(data_dir("checkpoints"))
    if mine is not None:
        source.serve(practice.practice_folder(mine).resolve(), brings, "your folder")
        return
    # Not simply `import pi_course`: started inside a practice folder, that would be the learner's.
    last = int(folders()[-1].name[:2])
    source.serve(snapshot.cached_snapshot(last), brings, "the finished runtime")


def _conversation(system: str | None, delay: float) -> Conversation:
    try:
        from pi_course.chat import Conversation
        from pi_course.rule_model import RuleModel
        from pi_course.streaming_demo import RULES
    except ImportError as error:
        raise CourseError(
            f"These files can't hold a conversation yet: {error} "
            "Make chapter 04 green there, or leave out --mine."
        ) from error
    return Conversation(RuleModel(RULES, delay=delay), system=system)


def _settle_terminal() -> None:
    for stream in (sys.stdin, sys.stdout):
        # A byte that is no character, or a character that the terminal lacks, ends no talk.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with contextlib.suppress(ImportError):
        # Cursor keys and earlier lines at the prompt. Windows has its own.
        importlib.import_module("readline")


def _talk(conversation: Conversation) -> None:
    """Lines until the user leaves."""
    while True:
        try:
            line = input("> ").strip()
            if line in ("/quit", "/exit"):
                return
            _take(conversation, line)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo("\n(Ctrl-D or /quit ends)")


def _take(conversation: Conversation, line: str) -> None:
    if line == "/history":
        click.echo(_history(conversation))
    elif line.startswith("/"):
        click.echo(f"There is no {line.split()[0]}: /history, /quit and /exit exist.\n")
    elif line:
        asyncio.run(_answer(conversation, line))


async def _answer(conversation: Conversation, line: str) -> None:
    """The answer, typed out. After Ctrl-C a model that is deaf to its signal is left behind."""
    from pi_course.abort import AbortController
    from pi_course.chat import type_out

    controller = AbortController()
    said = asyncio.create_task(conversation.say(line, type_out, signal=controller.signal))
    try:
        await asyncio.wait({said})
    except asyncio.CancelledError:  # what asyncio.run makes of the first Ctrl-C
        controller.abort("Ctrl-C")
        await asyncio.wait({said}, timeout=GRACE)
    if said.done():
        said.result()  # raises what went wrong inside
        return
    said.cancel()
    type_out("\n[error] aborted: Ctrl-C\n\n")


def _history(conversation: Conversation) -> str:
    from pi_course.messages import text_of

    if not conversation.messages:
        return "No messages yet.\n"
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for place, message in enumerate(conversation.messages):
        head = f"{place:>3}  {message.role:<11}"
        for line in text_of(message).split("\n"):
            # A system prompt of several lines keeps them; only the long ones are wrapped.
            text = textwrap.fill(line, width, initial_indent=head, subsequent_indent=INDENT)
            lines.append(text or head.rstrip())
            head = INDENT
    return "\n".join([*lines, ""])
