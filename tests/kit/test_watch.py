"""watch: the verdict of check after each save, never of old code, and nothing left behind."""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pi_course_kit import checkpoint, practice
from pi_course_kit.errors import CourseError
from pi_course_kit.results import CheckResult
from pi_course_kit.watch import Watch, modules_of, package_digest

HANG = 60  # seconds; only a watch that hangs waits so long
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@pytest.fixture
def folder(fake_course: Path, tmp_path: Path) -> Path:
    folder = practice.create(checkpoint.find("1"), tmp_path / "my practice 练习").folder
    (folder / "pi_course").mkdir()
    (folder / "pi_course" / "__init__.py").write_text("", encoding="utf-8")
    save(folder, "nobody")
    return folder


def save(folder: Path, word: str) -> None:
    text = f'def hello(name: str) -> str:\n    return f"{word} {{name}}"\n'
    (folder / "pi_course" / "greet.py").write_text(text, encoding="utf-8")


Started = Callable[..., Watch]


@pytest.fixture
def start(folder: Path) -> Iterator[Started]:
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Watch(folder, checkpoint.find("1"), **options))


def verdict(watch: Watch) -> str:
    result = watch.events.get(timeout=HANG)
    assert isinstance(result, CheckResult), result
    return result.verdict


@pytest.mark.parametrize("poll", [False, True], ids=["events", "polling"])
def test_each_save_gives_a_verdict(start: Started, folder: Path, poll: bool) -> None:
    watch = start(poll=poll)
    assert verdict(watch) == "red"
    save(folder, "hello")
    assert verdict(watch) == "green"
    (folder / "pi_course" / "greet.py").unlink()
    assert verdict(watch) == "red"


def test_edits_of_equal_size_within_a_second_never_run_old_code(
    start: Started, folder: Path
) -> None:
    watch = start()
    assert verdict(watch) == "red"
    stamp = os.stat(folder / "pi_course" / "greet.py").st_mtime
    for turn in range(10):
        save(folder, "hello" if turn % 2 == 0 else "howdy")
        os.utime(folder / "pi_course" / "greet.py", (stamp, stamp))
        assert verdict(watch) == ("green" if turn % 2 == 0 else "red"), turn


def test_a_touched_file_starts_nothing(start: Started, folder: Path) -> None:
    watch = start()
    assert verdict(watch) == "red"
    os.utime(folder / "pi_course" / "greet.py")
    with pytest.raises(queue.Empty):
        watch.events.get(timeout=1.5)
    watch.rerun()
    assert verdict(watch) == "red"


def test_a_save_ends_the_run_that_hangs(start: Started, folder: Path) -> None:
    (folder / "pi_course" / "greet.py").write_text("while True:\n    pass\n", encoding="utf-8")
    watch = start()
    threading.Event().wait(0.7)
    save(folder, "hello")
    assert verdict(watch) == "green"


def test_hostile_code_does_not_end_the_watching(start: Started, folder: Path) -> None:
    watch = start()
    assert verdict(watch) == "red"
    for text in ("import os\nos._exit(0)\n", "import os, signal\nos.kill(os.getppid(), 9)\n"):
        (folder / "pi_course" / "greet.py").write_text(text, encoding="utf-8")
        assert verdict(watch) == "red"
    save(folder, "hello")
    assert verdict(watch) == "green"


def test_the_folder_going_away_is_said(start: Started, folder: Path) -> None:
    watch = start()
    assert verdict(watch) == "red"
    folder.rename(folder.with_name("elsewhere"))
    result = watch.events.get(timeout=HANG)
    assert isinstance(result, CourseError)
    assert "is gone" in str(result)


def test_the_digest_follows_content_and_names(folder: Path) -> None:
    before = package_digest(folder)
    os.utime(folder / "pi_course" / "greet.py", (0, 0))
    assert package_digest(folder) == before
    (folder / "pi_course" / "greet.py").rename(folder / "pi_course" / "other.py")
    assert package_digest(folder) != before


def test_modules_of_are_those_from_elsewhere(fake_course: Path) -> None:
    lines = (
        "from __future__ import annotations",
        "import json",
        "from pi_course.x import y",
        "from a.b import c",
    )
    text = "\n".join(lines) + "\n"
    (fake_course / "01-hello/target/pi_course/greet.py").write_text(text, encoding="utf-8")
    assert modules_of(checkpoint.find("1")) == ["a.b", "json"]


class Terminal:
    """pi-course watch in a pseudo-terminal, on the small course."""

    def __init__(self, course: Path, folder: Path) -> None:
        import pty

        self._near, far = pty.openpty()
        code = (
            "from pathlib import Path\n"
            "from pi_course_kit import checkpoint\n"
            f"checkpoint.data_dir = lambda kind: Path({str(course)!r})\n"
            "from pi_course_kit.cli import main\n"
            f"main(['watch', {str(folder)!r}])\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
        )
        os.close(far)
        self._seen = ""

    def wait_for(self, text: str) -> None:
        """Read on until `text` was printed; what comes after it is kept."""
        while text not in self._seen:
            assert select.select([self._near], [], [], HANG)[0], self._seen
            self._seen += os.read(self._near, 65536).decode("utf-8", "replace")
        self._seen = self._seen.partition(text)[2]

    def press(self, key: str) -> None:
        os.write(self._near, key.encode())

    def ended(self) -> int:
        code = self.process.wait(timeout=HANG)
        os.close(self._near)
        return code


@pytest.fixture
def terminal(fake_course: Path, folder: Path) -> Iterator[Terminal]:
    terminal = Terminal(fake_course, folder)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()


@posix
def test_keys_run_again_give_a_hint_and_quit(terminal: Terminal, folder: Path) -> None:
    terminal.wait_for("lab 1.1")
    terminal.wait_for("q quit")
    terminal.press("r")
    terminal.wait_for("q quit")
    save(folder, "hello")
    terminal.wait_for("1/1")
    terminal.wait_for("q quit")
    terminal.press("h")
    terminal.wait_for("Nothing is red")
    guards = children_of(terminal.process.pid)
    terminal.press("q")
    assert terminal.ended() == 0
    assert_gone(guards)


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_no_process(terminal: Terminal, number: signal.Signals) -> None:
    terminal.wait_for("q quit")
    guards = children_of(terminal.process.pid)
    os.kill(terminal.process.pid, number)
    assert terminal.ended() == (-number if number == signal.SIGKILL else 0)
    assert_gone(guards)


def children_of(pid: int) -> list[int]:
    """The guard, as /proc has it; nothing where there is no /proc."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    text = listed.read_text(encoding="ascii") if listed.exists() else ""
    found = [int(child) for child in text.split()]
    assert found or sys.platform != "linux"
    return found


def assert_gone(pids: list[int]) -> None:
    for _ in range(500):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"still running: {pids}")


def test_without_a_terminal_reports_are_plain_text(fake_course: Path, folder: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from pi_course_kit import checkpoint\n"
        f"checkpoint.data_dir = lambda kind: Path({str(fake_course)!r})\n"
        "from pi_course_kit.cli import main\n"
        f"main(['watch', {str(folder)!r}])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("---"):
        lines.append(process.stdout.readline().decode())
    process.terminate()
    assert process.wait(timeout=HANG) == 0
    process.stdout.close()
    assert lines[0].endswith("(end with Ctrl-C)\n")
    assert "\x1b" not in "".join(lines)


def test_watch_outside_a_practice_folder_is_wrong_use(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from pi_course_kit.cli import main

    result = CliRunner().invoke(main, ["watch", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not a practice folder" in result.stderr
