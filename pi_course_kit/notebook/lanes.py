"""A run of the agent loop as lanes in time: model and tools, and the transcript with its pairs.

It reads the events by class name and field, since the kit never imports the learner's classes. A
plain text among them is something that the caller did at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pi_course_kit.notebook.shown import Code, Shown, Table, Text, show
from pi_course_kit.notebook.timeline import content, kind
from pi_course_kit.notebook.timeline import field as get


def lanes(events: Iterable[object]) -> Shown:
    picture = _Picture()
    for event in events:
        picture.add(event)
    if not picture.rows:
        return show(Text("No events."))
    count = max((lane + 1 for row in picture.rows for lane in row.tools), default=1)
    tools = ["tool"] if count == 1 else [f"tool {n}" for n in range(1, count + 1)]
    head = ["#", "caller", "model", *tools, "transcript", "pairs"]
    rows = [
        (
            row.number,
            *map(_code, (row.caller, row.model, *row.lanes(count), row.message, row.pairs)),
        )
        for row in picture.rows
    ]
    used = [n for n in range(len(head)) if n != 1 or any(row[1] for row in rows)]
    table = Table([head[n] for n in used], [[row[n] for n in used] for row in rows])
    return show(Text(picture.summary()), table)


def _code(cell: str) -> str:
    return Code(cell) if cell else ""


@dataclass
class _Row:
    """One moment, or several events of the model of one kind."""

    first: int = 0
    last: int = 0
    caller: str = ""
    model: str = ""
    tools: dict[int, str] = field(default_factory=dict[int, str])
    message: str = ""
    pairs: str = ""

    def lanes(self, count: int) -> list[str]:
        return [self.tools.get(n, "") for n in range(count)]

    @property
    def number(self) -> str:
        if not self.first:
            return ""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


class _Picture:
    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self._count = 0
        self._running: dict[str, int] = {}  # call id to lane
        self._most = 0
        self._calls: list[str] = []  # of the last reply
        self._open: list[bool] = []  # which of them have no result in the transcript yet
        self._results: dict[str, object] = {}
        self._messages = 0
        self._end = ""

    def add(self, event: object) -> None:
        if isinstance(event, str):
            self._row(caller=event)
            return
        self._count += 1
        match type(event).__name__:
            case "ModelEventSeen":
                self._model(kind(get(event, "event")))
            case "AssistantMessageSaved":
                self._reply(get(event, "message"))
            case "MessageAdded":
                self._numbered(message=self._said(get(event, "message")))
            case "ToolStart":
                self._start(str(get(get(event, "call"), "id")))
            case "ToolProgress":
                call = str(get(event, "call_id"))
                blocks = content(event)
                words = " ".join(str(get(block, "text")) for block in blocks)
                self._tool(call, f"progress {words!r}")
            case "ToolEnd":
                self._ended(get(event, "result"))
            case "ToolSkipped":
                self._skipped(get(event, "result"))
            case "LoopEnd":
                self._end = str(get(event, "reason"))
                self._numbered(message=f"end: {self._end}")
            case other:
                self._numbered(model=other)

    def summary(self) -> str:
        end = f"the run ended: {self._end}." if self._end else "the run has no end yet."
        parts = [f"{self._count} events, {self._messages} new messages; {end}"]
        if self._most > 1:
            parts.append(f"{self._most} tools ran at the same time.")
        match len(set(self._calls) - set(self._results)):
            case 0:
                parts.append("Each call has its result.")
            case 1:
                parts.append("1 call has no result.")
            case left:
                parts.append(f"{left} calls have no result.")
        return " ".join(parts)

    def _row(self, *, caller: str = "", model: str = "", message: str = "") -> _Row:
        row = _Row(caller=caller, model=model, message=message)
        row.tools = dict.fromkeys(self._running.values(), "│")
        row.pairs = " ".join("│" if one else " " for one in self._open).rstrip()
        self.rows.append(row)
        return row

    def _numbered(self, *, model: str = "", message: str = "") -> _Row:
        row = self._row(model=model, message=message)
        row.first = row.last = self._count
        return row

    def _model(self, name: str) -> None:
        last = self.rows[-1] if self.rows else None
        if last is not None and last.model.split(" ")[0] == name and last.last == self._count - 1:
            last.last = self._count
            last.model = f"{name} ×{last.last - last.first + 1}"
        else:
            self._numbered(model=name)

    def _reply(self, message: object) -> None:
        calls = [block for block in content(message) if get(block, "type") == "toolCall"]
        self._calls = [str(get(call, "id")) for call in calls]
        self._open = []
        row = self._numbered(message=self._said(message))
        row.pairs = "─".join("┬" * (len(calls) - 1) + "┐" * bool(calls))
        self._open = [True] * len(calls)
        self._results = {}

    def _said(self, message: object) -> str:
        self._messages += 1
        role, reason = get(message, "role"), get(message, "stop_reason")
        return f"{self._messages} {role}" + (f", {reason}" if reason else "")

    def _start(self, call: str) -> None:
        self._running[call] = self._free()
        self._most = max(self._most, len(self._running))
        self._tool(call, f"start {call}")

    def _free(self) -> int:
        return next(n for n in range(len(self._running) + 1) if n not in self._running.values())

    def _tool(self, call: str, words: str) -> None:
        row = self._numbered()
        row.tools[self._running[call]] = words

    def _ended(self, result: object) -> None:
        call = str(get(result, "tool_call_id"))
        self._tool(call, f"end {call}" + (", error" if get(result, "is_error") else ""))
        del self._running[call]
        self._settle(call, result)

    def _skipped(self, result: object) -> None:
        call = str(get(result, "tool_call_id"))
        reason = get(get(result, "details"), "reason")
        row = self._numbered()
        row.tools[self._free()] = f"skip {call}: {reason}"
        self._settle(call, result)

    def _settle(self, call: str, result: object) -> None:
        """The transcript takes the results when all are there, in the order of the calls."""
        self._results[call] = result
        if set(self._calls) - set(self._results):
            return
        for place, id in enumerate(self._calls):
            self._messages += 1
            row = self._row(message=f"{self._messages} result {id}")
            marks = ["│" if one else "─" for one in self._open]
            before, after = marks[:place], marks[place + 1 :]
            row.pairs = " ".join(["─".join([*before, "┘"]), *after])
            self._open[place] = False
