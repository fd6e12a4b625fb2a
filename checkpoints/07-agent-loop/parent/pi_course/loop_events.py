"""What a run of the agent loop tells while it goes on, and what it gives back at its end."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    ModelEvent,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

RunReason: TypeAlias = Literal["stop", "length", "error", "aborted", "max_steps"]


@dataclass(frozen=True, slots=True)
class ModelEventSeen:
    event: ModelEvent


@dataclass(frozen=True, slots=True)
class AssistantMessageSaved:
    """The reply as the transcript has it. A call id that was used before is another one here."""

    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class ToolStart:
    call: ToolCall  # as it is run: a hook may have changed its arguments


@dataclass(frozen=True, slots=True)
class ToolProgress:
    call_id: str
    content: tuple[TextContent, ...]


@dataclass(frozen=True, slots=True)
class ToolEnd:
    result: ToolResultMessage


@dataclass(frozen=True, slots=True)
class ToolSkipped:
    """The call was not run: there was no ToolStart."""

    result: ToolResultMessage


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message that the hook `next_messages` gave. It is in the transcript now."""

    message: UserMessage | SystemMessage


@dataclass(frozen=True, slots=True)
class LoopEnd:
    reason: RunReason


ToolEvent: TypeAlias = ToolStart | ToolProgress | ToolEnd | ToolSkipped
LoopEvent: TypeAlias = ModelEventSeen | AssistantMessageSaved | ToolEvent | MessageAdded | LoopEnd
"""Results are told when they come, which for calls that run at once is any order. The transcript
has them in the order of the calls."""


@dataclass(frozen=True, slots=True)
class AgentRunResult:
    reason: RunReason
    messages: tuple[AgentMessage, ...]  # those of the caller first, unchanged
    steps: int  # requests that were made
