"""pi-course chat"""

from __future__ import annotations

import asyncio
import shutil
import textwrap
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pi_course_kit import endpoint as endpoints
from pi_course_kit import terminal
from pi_course_kit.endpoint import Endpoint
from pi_course_kit.errors import CourseError

if TYPE_CHECKING:
    from pi_course.chat import Conversation
    from pi_course.messages import Model

OFFLINE = "Offline: the answers come from rules, try hello or streaming."
USUAL_DELAY = 30  # milliseconds
WHAT = "an answer"  # that Ctrl-C stops
INDENT = " " * 16
GRACE = 2.0  # seconds that a model has to end its answer after Ctrl-C


@click.command("chat")
@click.option("--system", metavar="TEXT", help="A system prompt, put in front of the conversation.")
@click.option(
    "--delay-ms",
    type=click.IntRange(min=0),
    help=f"Milliseconds between two pieces of an offline answer (default: {USUAL_DELAY}).",
)
@endpoints.options
def command(
    system: str | None, delay_ms: int | None, endpoint: Endpoint | None, mine: Path | None
) -> None:
    """Talk with a model in the terminal.

    Offline by default; --base-url and --model name a real one. Exit code 2: no line was answered.
    """
    if endpoint is not None and delay_ms is not None:
        raise CourseError("--delay-ms is for the offline answers: leave it or --base-url out.")
    folder = endpoints.serve_runtime(mine, needs=4 if endpoint is None else 5)
    talk = Talk(_conversation(system, endpoint, delay_ms), folder)
    terminal.settle()
    click.echo(_banner(endpoint, folder))
    talk.lines.read()
    count = len(talk.conversation.messages)
    click.echo(f"{count} message{'s' * (count != 1)}")
    if talk.failed and not talk.answered:
        raise SystemExit(2)


def _conversation(
    system: str | None, endpoint: Endpoint | None, delay_ms: int | None
) -> Conversation:
    try:
        from pi_course.chat import Conversation

        model = _rules(delay_ms) if endpoint is None else endpoints.open_model(endpoint)
    except (ImportError, SyntaxError) as error:
        raise CourseError(
            f"These files can't hold a conversation yet: {str(error).rstrip('.')}. "
            "Make chapter 04 green there, or talk from another folder and without --mine."
        ) from error
    return Conversation(model, system=system)


def _rules(delay_ms: int | None) -> Model:
    from pi_course.rule_model import RuleModel
    from pi_course.streaming_demo import RULES

    return RuleModel(RULES, delay=(USUAL_DELAY if delay_ms is None else delay_ms) / 1000)


def _banner(endpoint: Endpoint | None, folder: Path | None) -> str:
    lines = [f"pi-course chat. {OFFLINE}"]
    if endpoint is not None:
        key = f"with the key in {endpoint.key_env}" if endpoint.sends_key else "without a key"
        lines = [f"pi-course chat with {endpoint.model},", f"{key}, at {endpoint.base_url}"]
    if folder is not None:
        lines.append(f"It runs on your own files, in {folder}")
    return "\n".join([*lines, terminal.KEYS.format(what=WHAT)])


class Talk:
    """Lines until the user leaves. Each answer runs in an event loop of its own."""

    def __init__(self, conversation: Conversation, folder: Path | None) -> None:
        self.conversation = conversation
        self.answered = False
        self.failed = False
        self._folder = folder
        self.lines = terminal.Lines(self._take, lambda: _history(conversation), WHAT)

    def _take(self, line: str) -> None:
        asyncio.run(self._answer(line))

    async def _answer(self, line: str) -> None:
        """The answer, typed out. After Ctrl-C a model deaf to its signal is left behind."""
        from pi_course.abort import AbortController

        controller = AbortController()
        said = asyncio.create_task(self.conversation.say(line, _write, signal=controller.signal))
        if await terminal.until_done(said, controller.abort):
            self.lines.stopped = True
            await asyncio.wait({said}, timeout=GRACE)
        if not said.done():
            said.cancel()
            _write("\n[error] aborted: Ctrl-C\n\n")
            return
        try:
            message = said.result()
        except Exception as error:
            if self._folder is None:
                raise
            # The learner's own code: the talk goes on, and they learn where to look.
            _write(f"\n[error] {type(error).__name__}: {error}{_place(error, self._folder)}\n\n")
            message = None
        self.answered |= message is not None
        self.failed |= message is None and not self.lines.stopped


def _write(text: str) -> None:
    from pi_course.chat import type_out

    type_out(terminal.plain(text))


def _place(error: Exception, folder: Path) -> str:
    """The last line of the learner's that an exception came through."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(folder):
            return f" ({Path(frame.filename).relative_to(folder).as_posix()}:{frame.lineno})"
    return ""


def _history(conversation: Conversation) -> str:
    from pi_course.messages import text_of

    if not conversation.messages:
        return "No messages yet.\n"
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for place, message in enumerate(conversation.messages):
        head = f"{place:>3}  {message.role:<11}"
        for line in terminal.plain(text_of(message)).split("\n"):
            # A system prompt of several lines keeps them; only the long ones are wrapped.
            text = textwrap.fill(line, width, initial_indent=head, subsequent_indent=INDENT)
            lines.append(text or head.rstrip())
            head = INDENT
    return "\n".join([*lines, ""])
