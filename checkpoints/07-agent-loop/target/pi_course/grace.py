"""Waiting for tasks that may not want to end: a time to hear the signal, then a cancellation.

An abort asks, and whoever is asked may finish what it has in hand. A cancellation of the waiting
task itself (Jupyter's stop button, Ctrl-C) does not ask: then the tasks are cancelled at once.
Either way none of them is left running behind the caller's back.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from pi_course.abort import AbortSignal

GRACE_SECONDS = 2.0

AnyTask: TypeAlias = "asyncio.Task[Any]"


@asynccontextmanager
async def watched(signal: AbortSignal) -> AsyncGenerator[AnyTask]:
    """A task that is done as soon as the signal is aborted: something to wait for beside others."""
    stop = asyncio.create_task(signal.wait())
    try:
        yield stop
    finally:
        stop.cancel()
        await asyncio.wait({stop})


@asynccontextmanager
async def grace_period(stop: AnyTask, seconds: float) -> AsyncGenerator[None]:
    """What runs inside is cancelled `seconds` after `stop` is done. Then the block is left.

    It runs in the task that is here already: one more for each request would cost more than all
    the rest of a turn.
    """
    left = False
    limit = asyncio.timeout(None)

    def begin(_: AnyTask) -> None:
        if not left:
            limit.reschedule(asyncio.get_running_loop().time() + seconds)

    stop.add_done_callback(begin)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():  # what runs inside has limits of its own
            raise
    finally:
        left = True
        stop.remove_done_callback(begin)


async def within_grace(tasks: Iterable[AnyTask], stop: AnyTask, seconds: float) -> None:
    """Return when all tasks are done; `seconds` after `stop` is done, late ones are cancelled.

    Raises nothing of theirs: who made a task reads its outcome.
    """
    pending = set(tasks)
    try:
        while pending and not stop.done():
            _, pending = await asyncio.wait({*pending, stop}, return_when=asyncio.FIRST_COMPLETED)
            pending.discard(stop)
        if pending:
            _, pending = await asyncio.wait(pending, timeout=seconds)
    finally:
        if pending:
            await cancel_and_join(pending, seconds)


async def cancel_and_join(tasks: Iterable[AnyTask], seconds: float) -> None:
    """Cancel the tasks and wait until they are gone, but no longer than `seconds`.

    A cancellation of our own meanwhile (a second Ctrl-C) is kept until then and goes on at the end:
    let through at once, it would leave the tasks running. A task that ignores even this is given
    up after that time. Python cannot end it.
    """
    tasks = set(tasks)
    for task in tasks:
        task.cancel()
    joined = asyncio.create_task(asyncio.wait(tasks, timeout=seconds))
    cancelled: asyncio.CancelledError | None = None
    while not joined.done():
        try:
            await asyncio.wait({joined})
        except asyncio.CancelledError as again:
            cancelled = again
    if cancelled is not None:
        raise cancelled
