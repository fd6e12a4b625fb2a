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
        raise NotImplementedError("Lab 5.2: ProviderModel.stream()")

    async def _fill(self, reply: Reply, context: AgentContext, signal: Signal | None) -> None:
        """Here, and nowhere else, what was raised becomes the end of the stream."""
        raise NotImplementedError("Lab 5.2: ProviderModel._fill()")

    async def _read(self, reply: Reply, context: AgentContext, signal: Signal | None) -> None:
        raise NotImplementedError("Lab 5.2: ProviderModel._read()")


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
