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
        raise NotImplementedError("Lab 8.3: MutationQueue.turn()")

    def _leave(self, key: str, mine: Future[None]) -> None:
        raise NotImplementedError("Lab 8.3: MutationQueue._leave()")


async def _end_of(turn: Future[None]) -> None:
    """Wait for a turn that may end in another thread, for another loop."""
    raise NotImplementedError("Lab 8.3: _end_of()")


def file_key(path: Path) -> str:
    """The same for all names of a file: through links, `..`, and where case does not count.

    Two files whose names differ in case only share a queue. They wait for each other, and that is
    all that happens.
    """
    raise NotImplementedError("Lab 8.3: file_key()")


async def to_its_end(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that waits for the disk in a thread, so that the loop goes on.

    A thread can't be stopped. If the task is cancelled, this waits for it all the same: a write
    must not go on when its turn is over.
    """
    raise NotImplementedError("Lab 8.3: to_its_end()")
