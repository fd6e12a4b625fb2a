"""A recorded stream: its events in order, and what was known after each of them.

It reads events by their field names (type, delta, content_index, partial, message, error), from
dicts and objects alike, since the kit never imports the learner's classes. Events are kept, not
copied: a partial is asked for only when a row is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import cast

from pi_course_kit.notebook.shown import Block, Code, Shown, Table, Text, show

ENDS = 200  # characters of a long partial that a row shows; the last row shows all
ROWS = 60  # events that a finished view lists; of a longer stream the middle is left out


class Timeline:
    def __init__(self) -> None:
        self.events: list[object] = []
        self._chunks: list[str] = []
        self._ends: list[int] = []  # number of chunks after each event
        self.ending = ""

    def add(self, event: object) -> None:
        self.events.append(event)
        if kind(event).endswith("delta") and "tool" not in kind(event):
            self._chunks.append(delta(event))
        self._ends.append(len(self._chunks))

    def characters(self, number: int) -> str:
        """What a reader of the chat sees after event `number` (1 for the first)."""
        if number < 1:
            return ""
        message = partial(self.events[number - 1])
        if message is None:
            return "".join(self._chunks[: self._ends[number - 1]])
        return "\n".join(str(field(block, "text")) for block in texts(message))

    def partial(self, number: int) -> str:
        """The message as far as it is known after event `number`, a block a line."""
        if number < 1:
            return ""
        message = partial(self.events[number - 1])
        if message is not None:
            return blocks(message)
        sofar = self.characters(number)
        return repr(sofar) if sofar else ""

    def result(self) -> object:
        """The final value that the last event carries; without one, the characters."""
        last = self.events[-1] if self.events else None
        for name in ("message", "error", "result", "partial"):
            if (value := field(last, name)) is not None:
                return value
        return self.characters(len(self.events))

    def shown(self) -> Shown:
        count = len(self.events)
        word = "event" if count == 1 else "events"
        top: Block = Text(f"{count} {word}; {self.ending or self._last()}.")
        carried = any(partial(event) is not None for event in self.events)
        head = ("#", "event", "index", "delta", "partial" if carried else "text so far")
        rows = self._rows()
        # A protocol without content indexes has an empty column: leave it out.
        used = [n for n in range(len(head)) if n != 2 or any(row[2] for row in rows)]
        return show(top, Table([head[n] for n in used], [[row[n] for n in used] for row in rows]))

    def _last(self) -> str:
        if not self.events:
            return "the stream ended at once"
        reason = field(self.events[-1], "reason")
        return f"the last is {kind(self.events[-1])}" + (f" ({reason})" if reason else "")

    def _rows(self) -> list[tuple[str, ...]]:
        count = len(self.events)
        numbers = range(1, count + 1)
        if count <= ROWS:
            return [self._row(n) for n in numbers]
        half = ROWS // 2
        left_out = ("…", f"{count - 2 * half} more", "", "", "")
        head, tail = numbers[:half], numbers[-half:]
        return [*map(self._row, head), left_out, *map(self._row, tail)]

    def _row(self, number: int) -> tuple[str, ...]:
        event = self.events[number - 1]
        index = field(event, "content_index")
        piece = Code(repr(delta(event))) if delta(event) else ""
        known = self.partial(number)
        if number < len(self.events) and len(known) > ENDS:
            known = "… " + known[-ENDS:]  # what is new stands at the end
        return (
            str(number),
            Code(kind(event)),
            "" if index is None else str(index),
            piece,
            Code(known) if known else "",
        )


def field(value: object, name: str) -> object:
    """A dict's item or an object's attribute; None when there is none."""
    if isinstance(value, Mapping):
        return cast(Mapping[str, object], value).get(name)
    return getattr(value, name, None)


def kind(event: object) -> str:
    named = field(event, "type")
    return named if isinstance(named, str) else type(event).__name__


def delta(event: object) -> str:
    for name in ("delta", "text"):
        if isinstance(piece := field(event, name), str):
            return piece
    return ""


def partial(event: object) -> object:
    """The message that an event carries: partial, or the final one; None if it carries none."""
    for name in ("partial", "message", "error"):
        message = field(event, name)
        if message is not None and not isinstance(message, str):
            return message
    return None


def content(message: object) -> tuple[object, ...]:
    found = field(message, "content")
    if isinstance(found, str) or not isinstance(found, Iterable):
        return ()
    return tuple(cast(Iterable[object], found))


def texts(message: object) -> tuple[object, ...]:
    return tuple(block for block in content(message) if field(block, "type") == "text")


def blocks(message: object) -> str:
    """One line a block, as text("…") and read({"path": "README.md"})."""
    lines = [_block(block) for block in content(message)]
    if note := field(message, "error_message"):
        lines.append(f"error_message {repr(str(note))}")
    return "\n".join(lines) or "no content yet"


def _block(block: object) -> str:
    if field(block, "type") == "text":
        return f"text {repr(str(field(block, 'text')))}"
    call = f"call {field(block, 'id')} {field(block, 'name')}({compact(field(block, 'arguments'))})"
    raw = field(block, "raw_arguments")
    return call if raw is None else f"{call} raw {raw}"


def compact(value: object) -> str:
    """JSON on one line, also of frozen mappings and tuples."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast(Mapping[object, object], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast(Iterable[object], value)]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
