"""A recorded stream: its events in order, and what each of them did to the message.

An entry holds the delta of its event and, rarely, what deltas alone do not tell: a new block, the
arguments of a finished call. So what was known after any entry can be told from those up to it, in
the browser too, and nothing is stored twice. Each state is that of its moment: an event that is
changed later does not change its entry.

It reads events by their field names (type, delta, content_index, partial, message, error), from
dicts and objects alike, since the kit never imports the learner's classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from pi_course_kit.notebook.shown import Block, Code, Shown, Table, Text, show

ENDS = 120  # characters of a long partial that a row shows
LAST = 4000  # the same, of the last row
ROWS = 60  # entries that a finished view lists; of a longer stream the middle is left out
ALLOWANCE = 200  # characters of partials that may be read for each event
PIECE = 1000  # characters of a wire's piece or a chunk that a lane keeps
END = 30  # characters of each end of it that a row shows

Known = dict[str, str | None]  # a block: type and text, or type, id, name, arguments and raw
Changes = dict[str, Any]  # {"blocks": {place: block}, "size": number of blocks, "note": a line}


class Entry(NamedTuple):
    """An event. First its changes hold, then its delta makes the block at `place` longer."""

    kind: str
    at: int | None  # the index, as the event says it
    delta: str
    place: int | None = None
    changes: Changes | None = None
    lane: str = ""  # what is not an event, but came on the way to one: wire, chunk

    def sent(self) -> list[Any]:
        """As the browser gets it, without the empty end."""
        fields: list[Any] = list(self)
        while fields[-1] in (None, ""):
            fields.pop()
        return fields


class State:
    """What is known after an entry. Text is kept in pieces: to join it for each is quadratic."""

    def __init__(self) -> None:
        self._blocks: list[Known] = []
        self._pieces: list[list[str]] = []
        self.length = 0  # characters that have come
        self.note = ""

    def __len__(self) -> int:
        return len(self._blocks)

    def type(self, place: int) -> str | None:
        return self._blocks[place]["type"] if place < len(self) else None

    def block(self, place: int) -> Known:
        block, pieces = self._blocks[place], self._pieces[place]
        if pieces:
            name = growing(block)
            block[name] = (block[name] or "") + "".join(pieces)
            pieces.clear()
        return dict(block)

    def blocks(self) -> list[Known]:
        return [self.block(place) for place in range(len(self))]

    def apply(self, entry: Entry) -> None:
        changes = entry.changes or {}
        for place, block in changes.get("blocks", {}).items():
            if place == len(self):
                self._blocks.append({})
                self._pieces.append([])
            self._blocks[place], self._pieces[place] = dict(block), []
        if "size" in changes:
            del self._blocks[changes["size"] :], self._pieces[changes["size"] :]
        self.note = changes.get("note", self.note)
        if changes:
            self.length = sum(len(block[growing(block)] or "") for block in self.blocks())
        if entry.place is not None:
            self._pieces[entry.place].append(entry.delta)
            self.length += len(entry.delta)

    def characters(self) -> str:
        """What a reader of the chat sees."""
        return "\n".join(str(b["text"]) for b in self.blocks() if b["type"] == "text")


class Timeline:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.ending = ""
        self.carried = False  # events of this stream carry a partial
        self._state = State()
        self._allowed = 0
        self._places: dict[tuple[str, int | None], int] = {}
        self._laned = False
        self._last: object = None
        self._count = 0

    def add(self, event: object) -> None:
        """Write down an event. What that costs does not depend on how much has come before.

        Its partial is read when the delta alone does not tell what changed, and otherwise as often
        as the allowance lets: of a short reply always, of a long one now and then.
        """
        name, index, piece = kind(event), _index(event), whole(delta(event))
        growth = piece if _grows(name, piece) else ""
        place = self._place(name, index) if growth else None
        changes: Changes | None = None
        self._allowed += ALLOWANCE
        if place is None or self._allowed >= self._state.length:
            self._allowed = 0
            message = partial(event)
            if message is not None:
                self.carried = True
                changes, place = self._compare(message, index if place is None else place, growth)
            elif place is None:
                changes, place = self._alone(event, index, growth)
        entry = Entry(_label(event), index, piece, place, changes)
        self._state.apply(entry)
        self.entries.append(entry)
        self._last, self._count = event, self._count + 1

    def note(self, lane: str, item: object) -> None:
        """Write down what came on a lane below the events."""
        text = whole(_passing(item))
        if len(text) > PIECE:
            text = f"{text[:PIECE]}… {len(text) - PIECE} more"
        self._laned = True
        self.entries.append(Entry(_label(item), _index(item), text, lane=lane))

    def _place(self, name: str, index: int | None) -> int | None:
        """The block that such a delta makes longer; None if that has to be looked up."""
        if not self.carried:
            return self._places.get(_key(name, index))
        place = len(self._state) - 1 if index is None else index
        expected = "call" if "tool" in name else "text"
        return place if place >= 0 and self._state.type(place) == expected else None

    def _alone(
        self, event: object, index: int | None, growth: str
    ) -> tuple[Changes | None, int | None]:
        """The changes of an event that carries no message."""
        if growth:
            key = _key(kind(event), index)
            place = self._places[key] = len(self._state)
            ids = {name: str(field(event, name) or "") for name in ("id", "name")}
            call = {"type": "call", **ids, "arguments": "{}", "raw": ""}
            block = call if key[0] == "call" else {"type": "text", "text": ""}
            return {"blocks": {place: block}}, place
        result = field(event, "result")
        if not isinstance(result, str):
            return None, None
        told = repr(result) if len(result) <= ENDS else f"of {len(result)} characters"
        return {"note": f"result {told}"}, None

    def _compare(
        self, message: object, place: int | None, growth: str
    ) -> tuple[Changes | None, int | None]:
        """What of this message the entries so far and the growth do not tell."""
        wanted = [_known(block) for block in content(message)]
        changed: dict[int, Known] = {}
        for number, block in enumerate(wanted):
            have = self._state.block(number) if number < len(self._state) else None
            if have is not None and number == place:
                have[growing(have)] = (have[growing(have)] or "") + growth
            if block != have:
                changed[number] = block
        if place in changed:
            name = growing(changed[place])
            text = changed[place][name]
            if growth and text is not None and text.endswith(growth):
                changed[place] = changed[place] | {name: text.removesuffix(growth)}
            else:
                place = None
        if place is not None and not (growth and 0 <= place < len(wanted)):
            place = None
        changes: Changes = {"blocks": changed} if changed else {}
        if len(wanted) < len(self._state):
            changes["size"] = len(wanted)
        if problem := field(message, "error_message"):
            changes["note"] = f"error_message {str(problem)!r}"
        return changes or None, place

    def result(self) -> object:
        """The final value that the last event carries; without one, the characters."""
        for name in ("message", "error", "result", "partial"):
            if (value := field(self._last, name)) is not None:
                return value
        return self._state.characters()

    def summary(self) -> str:
        """How many events, and how it ended: one line."""
        word = "event" if self._count == 1 else "events"
        return f"{self._count} {word}; {self.ending or self._ended()}."

    def _ended(self) -> str:
        return f"the last is {_label(self._last)}" if self._count else "the stream ended at once"

    def shown(self) -> Shown:
        """The text form and the HTML form: all entries, or the first and the last of many."""
        rows, left_out = self._rows()
        top = [Text(self.summary() + (f" {left_out}" if left_out else ""))]
        known = "partial" if self.carried else "known so far" if self._several() else "text so far"
        head = ("#", "lane", "event", "index", "delta", known)
        # Without lanes, or without content indexes, a column is empty: leave it out.
        used = [n for n in range(len(head)) if n not in (1, 3) or any(row[n] for row in rows)]
        table = Table([head[n] for n in used], [[row[n] for n in used] for row in rows])
        shown = show(*cast(list[Block], top), table)
        # The running view puts itself in the place of the element with this class.
        return Shown(shown.text, shown.html.replace("<div>", '<div class="pi-live-form">', 1))

    def _several(self) -> bool:
        return len(self._state) > 1 or self._state.type(0) == "call"

    def _rows(self) -> tuple[list[tuple[str, ...]], str]:
        count, half = len(self.entries), ROWS // 2
        skipped = range(half, count - half) if count > ROWS else range(0)
        state, rows = State(), list[tuple[str, ...]]()
        for number, entry in enumerate(self.entries):
            state.apply(entry)
            if number not in skipped:
                rows.append(self._row(number + 1, entry, state))
            elif number == skipped[0]:
                rows.append(("…", "", f"{len(skipped)} more", "", "", ""))
        if not skipped:
            return rows, ""
        return rows, f"Rows {skipped[0] + 1} to {skipped[-1] + 1} are left out here."

    def _row(self, number: int, entry: Entry, state: State) -> tuple[str, ...]:
        known = "" if entry.lane else self._line(state)
        ends = ENDS if number < len(self.entries) else LAST
        if len(known) > ends:
            # What is new stands at the end.
            known = f"… {len(known) - ends} characters … {known[-ends:]}"
        return (
            str(number),
            entry.lane or ("event" if self._laned else ""),
            Code(entry.kind),
            "" if entry.at is None else str(entry.at),
            Code(repr(_ends(entry.delta) if entry.lane else entry.delta)) if entry.delta else "",
            Code(known) if known else "",
        )

    def _line(self, state: State) -> str:
        """What is known, a block a line."""
        if self.carried or self._several():
            lines = [_in_words(block) for block in state.blocks()]
        else:
            lines = [repr(text)] if (text := state.characters()) else []
        if self.carried and not lines:
            lines.append("no content yet")
        return "\n".join([*lines, state.note] if state.note else lines)


def _ends(text: str) -> str:
    return text if len(text) <= 2 * END + 3 else f"{text[:END]} … {text[-END:]}"


def growing(block: Mapping[str, object]) -> str:
    """The field of a block that gets longer while it arrives."""
    return "text" if block["type"] == "text" else "raw"


def _in_words(block: Known) -> str:
    """text '…', or call call_1 read({"path": "README.md"})."""
    if block["type"] == "text":
        return f"text {block['text']!r}"
    call = f"call {block['id']} {block['name']}({block['arguments']})"
    return call if block["raw"] is None else f"{call} raw {block['raw']}"


def whole(text: str) -> str:
    r"""Half a surrogate pair can't be sent, so it is spelled: \ud83d."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _known(block: object) -> Known:
    if field(block, "type") == "text":
        return {"type": "text", "text": whole(str(field(block, "text")))}
    raw = field(block, "raw_arguments")
    return {
        "type": "call",
        "id": str(field(block, "id")),
        "name": str(field(block, "name")),
        "arguments": whole(compact(field(block, "arguments"))),
        "raw": None if raw is None else whole(str(raw)),
    }


def field(value: object, name: str) -> object:
    """A dict's item or an object's attribute; None when there is none."""
    if isinstance(value, dict | Mapping):  # dict first: asking for an abstract type is slow
        return cast(Mapping[str, object], value).get(name)
    return getattr(value, name, None)


def kind(event: object) -> str:
    named = field(event, "type")
    return named if isinstance(named, str) else type(event).__name__


def delta(event: object) -> str:
    if isinstance(event, str):
        return event
    for name in ("delta", "text", "arguments_delta"):
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


def _label(event: object) -> str:
    reason = field(event, "reason")
    return f"{kind(event)} ({reason})" if isinstance(reason, str) else kind(event)


def _index(event: object) -> int | None:
    for name in ("content_index", "index"):
        # A method of that name is no index: str and tuple have one.
        if isinstance(index := field(event, name), int):
            return index
    return None


def _grows(name: str, piece: str) -> bool:
    return bool(piece) and (name.endswith("delta") or name in ("text", "tool", "str"))


def _key(name: str, index: int | None) -> tuple[str, int | None]:
    """Which pieces belong together in a stream whose events carry no message."""
    return ("call", index) if "tool" in name else ("text", None)


def _passing(item: object) -> str:
    if isinstance(item, bytes):
        return item.decode("utf-8", "replace")
    if isinstance(data := field(item, "data"), str):
        return data
    return delta(item) or (compact(cast(object, item)) if isinstance(item, Mapping) else "")


def compact(value: object) -> str:
    """JSON on one line, also of frozen mappings and tuples."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast(Mapping[object, object], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast(Iterable[object], value)]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
