"""The ids of calls: what ties a result to its call, so no two calls may share one."""

from collections.abc import Iterable

from pi_course.messages import AgentMessage, AssistantMessage, ToolCall, ToolResultMessage


def calls_of(message: AssistantMessage) -> list[ToolCall]:
    return [block for block in message.content if isinstance(block, ToolCall)]


def call_ids(messages: Iterable[AgentMessage]) -> set[str]:
    ids: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            ids.update(call.id for call in calls_of(message))
        elif isinstance(message, ToolResultMessage):
            ids.add(message.tool_call_id)
    return ids


def with_new_ids(reply: AssistantMessage, used: set[str]) -> AssistantMessage:
    """The reply with an id of its own for each call, added to `used`. A second `a` becomes `a-2`.

    Two calls under one id could not be told apart by their results.
    """
    renamed: dict[int, ToolCall] = {}
    for place, block in enumerate(reply.content):
        if isinstance(block, ToolCall):
            number, fresh = 1, block.id
            while fresh in used:
                number += 1
                fresh = f"{block.id}-{number}"
            used.add(fresh)
            if fresh != block.id:
                renamed[place] = block.model_copy(update={"id": fresh})
    if not renamed:
        return reply
    content = tuple(renamed.get(place, block) for place, block in enumerate(reply.content))
    return reply.model_copy(update={"content": content})
