"""A conversation: lines in, replies on a screen, and a history that both sides go by.

A model remembers nothing. What looks like memory is the history, sent whole with each line.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import aclosing
from typing import Final, Literal, TypeAlias, assert_never

from pi_course.messages import (
    AgentContext,
    AgentMessage,
    AssistantMessage,
    Done,
    Error,
    Model,
    ModelEvent,
    ModelStream,
    Signal,
    Start,
    SystemMessage,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    user_message,
)

Write: TypeAlias = Callable[[str], object]
"""Must put the text out at once and add nothing, least of all a newline."""

History: TypeAlias = Literal["on_done", "from_start"]

_CUT_OFF: Final = {"stop_reason": "aborted", "error_message": "interrupted"}


def type_out(text: str) -> None:
    """The Write of a terminal. Unflushed, a line would wait for its end and then appear whole."""
    print(text, end="", flush=True)


async def render_stream(stream: AsyncIterable[ModelEvent], write: Write) -> AssistantMessage | None:
    """Write a reply as it comes. Returns it if it is whole; the history is not its business."""
    message: AssistantMessage | None = None
    shown: int | None = None  # the block that was written last
    async for event in stream:
        match event:
            case Start():
                write("assistant> ")
            case TextDelta():
                if shown not in (None, event.content_index):
                    write("\n")
                write(event.delta)
                shown = event.content_index if event.delta else shown
            case ToolCallDelta() | ToolCallEnd():
                pass
            case Done():
                message = event.message
                write("\n\n")
            case Error():
                line = "" if shown is None else "\n"
                write(f"{line}[error] {event.error.error_message or event.reason}\n\n")
            case _:
                assert_never(event)
    return message


class Conversation:
    """The history of a talk with one model, and the one way to add to it.

    history="on_done": a reply goes in when it is whole; one that failed leaves no trace.
    history="from_start": it goes in when it starts and grows there, as in Pi, so that who reads
    the history sees it growing. It stays there failed or not, and readers mind its stop_reason.
    """

    def __init__(
        self, model: Model, *, system: str | None = None, history: History = "on_done"
    ) -> None:
        if history not in ("on_done", "from_start"):
            raise ValueError(f"history is {history!r}: choose 'on_done' or 'from_start'")
        self._model = model
        self._history = history
        self._messages: list[AgentMessage] = []
        if system:
            self._messages.append(SystemMessage(content=system, timestamp=0))

    @property
    def messages(self) -> tuple[AgentMessage, ...]:
        return tuple(self._messages)

    async def say(
        self, text: str, write: Write, *, signal: Signal | None = None
    ) -> AssistantMessage | None:
        """Send a line with all that was said before it; returns the reply if it is whole."""
        self._messages.append(user_message(text))
        stream = self._model.stream(AgentContext(self._messages), signal=signal)
        if self._history == "from_start":
            async with aclosing(self._into_history(stream)) as events:
                return await render_stream(events, write)
        message = await render_stream(stream, write)
        if message is not None:
            self._messages.append(message)
        return message

    async def _into_history(self, stream: ModelStream) -> AsyncGenerator[ModelEvent, None]:
        """Pass the events on. Before each one the history takes in what the reply is by then."""
        place = len(self._messages)
        reply: AssistantMessage | None = None
        settled = False
        try:
            async for event in stream:
                match event:
                    case Done() | Error():
                        reply, settled = await stream.result(), True
                    case _:
                        reply = event.partial
                self._messages[place:] = [reply]
                yield event
        finally:
            # An interrupt, or a screen that is gone: half a reply must not pass for a whole one.
            if reply is not None and not settled:
                self._messages[place] = reply.model_copy(update=_CUT_OFF)
