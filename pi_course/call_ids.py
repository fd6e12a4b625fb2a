"""The ids of calls: what ties a result to its call, so no two calls may share one."""

from pi_course.messages import AssistantMessage, ToolCall


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
