"""The pipe that a command writes into, read by the event loop as fast as something comes."""

import asyncio
import os
from collections.abc import Callable

READ_BYTES = 64 * 1024  # as much as a pipe holds


class OutputPipe:
    """Gives each piece to `take`. `ended` is done when nobody holds the other end any more."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._take = take
        self._pieces = 0
        self._from, self.into = os.pipe()
        os.set_blocking(self._from, False)
        self._loop.add_reader(self._from, self._read)

    def started(self) -> None:
        """The command has its own copy of the writing end, or there will never be one."""
        if self.into >= 0:
            os.close(self.into)
            self.into = -1

    def _read(self) -> None:
        try:
            data = os.read(self._from, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._pieces += 1
            self._take(data)
        else:
            self._loop.remove_reader(self._from)
            self.ended.set_result(None)

    async def drain(self, idle: float, at_most: float) -> None:
        """Wait for the end, for `idle` seconds without a piece, and no longer than `at_most`."""
        until = self._loop.time() + at_most
        pieces = -1
        while not self.ended.done() and pieces != self._pieces:
            left = until - self._loop.time()
            if left <= 0:
                return
            pieces = self._pieces
            await asyncio.wait([self.ended], timeout=min(idle, left))

    def close(self) -> None:
        """Take what still lies in the pipe with one last read, and close both ends."""
        self.started()
        if not self.ended.done():
            self._read()  # what lies in the pipe, and no more: who still writes may never stop
        self._loop.remove_reader(self._from)
        os.close(self._from)
