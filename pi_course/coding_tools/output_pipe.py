"""The pipe that a command writes into, read by the event loop as fast as something comes."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

READ_BYTES = 64 * 1024
LAST_READS = 32  # of what lies in the pipe at the end; who still writes may never stop


class OutputPipe:
    """Gives each piece to `take`. `ended` is set when nobody holds the other end any more."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self.ended = asyncio.Event()
        self._take = take
        self._pieces = 0
        self._loop = asyncio.get_running_loop()
        self._from, self.into = os.pipe()
        os.set_blocking(self._from, False)
        self._loop.add_reader(self._from, self._read)

    def started(self) -> None:
        """The command has its own copy of the writing end, or there will never be one."""
        if self.into >= 0:
            os.close(self.into)
            self.into = -1

    def _read(self) -> bool:
        try:
            data = os.read(self._from, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._from)
            self.ended.set()
            return False
        self._pieces += 1
        self._take(data)
        return True

    async def drain(self, idle: float, at_most: float) -> None:
        """Wait for the end, for `idle` seconds without a piece, and no longer than `at_most`."""
        until = self._loop.time() + at_most
        pieces = -1
        while not self.ended.is_set() and pieces != self._pieces:
            left = until - self._loop.time()
            if left <= 0:
                return
            pieces = self._pieces
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), min(idle, left))

    def close(self) -> None:
        self.started()
        for _ in range(LAST_READS):
            if self.ended.is_set() or not self._read():
                break
        self._loop.remove_reader(self._from)
        os.close(self._from)
