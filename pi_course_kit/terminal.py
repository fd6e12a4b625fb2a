"""A person at a terminal: lines in, something done for each, and what Ctrl-C means meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import os
import re
import signal
import sys
import unicodedata
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, NoReturn

import click

TICK = 0.25  # seconds
# How a program is told to end: by a supervisor, and by a terminal that closes (not on Windows).
ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
KEYS = "/help shows what you can type. Ctrl-C stops {what}, Ctrl-D ends.\n"
HELP = """\
/history  the messages so far: what the next request will carry
/help     these lines
/quit     ends, as /exit and Ctrl-D do
Ctrl-C    stops {what} and keeps the conversation; a second one ends
"""
# What a model or a tool says may not move the cursor, ring the bell or turn the writing around.
_DIRECTIONS = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_CONTROLS = {*range(32), *range(127, 160), 0x2028, 0x2029, 0xFEFF, *_DIRECTIONS}
_SHOWN: dict[int, str | None] = {
    **dict.fromkeys(_CONTROLS - {ord("\n"), ord("\t")}, "\ufffd"),
    ord("\r"): None,
}


def plain(text: str) -> str:
    """Text from outside, with its control characters made visible.

    Example:
        >>> ascii(plain("a title\\x1b]0;gone\\r\\n"))
        "'a title\\\\ufffd]0;gone\\\\n'"
    """
    return text.translate(_SHOWN)


def exact(line: str) -> str:
    """A line that somebody decides by: nothing in it is invisible, and no gap hides its end.

    Example:
        >>> ascii(exact("ls\\r" + " " * 3000 + "; rm x\\u200b"))
        "'ls\\\\ufffd [3000 blanks] ; rm x\\\\ufffd'"
    """
    shown = "".join(
        char if char == " " or unicodedata.category(char)[0] not in "CZ" else "\ufffd"
        for char in line.replace("\t", "    ")
    )
    return re.sub(" {9,}", lambda gap: f" [{len(gap[0])} blanks] ", shown)


def settle() -> None:
    """Make the streams forgiving, and give the prompt its cursor keys."""
    for stream in (sys.stdin, sys.stdout):
        # A byte that is no character, or a character that the terminal lacks, ends no talk.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with contextlib.suppress(ImportError):
        # Cursor keys and earlier lines at the prompt. Windows has its own.
        importlib.import_module("readline")


def read_line(prompt: str) -> str:
    """input(), for which a signal that comes just before it sleeps is not lost until the next key.

    The alarm does nothing but wake it, and then Python looks whether there was a signal.
    """
    if not hasattr(signal, "setitimer"):  # Windows
        return input(prompt)
    before = signal.signal(signal.SIGALRM, _wake)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        return input(prompt)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _wake(number: int, frame: FrameType | None) -> None:
    """There is nothing to do: it has come."""


class Lines:
    """Lines until the user leaves; `answer` takes each but a /command.

    `history` gives what /history prints, and `what` names what Ctrl-C stops: "an answer".
    """

    def __init__(
        self,
        answer: Callable[[str], object],
        history: Callable[[], str],
        what: str,
    ) -> None:
        self._answer = answer
        self._commands = {"/history": history, "/help": lambda: HELP.format(what=what)}
        self.stopped = False  # by Ctrl-C, and nothing was typed since: the next one leaves

    def read(self) -> None:
        while True:
            try:
                line = read_line("> ").strip()
                if line in ("/quit", "/exit"):
                    return
                self._take(line)
            except EOFError:
                click.echo()
                return
            except KeyboardInterrupt:
                click.echo()
                if self.stopped:
                    return
                self.stopped = True
                click.echo("(Ctrl-C again ends, as Ctrl-D and /quit do)")

    def _take(self, line: str) -> None:
        if line:
            self.stopped = False
        if line in self._commands:
            click.echo(self._commands[line]())
        elif line.startswith("/"):
            click.echo(f"There is no {line.split()[0]}: /help shows what there is.\n")
        elif line:
            self._answer(line)


async def until_done(task: asyncio.Task[Any], stop: Callable[[str], object]) -> bool:
    """Wait for a task. The first Ctrl-C is given to `stop`, and then this returns True."""
    try:
        while not task.done():
            # A Ctrl-C that comes just before the loop sleeps wakes nobody: no long sleep.
            await asyncio.wait({task}, timeout=TICK)
    except asyncio.CancelledError:  # what asyncio.run makes of the first Ctrl-C
        stop("Ctrl-C")
        return True
    return False


@contextlib.contextmanager
def told_to_end(act: Callable[[int], object]) -> Generator[None]:
    """Meanwhile `act` is called with the number of a signal of ENDS, between any two steps.

    One that is ignored, as `nohup` does it, stays so.
    """
    heard = [number for number in ENDS if signal.getsignal(number) is not signal.SIG_IGN]
    before = [signal.signal(number, lambda told, _: act(told)) for number in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)


def leave(number: int) -> NoReturn:
    """End with the exit code that shells give to what a signal has ended."""
    try:
        sys.stdout.flush()
    except OSError:  # the terminal is gone; Python would try again, and exit with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(128 + number)
