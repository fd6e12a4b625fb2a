"""The first live view: it follows every kind of stream, and what it leaves is always the same."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import view
from pi_course_kit.notebook.timeline import ROWS, Timeline


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
        "-  ----------  ------  -----------\n"
        "1  start\n"
        "2  text_delta  'tiny'  'tiny'\n"
        "3  text_delta  '-pi'   'tiny-pi'\n"
        "4  done                'tiny-pi'\n"
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


def test_what_is_no_stream_is_refused_in_a_sentence() -> None:
    with pytest.raises(CourseError, match="takes a stream .* not function"):
        run(test_what_is_no_stream_is_refused_in_a_sentence)


def test_a_long_stream_leaves_out_its_middle() -> None:
    timeline = Timeline()
    for n in range(1000):
        timeline.add({"type": "text_delta", "delta": f"{n} "})
    shown = repr(timeline.shown())
    assert f"{1000 - ROWS} more" in shown
    assert len(shown) < 40_000
    assert "998 999" in shown


def test_panes_escape_what_the_model_wrote() -> None:
    timeline = Timeline()
    timeline.add({"type": "text_delta", "delta": "<script>"})
    assert "<script>" not in view.panes(timeline) and "&lt;script&gt;" in view.panes(timeline)


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
