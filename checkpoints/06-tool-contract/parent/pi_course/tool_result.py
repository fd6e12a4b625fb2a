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
    raise NotImplementedError("Lab 6.3: content_blocks()")


def _block(item: object) -> TextContent:
    raise NotImplementedError("Lab 6.3: _block()")


def result_of(call: ToolCall, output: object) -> ToolResultMessage:
    """The result of a tool that came to its end. Raises if no message can hold the output."""
    raise NotImplementedError("Lab 6.3: result_of()")


def failure(call: ToolCall, reason: str) -> ToolResultMessage:
    """The result of a call that failed. Whoever asked reads what happened, and can go on."""
    raise NotImplementedError("Lab 6.3: failure()")


def _message(
    call: ToolCall, content: tuple[TextContent, ...], details: object, is_error: bool
) -> ToolResultMessage:
    raise NotImplementedError("Lab 6.3: _message()")


def message_of(error: BaseException) -> str:
    """What an exception says, and nothing of where it was.

    A traceback shows folders of this machine and, in some forms, the values of variables. The
    name of a file that an OSError carries is left out for the same reason.
    """
    raise NotImplementedError("Lab 6.3: message_of()")
