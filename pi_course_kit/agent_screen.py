"""An agent's run on a terminal: its text as it streams, its calls, what came back.

What a model or a tool says comes from outside. A control character in it would move the cursor or
change the window's title, so each is shown by its code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from pi_course_kit.values import cut

if TYPE_CHECKING:
    from pi_course.agent_loop import LoopEvent
    from pi_course.messages import ToolCall, ToolResultMessage

WIDTH = 80
LINES = 12  # of a result or a diff; the model gets all of it
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def plain(text: str) -> str:
    """The text with control characters and changes of writing direction shown by their code.

    Example:
        >>> plain("title\\x1b]0;gone\\x07")
        'title\\\\x1b]0;gone\\\\x07'
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


class Screen:
    """Takes a run's events in order and writes them; one of these lives as long as its talk."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._in_text = False
        self._block: int | None = None
        self._running: dict[str, ToolCall] = {}
        self._headed: str | None = None  # the call whose heading stands last on the screen

    def show(self, event: LoopEvent) -> None:
        """The `on_event` of a run."""
        from pi_course import agent_loop, messages

        match event:
            case agent_loop.ModelEventSeen(messages.TextDelta() as delta):
                self._text(delta.content_index, delta.delta)
            case agent_loop.ToolStart(call):
                self._running[call.id] = call
                self.heading(call)
            case agent_loop.ToolProgress(call_id, content):
                if call_id in self._running:
                    self._under(call_id, "".join(block.text for block in content))
            case agent_loop.ToolEnd(result):
                self._result(result)
            case agent_loop.ToolSkipped(result):
                self.line(f"  not run: {plain(result.tool_name)}", "yellow")
            case agent_loop.AssistantMessageSaved(message):
                self._end_text()
                if message.stop_reason in ("error", "aborted"):
                    said = message.error_message or message.stop_reason
                    self.line(f"[{message.stop_reason}] {plain(said)}", "red")
            case _:
                pass

    def line(self, text: str, colour: str | None = None) -> None:
        """One line of its own; a text that still runs is ended before it."""
        self._end_text()
        self._headed = None
        self._write(click.style(text, fg=colour) + "\n")

    def heading(self, call: ToolCall) -> None:
        self.line("")
        self._write(click.style(cut("  " + in_words(call), WIDTH), bold=True) + "\n")
        self._headed = call.id

    def _text(self, index: int, delta: str) -> None:
        if not self._in_text:
            self._write("\n")
        elif self._block != index and delta:
            self._write("\n")
        self._in_text, self._block = True, index
        self._write(plain(delta))

    def _end_text(self) -> None:
        if self._in_text:
            self._write("\n")
        self._in_text, self._block = False, None

    def _result(self, result: ToolResultMessage) -> None:
        call = self._running.pop(result.tool_call_id, None)
        details: Any = result.details
        diff = details.get("diff") if isinstance(details, Mapping) else None
        text = "".join(block.text for block in result.content)
        if isinstance(diff, str) and not result.is_error:
            self._under(result.tool_call_id, diff, call, diff=True)
        else:
            self._under(result.tool_call_id, text, call, colour="red" if result.is_error else None)

    def _under(
        self,
        call_id: str,
        text: str,
        call: ToolCall | None = None,
        *,
        diff: bool = False,
        colour: str | None = None,
    ) -> None:
        """Lines under the heading of their call, which is repeated when another one came since."""
        again = call or self._running.get(call_id)
        if self._headed != call_id and again is not None:
            self.heading(again)
        lines = plain(text).rstrip("\n").split("\n") if text.strip() else ["(nothing)"]
        # The start says what a file is, the end how a command went: both are kept.
        first = LINES // 2
        left_out = len(lines) - LINES
        for number, line in enumerate(lines):
            if left_out > 0 and first <= number < len(lines) - first:
                if number == first:
                    self._write(f"    ... {left_out} more lines\n")
                continue
            fg = _DIFF.get(line[:1]) if diff else colour
            self._write(click.style(cut("    " + line, WIDTH), fg=fg) + "\n")


def in_words(call: ToolCall) -> str:
    """A call as one line of a screen: `read README.md`, `bash python -m pytest`.

    The first argument says what a call is about; the rest follows as JSON where it is short.
    """
    arguments: Any = call.arguments
    if not isinstance(arguments, Mapping) or not arguments:
        return plain(f"{call.name} {json.dumps(arguments, ensure_ascii=False, default=str)}")
    (_, first), *rest = arguments.items()
    words = first if isinstance(first, str) else json.dumps(first, ensure_ascii=False, default=str)
    said = f"{call.name} {words}"
    for name, value in rest:
        shown = json.dumps(value, ensure_ascii=False, default=str)
        said += f"  {name}={shown if len(shown) <= 20 else '...'}"
    return plain(said).replace("\n", "\\n")
