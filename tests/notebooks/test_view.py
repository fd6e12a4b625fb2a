"""The live view without a page: every kind of stream, and what is left is always the same."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import view
from pi_course_kit.notebook.timeline import ALLOWANCE, ROWS, Entry, State, Timeline


def four_events(*deltas: str) -> list[dict[str, Any]]:
    middle = [{"type": "text_delta", "delta": delta} for delta in deltas]
    return [{"type": "start"}, *middle, {"type": "done", "result": "".join(deltas)}]


async def generator(events: list[Any]) -> AsyncIterator[Any]:
    for event in events:
        yield event


@dataclass(frozen=True)
class Event:
    type: str
    partial: Any = None
    content_index: int | None = None
    delta: str = ""
    message: Any = None


def message(*blocks: Any) -> Any:
    return SimpleNamespace(content=blocks, error_message=None)


def text(value: str) -> Any:
    return SimpleNamespace(type="text", text=value)


def call(arguments: dict[str, Any], raw: str | None = None) -> Any:
    return SimpleNamespace(
        type="toolCall", id="call_1", name="read", arguments=arguments, raw_arguments=raw
    )


FINAL = message(text("I will."), call({"path": "README.md"}))
SIX = [
    Event("start", message()),
    Event("text_delta", message(text("I will.")), 0, "I will."),
    Event("toolcall_delta", message(text("I will."), call({}, '{"path":')), 1, '{"path":'),
    Event("toolcall_end", FINAL, 1),
    Event("done", message=FINAL),
]


class Stream:
    """A stream with a result of its own, as an EventStream has."""

    def __init__(self, events: list[Any], result: Any) -> None:
        self._events, self._result = events, result

    def __aiter__(self) -> AsyncIterator[Any]:
        return generator(self._events)

    async def result(self) -> Any:
        return self._result


def run(stream: Any) -> Any:
    return asyncio.run(asyncio.wait_for(view.live(stream), 5))


def test_a_plain_generator_of_four_events(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(generator(four_events("tiny", "-pi"))) == "tiny-pi"
    assert capsys.readouterr().out == (
        "4 events; the last is done.\n"
        "\n"
        "#  event       delta   text so far\n"
        "-  ----------  ------  ----------------\n"
        "1  start\n"
        "2  text_delta  'tiny'  'tiny'\n"
        "3  text_delta  '-pi'   'tiny-pi'\n"
        "4  done                'tiny-pi'\n"
        "                       result 'tiny-pi'\n"
    )


def test_a_model_stream_shows_each_partial(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Stream(SIX, FINAL)) is FINAL
    out = capsys.readouterr().out
    assert 'call call_1 read({}) raw {"path":' in " ".join(out.split())
    assert 'call call_1 read({"path": "README.md"})' in " ".join(out.split())
    assert "1  start" in out and "no content yet" in out


def test_the_result_of_the_last_event_counts_without_a_result_method() -> None:
    assert run(generator(SIX)) is FINAL


def test_an_empty_stream_is_shown_as_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(generator([])) == ""
    assert capsys.readouterr().out.startswith("0 events; the stream ended at once.")


def test_a_stream_that_raises_is_shown_up_to_there(capsys: pytest.CaptureFixture[str]) -> None:
    async def broken() -> AsyncIterator[Any]:
        yield {"type": "start"}
        raise ValueError("socket reset")

    with pytest.raises(ValueError, match="socket reset"):
        run(broken())
    assert capsys.readouterr().out.startswith("1 event; it raised ValueError: socket reset.")


def test_an_interrupt_closes_the_stream_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    closed: list[bool] = []

    async def silent() -> AsyncIterator[Any]:
        try:
            yield {"type": "start"}
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def interrupted() -> None:
        task = asyncio.ensure_future(view.live(silent()))
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    assert closed == [True]
    assert capsys.readouterr().out.startswith("1 event; aborted by an interrupt.")


def test_a_second_interrupt_still_leaves_the_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    async def slow_to_leave() -> AsyncIterator[Any]:
        try:
            yield {"type": "start"}
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    async def interrupted() -> None:
        task = asyncio.ensure_future(view.live(slow_to_leave()))
        for _ in range(2):
            for _ in range(20):
                await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    assert capsys.readouterr().out.startswith("1 event; aborted by an interrupt.")


def test_what_is_no_stream_is_refused_in_a_sentence() -> None:
    with pytest.raises(CourseError, match="takes a stream .* not function"):
        run(test_what_is_no_stream_is_refused_in_a_sentence)


def test_a_result_of_another_type_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(generator([{"type": "done", "result": 7}])) == 7
    assert "7" not in capsys.readouterr().out


def test_a_long_stream_leaves_out_its_middle_and_says_which_rows() -> None:
    shown = repr(timeline({"type": "text_delta", "delta": f"{n} "} for n in range(1000)).shown())
    half = ROWS // 2
    assert f"Rows {half + 1} to {1000 - half} are left out here." in " ".join(shown.split())
    assert f"{1000 - ROWS} more" in shown
    assert len(shown) < 40_000
    assert "998 999" in shown
    assert re.findall(r"(?m)^(\d+) +text_delta", shown) == [
        *map(str, range(1, half + 1)),
        *map(str, range(1001 - half, 1001)),
    ]


def test_chunks_of_a_provider_are_joined_by_their_index() -> None:
    chunks = [
        SimpleNamespace(type="text", delta="I will."),
        SimpleNamespace(type="tool", index=4, id="a", name="read", arguments_delta='{"path":'),
        SimpleNamespace(type="tool", index=4, id=None, name=None, arguments_delta='"x"}'),
        SimpleNamespace(type="finish", reason="tool_calls", usage=None),
    ]
    assert known_after(timeline(chunks).entries)[-1] == [
        {"type": "text", "text": "I will."},
        {"type": "call", "id": "a", "name": "read", "arguments": "{}", "raw": '{"path":"x"}'},
    ]
    shown = repr(timeline(chunks).shown())
    assert "finish (tool_calls)" in shown and 'call a read({}) raw {"path":"x"}' in shown


def test_lanes_stand_before_the_event_that_they_led_to(capsys: pytest.CaptureFixture[str]) -> None:
    wire: list[bytes] = []
    chunks: list[Any] = []

    async def events() -> AsyncIterator[Any]:
        for piece in ("Hel", "lo"):
            wire.append(f'data: {{"text": "{piece}"}}'.encode())
            chunks.append(SimpleNamespace(type="text", delta=piece))
            yield {"type": "text_delta", "delta": piece}
        wire.append(b"data: [DONE]")

    lanes = {"wire": wire, "chunk": chunks}
    assert asyncio.run(view.live(events(), lanes=lanes)) == "Hello"
    assert capsys.readouterr().out == (
        "2 events; the last is text_delta.\n"
        "\n"
        "#  lane   event       delta                    text so far\n"
        "-  -----  ----------  -----------------------  -----------\n"
        '1  wire   bytes       \'data: {"text": "Hel"}\'\n'
        "2  chunk  text        'Hel'\n"
        "3  event  text_delta  'Hel'                    'Hel'\n"
        '4  wire   bytes       \'data: {"text": "lo"}\'\n'
        "5  chunk  text        'lo'\n"
        "6  event  text_delta  'lo'                     'Hello'\n"
        "7  wire   bytes       'data: [DONE]'\n"
    )


def test_a_long_piece_of_a_lane_leaves_room_for_the_partial() -> None:
    """Where it was cut is what one wants to see: both of its ends are in the row."""
    made = Timeline()
    made.note("wire", b"data: " + b"x" * 90 + b"call-")
    made.note("wire", b"1\n\n")
    made.add({"type": "text_delta", "delta": "Hi"})
    html = made.shown().html
    assert "<code>'data: " + "x" * 24 + " … " + "x" * 25 + "call-'</code>" in html
    assert r"<code>'1\n\n'</code>" in html


def timeline(events: Iterable[Any]) -> Timeline:
    made = Timeline()
    for event in events:
        made.add(event)
    return made


def known_after(entries: Iterable[Entry]) -> list[list[Any]]:
    state = State()
    states: list[list[Any]] = []
    for entry in entries:
        # Through JSON, as a page gets it.
        kind, at, delta, place, changes, lane = (
            *json.loads(json.dumps(entry.sent())),
            *[None] * 5,
        )[:6]
        blocks = {int(n): block for n, block in (changes or {}).pop("blocks", {}).items()}
        state.apply(
            Entry(kind, at, delta or "", place, {**(changes or {}), "blocks": blocks}, lane)
        )
        states.append(state.blocks())
    return states


def plain(block: Any) -> dict[str, Any]:
    if block.type == "text":
        return {"type": "text", "text": block.text}
    return {
        "type": "call",
        "id": block.id,
        "name": block.name,
        "arguments": json.dumps(block.arguments, ensure_ascii=False),
        "raw": block.raw_arguments,
    }


pieces = st.text(max_size=40)
blocks = st.lists(st.tuples(st.booleans(), st.lists(pieces, max_size=30)), max_size=4)


@given(blocks)
def test_the_entries_tell_every_partial_again(wanted: list[tuple[bool, list[str]]]) -> None:
    """Also of a reply that is too long for each partial to be read."""
    content: list[Any] = []
    events: list[Event] = [Event("start", message())]
    for place, (is_text, deltas) in enumerate(wanted):
        sofar = ""
        for delta in deltas:
            sofar += delta
            block = text(sofar) if is_text else call({}, sofar)
            kind = "text_delta" if is_text else "toolcall_delta"
            events.append(Event(kind, message(*content, block), place, delta))
        if not deltas:
            events.append(Event("other", message(*content, call({}, None)), place))
        content.append(text(sofar) if is_text and deltas else call({"whole": sofar}))
        events.append(Event("end", message(*content), place))
    events.append(Event("done", message=message(*content)))
    expected = [[plain(block) for block in (e.message or e.partial).content] for e in events]
    assert known_after(timeline(events).entries) == expected


def test_a_partial_that_differs_from_its_deltas_is_shown_as_it_is() -> None:
    events = [
        Event("text_delta", message(text("Hel")), 0, "Hel"),
        Event("text_delta", message(text("HELLO")), 0, "lo"),
        Event("text_delta", message(), 0, "!"),
        Event("text_delta", message(text("x")), -1, "x"),
    ]
    assert known_after(timeline(events).entries) == [
        [{"type": "text", "text": "Hel"}],
        [{"type": "text", "text": "HELLO"}],
        [],
        [{"type": "text", "text": "x"}],
    ]


def test_an_entry_stays_when_its_event_is_changed_later() -> None:
    live_block = text("")
    made = Timeline()
    for piece in ("Hel", "lo"):
        live_block.text += piece
        made.add(Event("text_delta", message(live_block), 0, piece))
    live_block.text = "gone"
    assert [state[0]["text"] for state in known_after(made.entries)] == ["Hel", "Hello"]


def test_half_a_surrogate_pair_is_spelled() -> None:
    made = timeline([Event("text_delta", message(text("\ud83d")), 0, "\ud83d")])
    json.dumps(made.entries[0].sent(), ensure_ascii=False).encode()
    repr(made.shown()).encode()


def test_a_long_partial_is_read_now_and_then() -> None:
    read: list[int] = []

    class Counting:
        type = "text_delta"
        content_index = 0
        delta = "0123456789"

        def __init__(self, number: int) -> None:
            self._number = number

        @property
        def partial(self) -> Any:
            read.append(self._number * 10)
            return message(text(self.delta * self._number))

    made = timeline(Counting(number) for number in range(1, 5001))
    assert sum(read) < 5000 * ALLOWANCE * 2
    assert len(known_after(made.entries)[-1][0]["text"]) == 50_000


def test_plain_python_needs_neither_ipython_nor_widgets() -> None:
    program = (
        "import asyncio, sys\n"
        "from pi_course_kit.notebook.view import live\n"
        "async def g():\n    yield {'type': 'done', 'result': 7}\n"
        "print(asyncio.run(live(g())))\n"
        "print(sorted({'IPython', 'ipywidgets'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8")
    assert done.stdout.split("\n")[-3:] == ["7", "[]", ""]
