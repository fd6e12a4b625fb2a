"""One forked child per run, watched from outside, and nothing left behind.

The guard's own process is the one that forks: it has imported pytest and collected the tests,
runs no learner code and has no other children. On Linux it is a subreaper, so whatever a run
starts, daemons too, ends up as its child and is killed when the run is over.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from pi_course_kit.limits import ForkCount, Limits

Why = Literal["output", "forks", "time", "total", "stopped"]

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SWEEP_SECONDS = 3.0


class Supervisor:
    """Forks runs, and ends one when `stopped` says so; `stop` is the descriptor to wait at."""

    def __init__(self, stop: int, stopped: Callable[[], bool]) -> None:
        self._stop = stop
        self._stopped = stopped
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._wake, write = os.pipe()
        os.set_blocking(write, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)

    def run(
        self, child: Callable[[], None], limits: Limits, records: Path, forks: ForkCount
    ) -> dict[str, Any]:
        """Run `child` in a fork that leads a session of its own; say how it ended."""
        out, into = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._become_run(parent, out, into)
                child()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(70)
        os.close(into)
        output = Output(out, limits)
        why, status = self._watch(pid, output, limits, records)
        status = _end(pid, status)
        left = _sweep()
        output.drain()
        if forks.exceeded:
            why = "forks"
        return {"status": status, "why": why, "left": left, "printed": output.text()}

    def _become_run(self, parent: int, out: int, into: int) -> None:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(70)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(into, 1)
        os.dup2(into, 2)
        for descriptor in (out, into, self._wake, self._stop):
            os.close(descriptor)

    def _watch(
        self, pid: int, output: Output, limits: Limits, records: Path
    ) -> tuple[Why | None, int | None]:
        """Wait for the child's end and give its status, or the reason to kill it."""
        began = heard = time.monotonic()
        size = 0
        patience = limits.test_seconds + limits.grace_seconds
        while True:
            if (status := _reap(pid)) is not None:
                return None, status
            now = time.monotonic()
            if (grown := _size(records)) != size:
                size, heard = grown, now
            if why := self._reason(now - heard, patience, now - began, output, limits):
                return why, None
            left = min(heard + patience, began + limits.total_seconds) - now
            ready, _, _ = select.select(
                [self._wake, self._stop, *output.open], [], [], min(max(left, 0.0), 0.25) + 0.001
            )
            if self._wake in ready:
                os.read(self._wake, 512)
            if output.open and output.open[0] in ready:
                output.read()

    def _reason(
        self, silent: float, patience: float, age: float, output: Output, limits: Limits
    ) -> Why | None:
        if silent > patience:
            return "time"
        if age > limits.total_seconds:
            return "total"
        if output.excessive:
            return "output"
        return "stopped" if self._stopped() else None


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """The wake-up descriptor is what counts; SIG_IGN would not write to it."""


def _reap(pid: int) -> int | None:
    """The status of the run if it has ended.

    Orphans of the run are collected on the way: as zombies they would look alive to a test that
    asks whether a process is gone.
    """
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == pid:
                return found[1]
    return None


def _size(records: Path) -> int:
    with contextlib.suppress(OSError):
        return records.stat().st_size
    return 0


class Output:
    """What a run printed: all of it counted, the tail kept."""

    def __init__(self, descriptor: int, limits: Limits) -> None:
        os.set_blocking(descriptor, False)
        self.open = [descriptor]
        self._limits = limits
        self._tail = bytearray()
        self._count = 0

    @property
    def excessive(self) -> bool:
        return self._count > self._limits.output_bytes

    def read(self) -> bool:
        """Take what is there; False when there is nothing (now, or for ever)."""
        try:
            data = os.read(self.open[0], 65536)
        except BlockingIOError:
            return False
        if not data:
            os.close(self.open.pop())
            return False
        self._count += len(data)
        self._tail += data
        del self._tail[: -self._limits.tail_bytes]
        return True

    def drain(self) -> None:
        while self.open and self.read():
            pass
        if self.open:
            os.close(self.open.pop())

    def text(self) -> str:
        return tail_text(bytes(self._tail), self._count)


def tail_text(tail: bytes, count: int) -> str:
    text = tail.decode("utf-8", "replace")
    if count <= len(tail):
        return text
    return f"… ({count - len(tail)} bytes before this)\n" + text.partition("\n")[2]


def _end(pid: int, status: int | None) -> int:
    """Kill the run's process group and collect its leader: exit code, or -signal."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # No such group: all gone, or the child was stopped before its setsid().
        if status is None:
            os.kill(pid, signal.SIGKILL)
    if status is None:
        status = os.waitpid(pid, 0)[1]
    return os.waitstatus_to_exitcode(status)


def _sweep() -> int:
    """Kill and reap whatever the run has left; the number of processes that were still alive."""
    killed: set[int] = set()
    limit = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < limit:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        alive = descendants(os.getpid())
        killed |= alive
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        select.select([], [], [], 0.002)
    return len(killed)


def descendants(pid: int) -> set[int]:
    """All processes below `pid`, zombies aside, from /proc; empty where there is none."""
    children: dict[int, list[int]] = {}
    zombies: set[int] = set()
    for entry in os.listdir("/proc") if sys.platform == "linux" else ():
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                # The name in parentheses may hold anything, spaces and parentheses too.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(entry))
        if state == b"Z":
            zombies.add(int(entry))
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found - zombies


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
