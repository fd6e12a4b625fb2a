"""One object for a process and its outcome: events by iteration, a final fact by `result()`.

The producer never waits: what nobody has read yet is kept, however much it is. Who waits for a
producer gets a future of the running event loop, made at that moment, so a stream can be made and
pushed to before any loop runs.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, TypeVar

from pi_course.errors import PiError
from pi_course.messages import AssistantMessage, ModelEvent
from pi_course.wire import InvalidValue

T = TypeVar("T")
R = TypeVar("R")


class StreamClosed(PiError):
    """The stream was ended before any event or caller gave it a result."""


class _NotGiven:
    """Says that `end` got no result, since None is a result like any other."""


_NOT_GIVEN: Final = _NotGiven()


class EventStream(Generic[T, R]):
    """Events of type T in order, then one result of type R.

    One terminal event (`is_complete` says which) settles both: it is the last one delivered, and
    `extract_result` takes the result from it. What comes after it is ignored.

    One consumer only: each event is delivered once, so two would share the events between them.
    Whoever stops reading, by break or by cancellation, takes nothing along; the next consumer goes
    on at the next event. `result()` is for any number of awaiters and needs no consumer.

    `is_complete` must not raise. `extract_result` may: `result()` then raises that error. All
    methods belong to the thread of the event loop.

    Example:
        >>> stream = EventStream[str, int](lambda event: event == "done", len)
        >>> for event in ["one", "two", "done", "late"]:
        ...     stream.push(event)
        >>> async def read() -> tuple[list[str], int]:
        ...     return [event async for event in stream], await stream.result()
        >>> asyncio.run(read())
        (['one', 'two', 'done'], 4)
    """

    def __init__(self, is_complete: Callable[[T], bool], extract_result: Callable[[T], R]) -> None:
        self._is_complete = is_complete
        self._extract_result = extract_result
        self._events: deque[T] = deque()
        self._ended = False
        self._result: R | _NotGiven = _NOT_GIVEN
        self._failure: Exception | None = None
        self._readers: list[asyncio.Future[None]] = []
        self._awaiters: list[asyncio.Future[None]] = []

    def push(self, event: T) -> None:
        """Deliver an event; a terminal one ends the stream. Ignored once the stream has ended."""
        if self._ended:
            return
        if self._is_complete(event):
            self._settle(event)
        self._events.append(event)
        _wake(self._readers)

    def end(self, result: R | _NotGiven = _NOT_GIVEN) -> None:
        """End without an event. Without a result, `result()` raises StreamClosed.

        Changes nothing once the stream has ended.
        """
        if self._ended:
            return
        self._result = result
        self._finish()
        _wake(self._readers)

    async def result(self) -> R:
        """Wait for the end; the same object, or the same failure, for everyone who asks."""
        if not self._ended:
            await _wait_in(self._awaiters)
        if self._failure is not None:
            raise self._failure
        if isinstance(self._result, _NotGiven):
            raise StreamClosed(
                "the stream was closed by end() without a result: "
                "push a terminal event, or call end(result)"
            )
        return self._result

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        # The event stays in the queue until the reader really runs: a reader that is cancelled
        # after its wake-up has not taken anything.
        while not self._events:
            if self._ended:
                raise StopAsyncIteration
            await _wait_in(self._readers)
        return self._events.popleft()

    def _settle(self, event: T) -> None:
        try:
            self._result = self._extract_result(event)
        except Exception as error:
            # Kept as a plain value: a future would log it if nobody asks for the result.
            self._failure = error
        self._finish()

    def _finish(self) -> None:
        self._ended = True
        _wake(self._awaiters)


async def _wait_in(waiters: list[asyncio.Future[None]]) -> None:
    waiter = asyncio.get_running_loop().create_future()
    waiters.append(waiter)
    try:
        await waiter
    finally:
        waiters.remove(waiter)


def _wake(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():  # woken by the push before, or cancelled
            waiter.set_result(None)


class AssistantMessageEventStream(EventStream[ModelEvent, AssistantMessage]):
    """The stream of one reply. Done or Error ends it; the message in it is the result."""

    def __init__(self) -> None:
        super().__init__(self._is_last, self._message_of)

    @staticmethod
    def _is_last(event: ModelEvent) -> bool:
        return event.type in ("done", "error")

    @staticmethod
    def _message_of(event: ModelEvent) -> AssistantMessage:
        if event.type == "done":
            return event.message
        if event.type == "error":
            return event.error
        raise InvalidValue(f"a {event.type} event holds no final message, only done and error do")
