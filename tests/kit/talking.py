"""What the tests of `chat` and `agent` stand on: a terminal to type at, a server that answers."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

from pi_course_kit.loopback import Call, LoopbackServer, Reply

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

    def until(self, text: str, seconds: float = PATIENCE) -> str:
        """Wait for a text; returns what came since the last wait, the text included."""
        end = time.monotonic() + seconds
        while (found := self.screen.find(text, self._seen)) < 0:
            if time.monotonic() > end or not self._read(0.2):
                raise AssertionError(f"{text!r} did not come; the screen: {self.screen!r}")
        start, self._seen = self._seen, found + len(text)
        return self.screen[start : self._seen]

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def hang_up(self) -> int:
        """Close the terminal as a window is closed; returns the program's exit code."""
        os.close(self._master)
        self._master = -1
        return self._process.wait(PATIENCE)

    def running(self, seconds: float) -> bool:
        """Whether the program still runs after having read the screen for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self._read(0.1) or self._process.poll() is not None:
                return False
        return True

    def wait(self) -> int:
        """The exit code, with the screen read to its end."""
        end = time.monotonic() + PATIENCE
        while self._read(0.2) and self._process.poll() is None:
            assert time.monotonic() < end, f"it does not end; the screen: {self.screen!r}"
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
        if self._master >= 0:
            os.close(self._master)


class Endless:
    """A model that wants a command run: one that prints begun and sleeps, with a mark on it."""

    def __init__(self, text: str = "", *, deaf: bool = False) -> None:
        self._mark = f"mark-{uuid.uuid4().hex}"
        program = "import time; print('be' + 'gun', flush=True); time.sleep(600)"
        if deaf:
            program = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {program}"
        command = shlex.join([sys.executable, "-c", program, self._mark])
        call = Call("call_1", "bash", json.dumps({"command": command}))
        self.turn = Reply(text=text, calls=(call,))

    def is_left(self) -> bool:
        """Whether the command is among the processes of this machine."""
        command = ["ps", "-ww", "-eo", "args"]  # whole lines: without ww they may be cut
        shown = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        return self._mark in shown.stdout


@contextlib.contextmanager
def served(turns: Any, **options: Any) -> Generator[LoopbackServer]:
    """The kit's server, in a thread, so that the test can press keys meanwhile."""
    server = LoopbackServer(turns, **options)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result(PATIENCE)

    try:
        run(server.start())
        yield server
    finally:
        run(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def at(server: LoopbackServer, provider: str = "openai") -> list[str]:
    url = server.openai_url if provider == "openai" else server.anthropic_url
    return ["--base-url", url, "--model", "tiny-1", "--provider", provider]
