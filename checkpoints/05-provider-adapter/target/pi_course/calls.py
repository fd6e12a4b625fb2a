"""The calls in a transcript, and the ids that tie each result to its call."""

from collections.abc import Iterable

from pi_course.messages import AgentMessage, AssistantMessage, ToolCall, ToolResultMessage


def calls_of(message: AssistantMessage) -> list[ToolCall]:
    return [block for block in message.content if isinstance(block, ToolCall)]


def call_ids(messages: Iterable[AgentMessage]) -> set[str]:
    """The ids of all calls and results: a new call takes none of them."""
    ids: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            ids.update(call.id for call in calls_of(message))
        elif isinstance(message, ToolResultMessage):
            ids.add(message.tool_call_id)
    return ids
