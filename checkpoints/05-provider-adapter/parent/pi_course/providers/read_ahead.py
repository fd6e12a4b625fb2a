"""The body of a response, read by a task of its own.

httpx gives a body in small pieces, and many of them come with one read from the socket. Taken one
by one, httpx and our parsing push each other out of the processor's cache at every piece, which
costs more than the parsing. So a task reads on until it has to wait, and then all that has come is
given at once. Nothing comes later for it: as soon as the task waits, the reader has its turn.
"""

import asyncio
from collections.abc import AsyncIterator

AHEAD_BYTES = 64 * 1024  # that nobody has taken; then the server has to wait


class ReadAhead:
    """An async iterator over the bytes. What the body raises is raised here, after its bytes."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._news = asyncio.Event()  # pieces, or the end
        self._room = asyncio.Event()
        self._closed = False
        self._task = asyncio.create_task(self._read(body))

    async def _read(self, body: AsyncIterator[bytes]) -> None:
        try:
            async for piece in body:
                if self._closed:
                    continue
                self._pieces.append(piece)
                self._size += len(piece)
                self._news.set()
                if self._size >= AHEAD_BYTES:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._news.set()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await self._news.wait()
        if not self._pieces:
            self._task.result()
            raise StopAsyncIteration
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if not self._task.done():
            self._news.clear()
        self._room.set()
        return data

    async def close(self, seconds: float) -> None:
        """Give the body `seconds` to end, so that the connection can be used again; then stop it.

        The task is cancelled where it waits inside of httpx, and never for room: generators that
        were only dropped would be closed some time later, by tasks that nobody knows.
        """
        self._closed = True
        self._room.set()
        try:
            await asyncio.wait({self._task}, timeout=seconds)
        finally:
            self._task.cancel()
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.exception()  # looked at, or the loop would log it
