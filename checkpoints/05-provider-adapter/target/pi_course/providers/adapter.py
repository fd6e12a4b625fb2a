"""A Model on top of a transport: asks it for chunks, and lets a reply grow from them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from pi_course.abort import Aborted, AbortSignal
from pi_course.event_stream import AssistantMessageEventStream
from pi_course.messages import AgentContext, Signal, assistant_message
from pi_course.providers.chunks import (
    ProviderChunk,
    ProviderError,
    ProviderRequest,
    ProviderTransport,
)
from pi_course.providers.reply import Reply

ToRequest: TypeAlias = Callable[[AgentContext], ProviderRequest]
"""Writes the provider's JSON. Must be pure: the context is the same afterwards."""


class ProviderModel:
    """Keeps the contract of Model: whatever fails below it ends the stream as one Error."""

    def __init__(
        self, *, provider: str, model: str, transport: ProviderTransport, to_request: ToRequest
    ) -> None:
        self.provider = provider
        self.model = model
        self._transport = transport
        self._to_request = to_request
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop holds a task only weakly

    def stream(
        self, context: AgentContext, *, signal: Signal | None = None
    ) -> AssistantMessageEventStream:
        stream = AssistantMessageEventStream()
        start = assistant_message([], provider=self.provider, model=self.model)
        reply = Reply(start, context.messages, stream.push)
        task = asyncio.create_task(self._fill(reply, context, signal))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return stream

    async def _fill(self, reply: Reply, context: AgentContext, signal: Signal | None) -> None:
        """Here, and nowhere else, what was raised becomes the end of the stream."""
        try:
            check(signal)
            reply.begin()
            await self._read(reply, context, signal)
            reply.finish()
        except asyncio.CancelledError:
            reply.fail("aborted", str(Aborted(signal.reason if signal else "the task was ended")))
            if signal is None or not signal.aborted:
                raise
        except Aborted as stopped:
            reply.fail("aborted", str(stopped))
        except ProviderError as error:
            reply.fail("error", str(error))
        except Exception as error:
            problem = type(error).__name__
            with suppress(Exception):  # from its own __str__: the stream must end all the same
                problem += f": {error}"
            reply.fail("error", problem)

    async def _read(self, reply: Reply, context: AgentContext, signal: Signal | None) -> None:
        chunks = self._transport.stream(self._to_request(context), signal=signal)
        try:
            with cancelled_by(signal):
                async for chunk in chunks:
                    check(signal)
                    reply.take(chunk)
        finally:
            # Now and not some time later: with the last event nothing is open any more.
            await close(chunks)


def check(signal: Signal | None) -> None:
    if signal is not None and signal.aborted:
        raise Aborted(signal.reason)


@contextmanager
def cancelled_by(signal: Signal | None) -> Generator[None]:
    """While inside, an abort cancels this task: a transport that waits would not see it.

    One watcher for the whole reply. To race the signal against each chunk would cost more than
    all the rest of the reading.
    """
    if not isinstance(signal, AbortSignal):
        yield
        return
    task = asyncio.current_task()
    assert task is not None
    watcher = asyncio.create_task(_cancel_when_aborted(signal, task))
    try:
        yield
    finally:
        watcher.cancel()


async def _cancel_when_aborted(signal: AbortSignal, task: "asyncio.Task[None]") -> None:
    await signal.wait()
    task.cancel()


async def close(chunks: AsyncIterator[ProviderChunk]) -> None:
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
