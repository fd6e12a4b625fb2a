"""A body that is read by a task of its own: nothing is lost, late, or left behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pi_course.providers.read_ahead import AHEAD_BYTES, ReadAhead


async def pieces(*steps: Any, closed: list[str] | None = None) -> AsyncIterator[bytes]:
    """Bytes are yielded, a number is slept, an exception raised."""
    try:
        for step in steps:
            if isinstance(step, bytes):
                yield step
            elif isinstance(step, Exception):
                raise step
            else:
                await asyncio.sleep(step)
    finally:
        if closed is not None:
            closed.append("closed")


def read(*steps: Any) -> list[bytes]:
    async def inside() -> list[bytes]:
        body = ReadAhead(pieces(*steps))
        got = [data async for data in body]
        await body.close(0)
        return got

    return asyncio.run(inside())


def test_what_comes_together_is_given_together() -> None:
    assert read(b"a", b"b", 0.01, b"c") == [b"ab", b"c"]
    assert read() == []


@pytest.mark.parametrize("taken_first", [True, False])
def test_no_more_is_read_than_there_is_room_for(taken_first: bool) -> None:
    """A reader that is busy elsewhere makes the server wait; nothing is lost by that."""
    size = AHEAD_BYTES // 4
    given: list[int] = []

    async def flood() -> AsyncIterator[bytes]:
        for number in range(20):
            given.append(number)
            yield bytes([number]) * size
            await asyncio.sleep(0)

    async def inside() -> tuple[int, bytes]:
        body = ReadAhead(flood())
        got = await anext(body) if taken_first else b""
        for _ in range(100):
            await asyncio.sleep(0)
        ahead = len(given) * size - len(got)
        got += b"".join([data async for data in body])
        await body.close(0)
        return ahead, got

    ahead, got = asyncio.run(inside())
    assert ahead == AHEAD_BYTES
    assert got == b"".join(bytes([number]) * size for number in range(20))


def test_close_reaches_the_innermost_generator_of_a_body_that_waits_for_room() -> None:
    """A generator inside of another that is merely dropped is closed by a task of the loop."""
    closed: list[str] = []

    async def outer() -> AsyncIterator[bytes]:
        async for data in pieces(*[b"x" * AHEAD_BYTES, 0] * 9, closed=closed):
            yield data

    async def inside() -> tuple[set[Any], list[str]]:
        before = asyncio.all_tasks()
        body = ReadAhead(outer())
        await anext(body)
        for _ in range(10):
            await asyncio.sleep(0)
        await body.close(0)
        return asyncio.all_tasks() - before, closed.copy()

    assert asyncio.run(inside()) == (set(), ["closed"])


def test_close_that_is_cancelled_leaves_no_task() -> None:
    async def inside() -> set[Any]:
        before = asyncio.all_tasks()
        body = ReadAhead(pieces(b"a", 60))
        await anext(body)
        closing = asyncio.create_task(body.close(60))
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait({closing})
        return asyncio.all_tasks() - before

    assert asyncio.run(inside()) == set()


def test_an_exception_comes_after_the_bytes_before_it() -> None:
    async def inside() -> list[bytes]:
        body = ReadAhead(pieces(b"a", OSError("reset")))
        got: list[bytes] = []
        with pytest.raises(OSError, match="reset"):
            async for data in body:
                got.append(data)
        await body.close(0)
        return got

    assert asyncio.run(inside()) == [b"a"]


@pytest.mark.parametrize("seconds", [0, 0.01])
def test_close_stops_a_body_that_waits_and_leaves_no_task(seconds: float) -> None:
    closed: list[str] = []

    async def inside() -> set[Any]:
        before = asyncio.all_tasks()
        body = ReadAhead(pieces(b"a", 60, closed=closed))
        assert await anext(body) == b"a"
        await body.close(seconds)
        return asyncio.all_tasks() - before

    assert asyncio.run(inside()) == set()
    assert closed == ["closed"]


def test_close_gives_the_end_a_moment() -> None:
    closed: list[str] = []

    async def inside() -> bool:
        body = ReadAhead(pieces(b"a", 0.01, b"rest", closed=closed))
        await anext(body)
        started = asyncio.get_running_loop().time()
        await body.close(5)
        return asyncio.get_running_loop().time() - started < 2

    assert asyncio.run(inside()) is True
    assert closed == ["closed"]


def test_an_exception_that_nobody_waited_for_is_not_logged() -> None:
    """Before the body is closed, or as its answer to that."""
    # Pi, report 6133
    logged: list[Any] = []

    async def stubborn() -> AsyncIterator[bytes]:
        yield b"a"
        try:
            await asyncio.sleep(60)
        finally:
            raise OSError("reset while closing")

    async def inside() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, problem: logged.append(problem))
        for failing in (pieces(b"a", OSError("late")), stubborn()):
            body = ReadAhead(failing)
            await anext(body)
            await body.close(0)
            del body
            gc.collect()  # a task says it when it is thrown away

    asyncio.run(inside())
    assert logged == []


def test_a_reader_that_is_cancelled_is_told_so() -> None:
    async def inside() -> bool:
        body = ReadAhead(pieces(60))

        async def take() -> None:
            try:
                await anext(body)
            finally:
                await body.close(0)

        task = asyncio.create_task(take())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(inside()) is True
