"""A model that plays a script: what everything above a model is built and tested with.

It keeps the whole contract of `Model`, failures and aborts included, so that code which works
with it needs no change for a real one. It knows nothing of what it is asked.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_course.abort import Aborted
from pi_course.event_stream import AssistantMessageEventStream
from pi_course.messages import (
    AgentContext,
    AssistantMessage,
    Done,
    Error,
    ModelEvent,
    Signal,
    Start,
    TextContent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallEnd,
    assistant_message,
    text,
)
from pi_course.partial import Draft, PartialEvent


def events_of(message: AssistantMessage, chunk_size: int | None = None) -> Iterator[ModelEvent]:
    """The events that bring a reply, from its start to its end; the last one holds the reply.

    Example:
        >>> [event.type for event in events_of(assistant_message([text("Hello")]), chunk_size=3)]
        ['start', 'text_delta', 'text_delta', 'done']
    """
    start = assistant_message(
        [], provider=message.provider, model=message.model, timestamp=message.timestamp
    )
    draft = Draft(start)
    yield Start(draft.partial())
    for block in message.content:
        match block:
            case TextContent():
                index = draft.open(text(""))
                for piece in _pieces(block.text, chunk_size):
                    draft.append(index, piece)
                    yield TextDelta(index, piece, draft.partial())
            case ToolCall():
                index = draft.open(ToolCall(id=block.id, name=block.name, arguments={}))
                for piece in _pieces(_raw_arguments(block), chunk_size):
                    draft.append(index, piece)
                    yield ToolCallDelta(index, piece, draft.partial())
                draft.replace(index, block)
                yield ToolCallEnd(index, block, draft.partial())
    yield _end(message)


def _pieces(whole: str, size: int | None) -> list[str]:
    length = len(whole) or 1  # an empty text is one empty piece: without it nobody sees the block
    step = size or length
    return [whole[at : at + step] for at in range(0, length, step)]


def _raw_arguments(call: ToolCall) -> str:
    if call.raw_arguments is not None:
        return call.raw_arguments
    return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def _end(message: AssistantMessage) -> Done | Error:
    match message.stop_reason:
        case "error" | "aborted" as reason:
            return Error(reason, message)
        case reason:
            return Done(reason, message)


@dataclass(frozen=True, slots=True)
class ScriptedFailure:
    """A turn that breaks off after `partial_text`."""

    stop_reason: Literal["error", "aborted"]
    error_message: str
    partial_text: str = ""

    def message(self) -> AssistantMessage:
        content = [text(self.partial_text)] if self.partial_text else []
        return assistant_message(content, self.stop_reason, error_message=self.error_message)


Turn: TypeAlias = (
    AssistantMessage
    | ScriptedFailure
    | Callable[[AgentContext], AssistantMessage | ScriptedFailure]
)
"""What the model does in one call. A function may look at the request; what it raises becomes
an Error event."""

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
"""Must let the event loop run, however short the time."""


class ScriptedModel:
    """A Model whose calls take the turns of a script in order; `requests` holds what was asked.

    A block comes `chunk_size` characters at a time (None: whole), and `delay` seconds lie between
    two events. Without a delay, too, the reader has each event before the next one is made, so
    that an abort can land between any two.
    """

    def __init__(
        self,
        turns: Iterable[Turn],
        *,
        chunk_size: int | None = None,
        delay: float = 0.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"chunk_size is {chunk_size}: give 1 or more, or None")
        self.requests: list[AgentContext] = []
        self._turns = tuple(turns)
        self._chunk_size = chunk_size
        self._delay = delay
        self._sleep = sleep

    def stream(
        self, context: AgentContext, *, signal: Signal | None = None
    ) -> AssistantMessageEventStream:
        self.requests.append(context)
        events = self._events(len(self.requests), context)
        stream = AssistantMessageEventStream()
        # The loop holds a task weakly. This one is held by whatever wakes it from its sleep.
        asyncio.create_task(self._play(events, stream, signal))
        return stream

    def _events(self, call: int, context: AgentContext) -> Iterator[ModelEvent]:
        if call > len(self._turns):
            problem = f"call {call} has no turn: the script ends after turn {len(self._turns)}"
            yield _failure(None, "error", problem)
            return
        turn = self._turns[call - 1]
        reply = turn(context) if callable(turn) else turn
        message = reply.message() if isinstance(reply, ScriptedFailure) else reply
        yield from events_of(message, self._chunk_size)

    async def _play(
        self,
        events: Iterator[ModelEvent],
        stream: AssistantMessageEventStream,
        signal: Signal | None,
    ) -> None:
        """Push the events. Here, and nowhere else, what is raised turns into an Error event."""
        last: PartialEvent | None = None
        try:
            while True:
                if signal is not None and signal.aborted:
                    raise Aborted(signal.reason)
                event = next(events)
                stream.push(event)
                if isinstance(event, Done | Error):
                    return
                last = event
                await self._sleep(self._delay)
        except Aborted as stopped:
            stream.push(_failure(last, "aborted", str(stopped)))
        except Exception as error:
            stream.push(_failure(last, "error", f"{type(error).__name__}: {error}"))


def _failure(last: PartialEvent | None, reason: Literal["error", "aborted"], problem: str) -> Error:
    """The end of a reply that broke off after its event `last`: what had come is kept."""
    partial = assistant_message([]) if last is None else last.partial
    failed = partial.model_copy(update={"stop_reason": reason, "error_message": problem})
    return Error(reason, failed)
