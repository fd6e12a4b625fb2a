"""How a call ends: what a tool gives back, and the message that is made of it or of its failure."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pi_course.messages import TextContent, ToolCall, ToolResultMessage
from pi_course.surrogates import replace_surrogates, replace_surrogates_in
from pi_course.wire import InvalidValue, frozen_json

MAX_REASON_CHARS = 4000  # of what a failure tells the model

Content: TypeAlias = str | Sequence[TextContent]


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gives back. The model reads the content; details are for programs, as JSON.

    `is_error` is for a failure that the tool can put into words itself, such as a command that
    ended with exit code 1: the output is then worth reading.
    """

    content: Content | None
    details: object = None
    is_error: bool = False


def content_blocks(content: Content | None) -> tuple[TextContent, ...]:
    """The content as blocks that a message can hold: None is none, a text is one.

    Example:
        >>> content_blocks("# Project")
        (TextContent(type='text', text='# Project'),)
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextContent(text=replace_surrogates(content)),)
    return tuple(_block(item) for item in content)


def _block(item: object) -> TextContent:
    if not isinstance(item, TextContent):
        raise TypeError(f"its content holds {type(item).__name__}, where only text blocks can be")
    return TextContent(text=replace_surrogates(item.text))


def result_of(call: ToolCall, output: object) -> ToolResultMessage:
    """The result of a tool that came to its end. Raises if no message can hold the output."""
    if not isinstance(output, ToolOutput):
        raise TypeError(f"it returned {type(output).__name__}, and not a ToolOutput")
    try:
        details = frozen_json(replace_surrogates_in(output.details))
    except InvalidValue as error:
        raise TypeError(f"its details are no JSON: {error}") from None
    return _message(call, content_blocks(output.content), details, bool(output.is_error))


def failure(call: ToolCall, reason: str) -> ToolResultMessage:
    """The result of a call that failed. Whoever asked reads what happened, and can go on."""
    told = reason if len(reason) <= MAX_REASON_CHARS else reason[:MAX_REASON_CHARS] + "…"
    told = replace_surrogates(told)
    said = content_blocks(f"Tool {call.name} failed: {told}")
    return _message(call, said, {"error": told}, is_error=True)


def _message(
    call: ToolCall, content: tuple[TextContent, ...], details: object, is_error: bool
) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=content,
        details=details,
        is_error=is_error,
        timestamp=int(time.time() * 1000),
    )


def message_of(error: BaseException) -> str:
    """What an exception says, and nothing of where it was.

    A traceback shows folders of this machine and, in some forms, the values of variables. The
    name of a file that an OSError carries is left out for the same reason.
    """
    try:
        if isinstance(error, OSError) and error.strerror:
            return str(error.strerror)
        said = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # from its own __str__; a cancellation comes at an await, so it is none
        said = ""
    return said if said.strip() else type(error).__name__
