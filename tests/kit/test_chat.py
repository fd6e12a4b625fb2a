"""`pi-course chat`, used as people use it: in a terminal (a pty), and at the end of a pipe."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from pi_course_kit import checkpoint, practice, snapshot

CHAT = [sys.executable, "-m", "pi_course_kit.cli", "chat"]
PATIENCE = 60  # seconds until a test gives up; no test is red because a machine is slow
ESCAPE = re.compile(r"\x1b\[[?\d;]*[a-zA-Z]")


class Terminal:
    """A program at an 80-column terminal. Keys go in, and what is on the screen comes out."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.screen = ""
        self._seen = 0

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def press_until(self, key: str, text: str) -> None:
        """Press a key again when nothing came: a Ctrl-C just before a wait is not always seen."""
        for _ in range(20):
            self.press(key)
            with contextlib.suppress(AssertionError):
                self.until(text, seconds=3)
                return
        self.until(text, seconds=3)

    def until(self, text: str, seconds: float = PATIENCE) -> str:
        """Wait for a text; returns what came since the last wait, the text included."""
        end = time.monotonic() + seconds
        while (found := self.screen.find(text, self._seen)) < 0:
            if time.monotonic() > end or not self._read(0.2):
                raise AssertionError(f"{text!r} did not come; the screen: {self.screen!r}")
        start, self._seen = self._seen, found + len(text)
        return self.screen[start : self._seen]

    def wait(self) -> int:
        """The exit code, with the screen read to its end."""
        while self._read(PATIENCE) and self._process.poll() is None:
            pass
        return self._process.wait(PATIENCE)

    def _read(self, seconds: float) -> bool:
        """Take in what has come; False when the program has closed the terminal."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that the other side is gone
            return False
        self.screen += ESCAPE.sub("", data.decode(errors="replace")).replace("\r\n", "\n")
        return bool(data)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE)
        os.close(self._master)


@contextlib.contextmanager
def terminal(folder: Path, *options: str) -> Generator[Terminal]:
    made = Terminal([*CHAT, *options], folder)
    try:
        made.until("> ")
        yield made
    finally:
        made.close()


def piped(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CHAT, "--delay-ms", "0", *options],
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        cwd=folder,
    )


def test_banner_and_prompt_fit_80_columns(tmp_path: Path) -> None:
    with terminal(tmp_path) as chat:
        banner = chat.screen.split("\n")
    assert banner[0].startswith("pi-course chat")
    assert max(len(line) for line in banner) < 80
    assert banner[-1] == "> "


def test_the_demos_lines_give_the_demos_text(tmp_path: Path) -> None:
    kept = checkpoint.find("4").folder / "parent" / "tests" / "04-streaming-demo.txt"
    talk = kept.read_text(encoding="utf-8").partition("\n\n")[2]
    with terminal(tmp_path, "--delay-ms", "0") as chat:
        for line in ["hello", "what is streaming?", "make an error"]:
            chat.press(f"{line}\r")
            chat.until("\n\n> ")
        chat.press("/exit\r")
        assert chat.wait() == 0
        screen = chat.screen
    assert screen[screen.index("> ") :] == talk


def test_ctrl_c_stops_the_answer_and_keeps_the_conversation(tmp_path: Path) -> None:
    with terminal(tmp_path, "--delay-ms", "300") as chat:
        chat.press("hello\r")
        # The answer has over thirty pieces, 300 ms apart: here it has begun and is not over.
        chat.until("assistant> He")
        assert "pieces." not in chat.screen
        chat.press("\x03")
        assert "pieces." not in chat.until("[error] aborted: Ctrl-C\n\n> ")
        chat.press("/history\r")
        assert "  0  user       hello\n\n> " in chat.until("hello\n\n> ")
        chat.press("/quit\r")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n1 message\n")


def test_ctrl_c_leaves_a_model_that_does_not_look_at_its_signal(tmp_path: Path) -> None:
    with terminal(tmp_path, "--delay-ms", "3600000") as chat:
        chat.press("hello\r")
        chat.until("assistant> ")
        chat.press_until("\x03", "\n[error] aborted: Ctrl-C\n\n> ")
        chat.press("/quit\r")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n1 message\n")


def test_ctrl_c_at_the_prompt_says_how_to_leave(tmp_path: Path) -> None:
    with terminal(tmp_path) as chat:
        chat.press("hal")
        chat.until("hal")
        chat.press_until("\x03", "(Ctrl-D or /quit ends)\n> ")
        chat.press("/quit\r")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n0 messages\n")


def test_ctrl_d_leaves(tmp_path: Path) -> None:
    with terminal(tmp_path) as chat:
        chat.press("\x04")
        assert chat.wait() == 0
        assert chat.screen.endswith("> \n0 messages\n")


def test_blank_lines_are_skipped_and_the_end_of_input_ends(tmp_path: Path) -> None:
    done = piped(tmp_path, "\n   \nhello\n\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("assistant> ") == 1
    assert done.stdout.endswith("\n2 messages\n")


def test_history_is_numbered_and_wrapped(tmp_path: Path) -> None:
    done = piped(tmp_path, f"/history\n{'word ' * 20}\n/history\n/quit\n", "--system", "A\nB")
    assert "  0  system     A\n                B\n\n" in done.stdout
    assert max(len(line) for line in done.stdout.split("\n")) <= 80
    assert "\n                word word" in done.stdout
    assert done.stdout.endswith("3 messages\n")


def test_history_of_nothing(tmp_path: Path) -> None:
    assert "> No messages yet.\n" in piped(tmp_path, "/history\n").stdout


def test_an_unknown_command_is_no_message(tmp_path: Path) -> None:
    done = piped(tmp_path, "/help me\n")
    assert "There is no /help: " in done.stdout
    assert done.stdout.endswith("\n0 messages\n")


def test_the_model_sees_what_was_said_before(tmp_path: Path) -> None:
    lines = "the second point?\ntypes\nthe second point?\n"
    answers = piped(tmp_path, lines).stdout.split("assistant> ")[1:]
    assert answers[0].startswith("Which second point?")
    assert answers[2].startswith("The second point is int.")


def test_bytes_that_are_no_text_end_no_talk(tmp_path: Path) -> None:
    done = subprocess.run(
        CHAT, input=b"\xff\xfe\n/history\n", capture_output=True, timeout=PATIENCE, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"\n2 messages\n")


def test_mine_talks_through_the_learners_folder(tmp_path: Path) -> None:
    chapter = checkpoint.find("4")
    folder = practice.create(chapter, tmp_path / "mine").folder
    snapshot.write(snapshot.snapshot_files(4), folder)
    demo = folder / "pi_course" / "streaming_demo.py"
    text = demo.read_text(encoding="utf-8").replace('"Hello! ', '"Ahoy! ')
    demo.write_text(text, encoding="utf-8", newline="\n")
    assert "assistant> Ahoy! " in piped(tmp_path, "hello\n", "--mine", str(folder)).stdout
    assert "assistant> Hello! " in piped(folder, "hello\n").stdout


def test_mine_says_what_a_folder_lacks(tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("4"), tmp_path / "mine").folder
    done = piped(tmp_path, "hello\n", "--mine", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert "pi_course.chat is not in your folder" in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--delay-ms", "-1"], "-1"),
        (["--mine", "."], "not a practice folder"),
    ],
)
def test_wrong_use_is_refused(tmp_path: Path, options: list[str], problem: str) -> None:
    done = piped(tmp_path, "hello\n", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
