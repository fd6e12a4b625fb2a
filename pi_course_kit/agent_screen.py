"""An agent's run on a terminal: its text as it streams, its calls, what came back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import click

from pi_course_kit.output import WIDTH
from pi_course_kit.terminal import exact, plain
from pi_course_kit.values import cut

if TYPE_CHECKING:
    from pi_course.agent_loop import LoopEvent
    from pi_course.messages import TextContent, ToolCall, ToolResultMessage

FIRST, LAST = 6, 6  # lines of a result or a diff; the model reads all of it
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


class Screen:
    """Takes the events of runs in order and writes them. One of these lives as long as a talk."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._in_text = False
        self._block: int | None = None
        self._calls: dict[str, _Shown] = {}
        self._headed: str | None = None  # the call whose lines stand last on the screen

    def show(self, event: LoopEvent) -> None:
        """The `on_event` of a run."""
        from pi_course import agent_loop, messages

        match event:
            case agent_loop.ModelEventSeen(messages.TextDelta() as delta):
                self._text(delta.content_index, delta.delta)
            case agent_loop.AssistantMessageSaved(message):
                self._end_text()
                if message.stop_reason in ("error", "aborted"):
                    said = (message.error_message or "").removeprefix(f"{message.stop_reason}: ")
                    self._line(f"[{message.stop_reason}] {plain(said)}".rstrip(), "red")
            case agent_loop.ToolStart(call):
                self._calls[call.id] = _Shown(in_words(call))
                self._head(call.id)
            case agent_loop.ToolProgress(call_id, content):
                self._progress(call_id, text_in(content))
            case agent_loop.ToolEnd(result):
                self._result(result)
            case agent_loop.ToolSkipped(result):
                self._line(f"  not run: {plain(result.tool_name)}", "yellow")
            case _:
                pass

    def _line(self, text: str, colour: str | None = None) -> None:
        """One line of its own; a text that still runs is ended before it."""
        self._end_text()
        self._headed = None
        self._write(click.style(text, fg=colour) + "\n")

    def _text(self, index: int, delta: str) -> None:
        if not self._in_text or (self._block != index and delta):
            self._write("\n")
        self._in_text, self._block, self._headed = True, index, None
        self._write(plain(delta))

    def _end_text(self) -> None:
        if self._in_text:
            self._write("\n")
        self._in_text, self._block = False, None

    def _head(self, call_id: str) -> None:
        """The line that says which call the next lines belong to, unless it stands there."""
        if self._headed != call_id:
            self._end_text()
            self._write(
                "\n" + click.style(cut("  " + self._calls[call_id].words, WIDTH), bold=True)
            )
            self._write("\n")
            self._headed = call_id

    def _progress(self, call_id: str, text: str) -> None:
        """Show the first lines while the tool still runs; the rest waits for its result."""
        shown = self._calls[call_id]
        shown.pending += text
        while "\n" in shown.pending and len(shown.lines) < FIRST:
            line, shown.pending = shown.pending.split("\n", 1)
            shown.lines.append(plain(line))
            self._head(call_id)
            self._write(cut("    " + shown.lines[-1], WIDTH) + "\n")

    def _result(self, result: ToolResultMessage) -> None:
        shown = self._calls.setdefault(result.tool_call_id, _Shown(plain(result.tool_name)))
        self._head(result.tool_call_id)
        diff = "" if result.is_error else _diff_in(result.details)
        lines = plain(diff or text_in(result.content)).rstrip("\n").split("\n")
        there = len(shown.lines) if lines[: len(shown.lines)] == shown.lines else 0
        first = FIRST if there == 0 else 0
        lines = _elided(lines[there:], first, LAST)
        for line in lines if any(lines) or not there else ():
            colour = _DIFF.get(line[:1]) if diff else "red" if result.is_error else None
            self._write(click.style(cut("    " + line, WIDTH).rstrip(), fg=colour) + "\n")
        del self._calls[result.tool_call_id]
        self._headed = None


@dataclass(slots=True)
class _Shown:
    """A call that runs: its heading, the lines under it, and what came and is no line yet."""

    words: str
    lines: list[str] = field(default_factory=list[str])
    pending: str = ""


def text_in(content: Iterable[TextContent]) -> str:
    return "".join(block.text for block in content)


def _fields(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _diff_in(details: object) -> str:
    diff = _fields(details).get("diff")
    return diff if isinstance(diff, str) else ""


def in_words(call: ToolCall) -> str:
    """A call as one line of a screen: `read README.md`, `bash python -m pytest`.

    The first argument says what a call is about; the rest follows where it is short.
    """
    arguments = _fields(call.arguments)
    if not arguments:
        return plain(f"{call.name} {_as_json(call.arguments)}")
    (_, first), *rest = arguments.items()
    said = f"{call.name} {first if isinstance(first, str) else _as_json(first)}"
    for name, value in rest:
        shown = _as_json(value)
        said += f"  {name}={shown if len(shown) <= 20 else '...'}"
    return plain(said).replace("\n", "\\n")


def question(tool: str, arguments: Mapping[str, object]) -> str:
    """What a tool is about to do, whole and without disguise: a person says yes or no to it.

    `arguments` are those that the tool will get, after parsing: a call may hold more than that.
    """
    lines = [f"It wants to {tool}"]
    for name, value in arguments.items():
        match value:
            case str() if name == "content":
                lines += [f"+{line}" for line in value.split("\n")]
            case str():
                lines += value.split("\n")
            case list():
                for edit in cast("list[object]", value):
                    lines += _replaced(edit)
            case None:
                pass
            case _:
                lines.append(f"{name} {_as_json(value)}")
    shown = [lines[0], *(f"    {exact(line)}" for line in lines[1:])]
    if len(lines) > LAST:
        shown.append(f"  {len(lines) - 1} lines in all; the first ones stand above")
    return "".join(f"{line}\n" for line in shown)


def _replaced(edit: object) -> list[str]:
    match _fields(edit):
        case {"oldText": str(old), "newText": str(new)}:
            removed = [f"-{line}" for line in old.split("\n")]
            return removed + [f"+{line}" for line in new.split("\n")]
        case _:
            return [_as_json(edit)]


def _elided(lines: list[str], first: int, last: int) -> list[str]:
    """The first and the last lines; between them how many are left out, if it is more than one."""
    left_out = len(lines) - first - last
    if left_out <= 1:
        return lines
    return [*lines[:first], f"... {left_out} more lines", *lines[first + left_out :]]


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
