"""What a run of learner code may take: seconds, memory, output, processes.

`Limits` are the numbers; the rest enforces, inside the child, those that a process can put on
itself. What it can't (a loop that swallows every exception, a flood of output) the supervisor
ends from outside.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    test_seconds: float = 5.0  # one test
    grace_seconds: float = 2.0  # then the supervisor kills
    red_seconds: float = 7.0  # after it, a run that has failed starts no further test
    total_seconds: float = 60.0  # the whole run
    memory_bytes: int = 1024 * MIB  # beyond what the interpreter has at the start
    output_bytes: int = 10_000_000
    tail_bytes: int = 64 * 1024  # of the output, kept for the report
    forks: int = 64  # in one test

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class TimeIsUp(BaseException):
    """Not an Exception, so that a learner's `except Exception` in a loop does not eat it."""


class Alarm:
    """Raises TimeIsUp in the main thread, so that the traceback names the line that hangs.

    `struck` remembers it, since a learner's bare `except:` or asyncio may swallow the exception;
    it then rings again each second.
    """

    def __init__(self, where: Callable[[FrameType | None], str]) -> None:
        self.struck = False
        self.place = ""
        self._where = where
        self._armed = False

    @contextmanager
    def ring_after(self, seconds: float) -> Generator[None]:
        if not _has_alarm():
            yield
            return
        signal.signal(signal.SIGALRM, self._ring)
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
        try:
            yield
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def put_off(self, seconds: float) -> None:
        """Ring that long from now: something has come of what runs."""
        if self._armed and not self.struck:
            signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)

    def _ring(self, _number: int, frame: FrameType | None) -> None:
        if not self._armed:
            return
        if not self.struck:
            self.struck = True
            self.place = self._where(frame)
        raise TimeIsUp


def _has_alarm() -> bool:
    return sys.platform != "win32"


class Memory:
    """A cap on the address space, where the system has one (macOS accepts and ignores it)."""

    def __init__(self, extra: int) -> None:
        self._before: tuple[int, int] | None = None
        if sys.platform != "linux":
            return
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        self._before = resource.getrlimit(resource.RLIMIT_AS)
        hard = self._before[1]
        soft = now + extra if hard == resource.RLIM_INFINITY else min(now + extra, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    def lift(self) -> None:
        """Room for the report of a MemoryError, whose traceback holds the memory."""
        if self._before is not None and sys.platform == "linux":
            import resource

            resource.setrlimit(resource.RLIMIT_AS, self._before)


class ForkCount:
    """Counts forks in memory that all descendants share; one too many ends the whole group."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 16)

    @property
    def exceeded(self) -> bool:
        most, count = self._read()
        return count > most

    def reset(self, most: int) -> None:
        self._shared[:16] = struct.pack("qq", most, 0)

    def add(self) -> None:
        most, count = self._read()
        self._shared[:16] = struct.pack("qq", most, count + 1)
        if self.exceeded and sys.platform != "win32":
            os.killpg(0, signal.SIGKILL)

    def _read(self) -> tuple[int, int]:
        return struct.unpack("qq", self._shared[:16])
