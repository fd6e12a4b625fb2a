"""live.js by itself: every state is the one that Python tells, and batches never mix up."""

from __future__ import annotations

import json
import random
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from pi_course_kit.notebook.timeline import State, Timeline

if TYPE_CHECKING:
    from playwright.sync_api import JSHandle, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def module(page: Page) -> JSHandle:
    """The module with its inner parts exported too."""
    source = resources.files("pi_course_kit.notebook").joinpath("live.js")
    return page.evaluate_handle(
        """source => import(URL.createObjectURL(
            new Blob([source + '\\nexport { Log, readable };'], { type: 'text/javascript' })
        ))""",
        source.read_text(encoding="utf-8"),
    )


def a_reply(deltas: int) -> Timeline:
    """Text and calls in turn, some of them changed without a delta, one block taken back."""
    dice = random.Random(deltas)
    content: list[dict[str, Any]] = []
    timeline = Timeline()

    def add(kind: str, index: int | None = None, delta: str = "") -> None:
        message = {"content": [dict(block) for block in content]}
        event = {"type": kind, "content_index": index, "delta": delta, "partial": message}
        timeline.add(event)

    add("start")
    for number in range(deltas):
        if number % 97 == 0:
            content.append({"type": "text", "text": ""})
        elif number % 97 == 50:
            call = {"type": "toolCall", "id": f"call_{number}", "name": "read", "arguments": {}}
            content.append(call | {"raw_arguments": ""})
        name = "text" if content[-1]["type"] == "text" else "raw_arguments"
        delta = dice.choice(["a", "bc", "{", "\u8bfb", "\U0001f600"])
        content[-1][name] += delta
        kind = "text_delta" if name == "text" else "toolcall_delta"
        add(kind, len(content) - 1, delta)
        if number % 97 == 96:
            content[-1] |= {"arguments": {"n": number}, "raw_arguments": None}
            add("toolcall_end", len(content) - 1)
    content.pop()
    add("end")
    return timeline


def test_the_state_after_each_entry_is_the_one_that_python_tells(module: JSHandle) -> None:
    timeline = a_reply(1200)
    state, expected = State(), list[Any]([[]])
    for entry in timeline.entries:
        state.apply(entry)
        expected.append(state.blocks())
    sent = [entry.sent() for entry in timeline.entries]
    told = module.evaluate(
        """({ Log }, sent) => {
            const log = new Log();
            for (let at = 0; at < sent.length; at += 7) {
                log.take({ at, entries: sent.slice(at, at + 7), carried: true });
            }
            return [...sent.keys(), sent.length].map(count => log.stateAt(count).blocks);
        }""",
        sent,
    )
    assert json.loads(json.dumps(told)) == json.loads(json.dumps(expected))


def test_a_late_batch_changes_nothing_and_an_early_one_waits(module: JSHandle) -> None:
    taken = module.evaluate(
        """({ Log }) => {
            const log = new Log();
            const entries = [...'abcdef'].map(delta => ['text_delta', null, delta]);
            const take = (from, to) => log.take({ at: from, entries: entries.slice(from, to) });
            const parts = [[0, 2], [3, 5], [0, 2], [1, 4], [3, 6], [0, 6]];
            const answers = parts.map(([from, to]) => take(from, to));
            return [answers, log.entries.map(entry => entry[2]).join('')];
        }"""
    )
    assert taken == [[True, False, True, True, True, True], "abcdef"]


WHOLE = json.dumps({"path": 'a\\b"\u8bfb', "lines": [1, {"x": [True, None]}], "n": -1.5})


def test_what_can_be_read_of_cut_json_grows_up_to_the_whole(module: JSHandle) -> None:
    cuts = [WHOLE[:end] for end in range(len(WHOLE) + 1)]
    read = module.evaluate("({ readable }, cuts) => cuts.map(readable)", cuts)
    assert read[0] == "" and json.loads(read[1]) == {}
    values = [json.loads(text) for text in read[1:]]
    assert values[-1] == json.loads(WHOLE)
    assert len({json.dumps(value) for value in values}) > 10
    for earlier, later in zip(values, values[1:], strict=False):
        assert set(earlier) <= set(later)
        assert later.get("path", "").startswith(earlier.get("path", ""))


CUT = {
    '{"path": "READ': {"path": "READ"},
    '{"path": "a\\': {"path": "a"},
    '{"path": "a\\\\': {"path": "a\\"},
    '{"path": "a\\u8b': {"path": "a"},
    '{"path": "a", "li': {"path": "a"},
    '{"path": "a", "lines": [1, 2': {"path": "a", "lines": [1]},
    '{"path": "a", "lines": tr': {"path": "a"},
    "[": [],
    "no json": None,
}


def test_what_is_open_is_closed_and_half_a_name_left_out(module: JSHandle) -> None:
    read = module.evaluate("({ readable }, cuts) => cuts.map(readable)", list(CUT))
    assert [json.loads(text) if text else None for text in read] == list(CUT.values())
