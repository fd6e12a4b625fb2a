"""pi-course watch [DIR]"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pi_course_kit.checkpoint import Checkpoint
    from pi_course_kit.results import CheckResult

KEYS = "h hint · d diff · r run again · q quit"


@click.command("watch")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--poll", is_flag=True, help="Look ten times a second; for folders without events.")
def command(folder: Path | None, poll: bool) -> None:
    """Check again each time you save.

    The verdict is that of `pi-course check`, from a process that stays warm. Keys: h opens the next
    hint, d shows what the chapter changes, r runs again, q quits.
    """
    from pi_course_kit import practice
    from pi_course_kit.watch import Watch

    folder = practice.practice_folder(folder)
    chapter = practice.chapter_of(folder)
    signal.signal(signal.SIGTERM, _end)
    with contextlib.suppress(KeyboardInterrupt), Watch(folder, chapter, poll=poll) as watch:
        # One queue for results and keys, since both wait.
        events: queue.SimpleQueue[Any] = watch.events
        with _keys(events) as keyboard:
            click.echo(f"Watching {folder}" + ("" if keyboard else " (end with Ctrl-C)"))
            _loop(_Screen(folder, chapter, keyboard), events, watch.rerun)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _loop(screen: _Screen, events: queue.SimpleQueue[Any], rerun: Any) -> None:
    while True:
        match events.get():
            case "q":
                return
            case "r":
                rerun()
            case "h":
                screen.hint()
            case "d":
                screen.diff()
            case str():
                pass
            case Exception() as error:
                raise error
            case result:
                screen.show(result)


class _Screen:
    def __init__(self, folder: Path, chapter: Checkpoint, keyboard: bool) -> None:
        self._folder = folder
        self._chapter = chapter
        self._keyboard = keyboard
        self._lab: str | None = None

    def show(self, result: CheckResult) -> None:
        from pi_course_kit import report
        from pi_course_kit.commands.check import in_colour, record

        text = report.text(result, self._chapter, self._folder, colour=in_colour())
        if self._keyboard:
            click.clear()
        click.echo(f"{text}\n" + (f"\n{KEYS}" if self._keyboard else "-" * 80))
        sys.stdout.flush()
        red = (test.lab for test in result.tests if test.outcome != "passed")
        self._lab = next(red, None)
        record(result, self._chapter, self._folder)

    def hint(self) -> None:
        if self._lab:
            self._run("hint", self._lab, "--dir", str(self._folder))
        else:
            click.echo("Nothing is red, so there is no hint to give.")

    def diff(self) -> None:
        self._run("diff", self._chapter.nn)

    def _run(self, *arguments: str) -> None:
        click.echo("")
        sys.stdout.flush()
        subprocess.run(
            [sys.executable, "-P", "-m", "pi_course_kit.cli", *arguments],
            stdin=subprocess.DEVNULL,
            check=False,
        )
        click.echo(f"\n{KEYS}")


@contextlib.contextmanager
def _keys(events: queue.SimpleQueue[Any]) -> Generator[bool]:
    """Put single keys into `events` while this lasts; False where there is no terminal."""
    if sys.platform == "win32" or not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield False
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def resume(_number: int, _frame: FrameType | None) -> None:
        tty.setcbreak(terminal)  # the shell has taken it back while we were stopped

    def read() -> None:
        with contextlib.suppress(OSError):
            while key := os.read(terminal, 1):
                events.put(key.decode("ascii", "replace").lower())
        events.put("q")  # the terminal is gone

    continued = signal.signal(signal.SIGCONT, resume)
    tty.setcbreak(terminal)
    threading.Thread(target=read, daemon=True).start()
    try:
        yield True
    finally:
        signal.signal(signal.SIGCONT, continued)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
