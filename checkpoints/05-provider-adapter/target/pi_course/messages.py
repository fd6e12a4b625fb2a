"""The agent's own messages: what is saved, and what everything else is derived from.

A provider's payload and the text on a screen are made from these values and thrown away again.
The list of messages, the transcript, is the only long-lived fact, and its order is the order in
which things happened. Instructions are facts too: the system prompt is replayed from them.
"""

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias, assert_never

from pydantic import AfterValidator, Field, TypeAdapter

from pi_course.partial import CallEvent, DeltaEvent, PartialEvent
from pi_course.wire import InvalidValue, Json, WireModel, frozen_json, parse


class TextContent(WireModel):
    type: Literal["text"] = "text"
    text: str


class ToolCall(WireModel):
    type: Literal["toolCall"] = "toolCall"
    id: str
    name: str
    arguments: Json  # JSON, and that is all that is known: the tool checks what it can take
    raw_arguments: str | None = None  # the text the provider sent, kept when it was cut off


AssistantContent: TypeAlias = Annotated[TextContent | ToolCall, Field(discriminator="type")]


class Usage(WireModel):
    input: int
    output: int
    total_tokens: int


EMPTY_USAGE = Usage(input=0, output=0, total_tokens=0)

StopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted"]


class SystemMessage(WireModel):
    """An instruction. The first is the base; a later one adds content and changes sections.

    A section replaces the earlier one of that name; None deletes it.
    """

    role: Literal["system"] = "system"
    content: str
    sections: Annotated[Mapping[str, str | None], AfterValidator(frozen_json)] | None = None
    timestamp: int


class UserMessage(WireModel):
    role: Literal["user"] = "user"
    content: tuple[TextContent, ...]
    timestamp: int


class AssistantMessage(WireModel):
    role: Literal["assistant"] = "assistant"
    content: tuple[AssistantContent, ...]
    provider: str
    model: str
    usage: Usage
    stop_reason: StopReason
    error_message: str | None = None
    timestamp: int


class ToolResultMessage(WireModel):
    role: Literal["toolResult"] = "toolResult"
    tool_call_id: str  # the id of the call that this answers
    tool_name: str
    content: tuple[TextContent, ...]
    details: Json = None
    is_error: bool
    timestamp: int


AgentMessage: TypeAlias = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolResultMessage,
    Field(discriminator="role"),
]


class ToolDefinition(WireModel):
    name: str
    description: str
    parameters: Annotated[Mapping[str, object], AfterValidator(frozen_json)]  # a JSON Schema


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What one model call sees. A view of the transcript: it neither stores nor shortens it."""

    messages: Sequence[AgentMessage]
    tools: Sequence[ToolDefinition] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))  # the caller's list may grow
        object.__setattr__(self, "tools", None if self.tools is None else tuple(self.tools))


def text(value: str) -> TextContent:
    return TextContent(text=value)


def user_message(value: str) -> UserMessage:
    return UserMessage(content=(text(value),), timestamp=int(time.time() * 1000))


def assistant_message(
    content: Sequence[AssistantContent],
    stop_reason: StopReason = "stop",
    *,
    provider: str = "scripted",
    model: str = "scripted-v1",
    usage: Usage = EMPTY_USAGE,
    error_message: str | None = None,
    timestamp: int | None = None,
) -> AssistantMessage:
    return AssistantMessage(
        content=tuple(content),
        provider=provider,
        model=model,
        usage=usage,
        stop_reason=stop_reason,
        error_message=error_message,
        timestamp=int(time.time() * 1000) if timestamp is None else timestamp,
    )


def text_of(message: AgentMessage) -> str:
    """The text view of a message, for a screen or a search. Tool calls are left out.

    Example:
        >>> call = ToolCall(id="call_1", name="read", arguments={"path": "README.md"})
        >>> text_of(assistant_message([text("read first"), call, text("then answer")]))
        'read first\\nthen answer'
    """
    if isinstance(message, SystemMessage):
        return system_message_text(message)
    return "\n".join(block.text for block in message.content if isinstance(block, TextContent))


def current_system_message(messages: Iterable[AgentMessage]) -> SystemMessage | None:
    """Replay all system messages, in order, into the one that holds now."""
    system = [message for message in messages if isinstance(message, SystemMessage)]
    if not system:
        return None
    sections: dict[str, str] = {}
    for message in system:
        for name, value in (message.sections or {}).items():
            if value is None:
                sections.pop(name, None)
            else:
                sections[name] = value
    return SystemMessage(
        content="\n\n".join(message.content for message in system if message.content),
        sections=sections or None,
        timestamp=system[0].timestamp,
    )


def system_message_text(message: SystemMessage) -> str:
    """What the model reads of a system message: its content, then its sections in order."""
    parts = [message.content, *(message.sections or {}).values()]
    return "\n\n".join(part for part in parts if part)


def current_system_prompt(messages: Iterable[AgentMessage]) -> str | None:
    message = current_system_message(messages)
    return None if message is None else system_message_text(message)


@dataclass(frozen=True, slots=True, init=False)
class Start(PartialEvent):
    type: ClassVar[Literal["start"]] = "start"


@dataclass(frozen=True, slots=True, init=False)
class TextDelta(DeltaEvent):
    type: ClassVar[Literal["text_delta"]] = "text_delta"


@dataclass(frozen=True, slots=True, init=False)
class ToolCallDelta(DeltaEvent):
    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"  # a piece of raw_arguments


@dataclass(frozen=True, slots=True, init=False)
class ToolCallEnd(CallEvent):
    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"  # whole; not yet known to be legal


@dataclass(frozen=True, slots=True)
class Done:
    type: ClassVar[Literal["done"]] = "done"
    reason: Literal["stop", "length", "toolUse"]
    message: AssistantMessage

    def __post_init__(self) -> None:
        _check_reason(self.reason, self.message.stop_reason, "stop", "length", "toolUse")


@dataclass(frozen=True, slots=True)
class Error:
    """The stream failed or was stopped. The error is a message too: it keeps what had come."""

    type: ClassVar[Literal["error"]] = "error"
    reason: Literal["error", "aborted"]
    error: AssistantMessage

    def __post_init__(self) -> None:
        _check_reason(self.reason, self.error.stop_reason, "error", "aborted")


def _check_reason(reason: str, found: StopReason, *allowed: StopReason) -> None:
    if reason not in allowed or reason != found:
        raise InvalidValue(
            f"reason {reason!r} must be one of {allowed} and equal the stop_reason {found!r}"
        )


ModelEvent: TypeAlias = Start | TextDelta | ToolCallDelta | ToolCallEnd | Done | Error


class Signal(Protocol):
    """Tells a model or a tool that its caller wants it to stop."""

    @property
    def aborted(self) -> bool: ...

    @property
    def reason(self) -> object: ...


class ModelStream(Protocol):
    """One reply on its way: iterate it for the events, await `result()` for the final message."""

    def __aiter__(self) -> AsyncIterator[ModelEvent]: ...

    async def result(self) -> AssistantMessage: ...


class Model(Protocol):
    """Anything that answers a context.

    `stream` returns at once. Its stream begins with Start and ends with exactly one Done or Error;
    one that fails before it has begun may be a lone Error. It never raises for what can be expected
    to fail (network, limits, an abort): that is an Error, whose message holds what had come until
    then. Raised, it would take that text with it, and the transcript would end in the middle of a
    turn.
    """

    def stream(self, context: AgentContext, *, signal: Signal | None = None) -> ModelStream: ...


_MESSAGE: TypeAdapter[AgentMessage] = TypeAdapter(AgentMessage)


def parse_message(value: object) -> AgentMessage:
    """Read a message from a JSON value. Refuses with a ValidationError that names the field."""
    return parse(_MESSAGE, value)


def unpaired_calls(messages: Iterable[AgentMessage]) -> list[str]:
    """The ids that are not exactly one call, then exactly one result. [] when all is whole.

    Each id is named once, in the order in which the ids first appear.
    """
    seen: dict[str, list[str]] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, ToolCall):
                    seen.setdefault(block.id, []).append("call")
        elif isinstance(message, ToolResultMessage):
            seen.setdefault(message.tool_call_id, []).append("result")
    return [call_id for call_id, facts in seen.items() if facts != ["call", "result"]]


def describe(message: AgentMessage) -> str:
    """One line for a person. In each case the role says which fields there are."""
    match message:
        case SystemMessage():
            return f"system sections={','.join(message.sections or {}) or 'none'}"
        case UserMessage():
            return f"user blocks={len(message.content)}"
        case AssistantMessage():
            return f"assistant stop_reason={message.stop_reason}"
        case ToolResultMessage():
            return f"toolResult tool_call_id={message.tool_call_id}"
        case _:
            assert_never(message)
