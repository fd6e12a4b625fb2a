"""Focused test of chapter 00: the trace of one request, and what check_trace finds in a bad one."""

from dataclasses import FrozenInstanceError, replace
from typing import get_args

import pytest

README_TRACE = """\
01 user_message      user Please read README.md and tell me the project name.
02 model_start       model messages: 1
03 assistant_message model I will read README.md first. read({"path": "README.md"})
04 tool_start        loop read({"path": "README.md"})
05 tool_result       tool # tiny-pi\\nA small agent runtime.
06 model_start       model messages: 3
07 assistant_message model tiny-pi"""


def trace(*rows):
    """Events from (owner, kind, tool_call_id) rows, numbered from 1."""
    from pi_course.prologue import TraceEvent

    return tuple(
        TraceEvent(step, owner, kind, "", tool_call_id)
        for step, (owner, kind, tool_call_id) in enumerate(rows, start=1)
    )


def renumber(events):
    return tuple(replace(event, step=step) for step, event in enumerate(events, start=1))


def refusal(events):
    """The text of the TraceError, or "accepted"."""
    from pi_course.prologue import TraceError, check_trace

    try:
        check_trace(events)
    except TraceError as error:
        return str(error)
    return "accepted"


def test_trace_has_seven_events_and_their_owners():
    """One request with one tool call makes seven events; each has an owner."""
    from pi_course.prologue import run_prologue

    assert [(event.step, event.kind, event.owner) for event in run_prologue()] == [
        (1, "user_message", "user"),
        (2, "model_start", "model"),
        (3, "assistant_message", "model"),
        (4, "tool_start", "loop"),
        (5, "tool_result", "tool"),
        (6, "model_start", "model"),
        (7, "assistant_message", "model"),
    ]


def test_lost_result_is_found_though_the_answer_looks_fine():
    """Without the tool_result the final text is still tiny-pi, and check_trace names call_1."""
    from pi_course.prologue import run_prologue

    broken = renumber(event for event in run_prologue() if event.kind != "tool_result")
    assert broken[-1].detail == "tiny-pi"
    assert refusal(broken) == (
        "step 3: call 'call_1' has no result: add a tool_result with this id after the call"
    )


def test_prologue_trace_is_accepted():
    """check_trace accepts the run as it is and returns nothing."""
    from pi_course.prologue import check_trace, run_prologue

    assert refusal(run_prologue()) == "accepted"
    assert check_trace(run_prologue()) is None


def test_owners_and_kinds_are_closed_lists():
    """Owner and TraceKind name every legal word; an event has no call id unless it is given one."""
    from pi_course.prologue import Owner, TraceEvent, TraceKind

    assert get_args(Owner) == ("user", "model", "loop", "tool")
    assert get_args(TraceKind) == (
        "user_message",
        "model_start",
        "assistant_message",
        "tool_start",
        "tool_result",
    )
    assert TraceEvent(1, "user", "user_message", "hello").tool_call_id is None


def test_call_its_start_and_its_result_carry_one_id():
    """The call, the tool_start and the tool_result carry call_1; no other event has an id."""
    from pi_course.prologue import run_prologue

    ids = [event.tool_call_id for event in run_prologue()]
    assert ids == [None, None, "call_1", "call_1", "call_1", None, None]


def test_tool_result_holds_the_text_of_the_file():
    """The tool_result's detail is the text of README.md, with its line break."""
    from pi_course.prologue import run_prologue

    results = [event.detail for event in run_prologue() if event.kind == "tool_result"]
    assert results == ["# tiny-pi\nA small agent runtime."]


def test_format_prints_the_readme_trace():
    """format_trace prints one line an event: step, kind padded to 17, owner, detail."""
    from pi_course.prologue import format_trace, run_prologue

    assert format_trace(run_prologue()) == README_TRACE


def test_format_keeps_one_line_an_event():
    """A step has two digits, a line break in a detail is printed as \\n, no events print ""."""
    from pi_course.prologue import TraceEvent, format_trace

    events = (
        TraceEvent(9, "user", "user_message", "a\nb\n\nc"),
        TraceEvent(10, "loop", "tool_start", "read"),
    )
    assert format_trace(events) == (
        "09 user_message      user a\\nb\\n\\nc\n10 tool_start        loop read"
    )
    assert format_trace(()) == ""


def test_result_before_its_call_is_refused():
    """A tool_result needs its call in an earlier event; a tool_start is not a call."""
    early = trace(
        ("user", "user_message", None),
        ("loop", "tool_start", "call_1"),
        ("tool", "tool_result", "call_1"),
        ("model", "assistant_message", "call_1"),
    )
    assert refusal(early) == (
        "step 3: the result for 'call_1' has no call before it: "
        "put it after the assistant_message that carries this id"
    )


def test_result_without_an_id_is_refused():
    """A tool_result that carries no id belongs to no call."""
    lone = trace(("model", "assistant_message", None), ("tool", "tool_result", None))
    assert refusal(lone) == (
        "step 2: the result for None has no call before it: "
        "put it after the assistant_message that carries this id"
    )


def test_second_result_for_a_call_is_refused():
    """One call has one result."""
    twice = trace(
        ("model", "assistant_message", "call_1"),
        ("tool", "tool_result", "call_1"),
        ("tool", "tool_result", "call_1"),
    )
    assert refusal(twice) == ("step 3: a second result for 'call_1': keep one result for each call")


def test_call_id_used_twice_is_refused():
    """Two calls with one id can't be paired, not even when the first has its result."""
    twice = trace(
        ("model", "assistant_message", "call_1"),
        ("tool", "tool_result", "call_1"),
        ("model", "assistant_message", "call_1"),
        ("tool", "tool_result", "call_1"),
    )
    assert refusal(twice) == ("step 3: call id 'call_1' is used twice: give each call its own id")


def test_results_are_paired_by_id_and_not_by_order():
    """Two open calls may be answered in any order; the one left open is named."""
    rows = [
        ("model", "assistant_message", "call_a"),
        ("model", "assistant_message", "call_b"),
        ("tool", "tool_result", "call_b"),
        ("tool", "tool_result", "call_a"),
    ]
    assert refusal(trace(*rows)) == "accepted"
    assert refusal(trace(*rows[:3])) == (
        "step 1: call 'call_a' has no result: add a tool_result with this id after the call"
    )


@pytest.mark.parametrize(
    ("steps", "found", "belongs"),
    [
        ((0, 1, 2), 0, 1),
        ((2, 3, 4), 2, 1),
        ((1, 3, 4), 3, 2),
        ((1, 1, 2), 1, 2),
        ((1, 3, 2), 3, 2),
    ],
    ids=["from-zero", "from-two", "gap", "repeated", "swapped"],
)
def test_steps_must_count_from_one(steps, found, belongs):
    """Steps are 1, 2, 3 without a gap; the error names the step found and the step that belongs."""
    from pi_course.prologue import TraceEvent

    assert refusal(TraceEvent(step, "user", "user_message", "hello") for step in steps) == (
        f"step {found} stands where step {belongs} belongs: number the events 1, 2, 3 without a gap"
    )


def test_trace_error_belongs_to_the_error_tree():
    """`except PiError` catches a TraceError, and PiError is an ordinary Exception."""
    from pi_course.errors import PiError
    from pi_course.prologue import TraceError

    assert TraceError.__mro__[:3] == (TraceError, PiError, Exception)


@pytest.mark.parametrize("field", ["step", "owner", "kind", "detail", "tool_call_id"])
def test_events_are_values(field):
    """No caller can change an event or another caller's trace."""
    from pi_course.prologue import run_prologue

    mine, yours = run_prologue(), run_prologue()
    with pytest.raises(FrozenInstanceError):
        setattr(mine[0], field, "changed")
    assert (type(mine), mine == yours) == (tuple, True)
