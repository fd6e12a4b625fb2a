"""One change of a file at a time, in the order in which they came.

Two edits that read the same text and then write lose one of the two. The queue knows a file by its
canonical path, whatever name it was given, and belongs to no event loop: the same tools may be
used from several loops and threads.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import ParamSpec, TypeVar

from pi_course.coding_tools.lookalikes import plain

P = ParamSpec("P")
T = TypeVar("T")


class MutationQueue:
    def __init__(self) -> None:
        self._last: dict[str, Future[None]] = {}  # by file: the end of the turn that came last
        self._lock = Lock()

    @asynccontextmanager
    async def turn(self, path: Path) -> AsyncGenerator[None]:
        """Inside, nobody else changes this file. Check, read and write belong inside."""
        key = file_key(path)
        mine: Future[None] = Future()
        with self._lock:
            before = self._last.get(key)
            self._last[key] = mine
        try:
            if before is not None:
                await _end_of(before)
            yield
        finally:
            if before is None or before.done():
                self._leave(key, mine)
            else:  # given up: whoever comes next still has to wait for the one before
                before.add_done_callback(lambda _: self._leave(key, mine))

    def _leave(self, key: str, mine: Future[None]) -> None:
        with self._lock:
            if self._last.get(key) is mine:
                del self._last[key]
        mine.set_result(None)


async def _end_of(turn: Future[None]) -> None:
    """Wait for a turn that may end in another thread, for another loop."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def wake(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nobody waits there any more
            loop.call_soon_threadsafe(ended.set)

    turn.add_done_callback(wake)
    await ended.wait()


def file_key(path: Path) -> str:
    """The same for all names of a file: through links, `..`, and where case does not count.

    Two files whose names differ in case only share a queue. They wait for each other, and that is
    all that happens.
    """
    return plain(os.path.realpath(path)).casefold()


async def to_its_end(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that waits for the disk in a thread, so that the loop goes on.

    A thread can't be stopped. If the task is cancelled, this waits for it all the same: a write
    must not go on when its turn is over.
    """
    loop = asyncio.get_running_loop()
    job = loop.run_in_executor(None, partial(function, *args, **kwargs))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        while not job.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([job])
        job.exception()  # looked at, or asyncio reports it as forgotten
        raise
