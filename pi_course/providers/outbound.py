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
    answered = {m.tool_call_id for m in messages if isinstance(m, ToolResultMessage)}
    for message in messages:
        if isinstance(message, AssistantMessage):
            failed = message.stop_reason in ("error", "aborted")
            # In a whole reply an unanswered call is a mistake, and hiding it would not mend it.
            content = tuple(
                block
                for block in message.content
                if isinstance(block, TextContent) or not failed or block.id in answered
            )
            if any(isinstance(block, ToolCall) or block.text for block in content):
                yield message.model_copy(update={"content": content})
        elif not isinstance(message, SystemMessage):
            yield message
