"""Which messages of a transcript a provider is sent. The same for every format."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pi_course.messages import (
    AgentMessage,
    AssistantMessage,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

Sendable: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


def sendable(messages: Sequence[AgentMessage]) -> Iterator[Sendable]:
    """The messages to send, in order. System messages are left out: they go as one prompt.

    A reply that failed keeps its text, and those of its calls that have a result. A reply of
    which nothing is left is not sent: providers refuse a message without content.
    """
    raise NotImplementedError("Lab 5.1: sendable()")
