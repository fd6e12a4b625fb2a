"""Focused test of chapter 01: a tagged union, exhaustive formatting, and the unknown border."""

import json
import traceback
from collections import ChainMap, defaultdict
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from types import MappingProxyType, SimpleNamespace
from typing import get_args, get_type_hints

import pytest

WIRE_DELTA = {"type": "delta", "requestId": "r1", "text": "Pi"}


def refusal(value):
    """The text of the ValueError that read_delta raises, or what it returned."""
    from pi_course.survival import read_delta

    try:
        return f"accepted as {read_delta(value)!r}"
    except ValueError as error:
        return str(error)


class LooksLikeAMapping:
    """Has get() and all the fields, and is no Mapping all the same."""

    def __repr__(self):
        return "an object with get()"

    def keys(self):
        return WIRE_DELTA.keys()

    def get(self, name, default=None):
        return WIRE_DELTA.get(name, default)

    def __getitem__(self, name):
        return WIRE_DELTA[name]


def test_four_events_in_order():
    """The four kinds of event are printed as start, delta, finish and abort lines."""
    from pi_course.survival import Aborted, Delta, Finished, Started, format_event

    events = [Started("r1"), Delta("r1", "Pi"), Finished("r1", "stop"), Aborted("r2")]
    lines = [format_event(event) for event in events]
    assert lines == ["start r1", "delta r1 Pi", "finish r1 stop", "abort r2"]
    assert [type(line).__name__ for line in lines] == ["str"] * 4


def test_format_shows_the_fields_as_they_are():
    """Ids, texts and the other reason come from the event, not from the example."""
    from pi_course.survival import Aborted, Delta, Finished, Started, format_event

    events = [Started("a"), Delta("b", "x y\n"), Finished("c", "length"), Aborted("d")]
    lines = [format_event(event) for event in events]
    assert lines == ["start a", "delta b x y\n", "finish c length", "abort d"]
    assert [type(line).__name__ for line in lines] == ["str"] * 4


def test_events_carry_a_literal_type():
    """Fields stand in the given order; `type` is last, declared as the Literal of its own word."""
    from pi_course.survival import Aborted, Delta, Finished, Started

    events = [Started("r1"), Delta("r1", "Pi"), Finished("r1", "stop"), Aborted("r2")]
    assert [event.type for event in events] == ["started", "delta", "finished", "aborted"]
    assert [get_args(get_type_hints(type(event))["type"]) for event in events] == [
        ("started",),
        ("delta",),
        ("finished",),
        ("aborted",),
    ]
    assert [type(event).__match_args__ for event in events] == [
        ("request_id", "type"),
        ("request_id", "text", "type"),
        ("request_id", "reason", "type"),
        ("request_id", "type"),
    ]


def test_union_names_its_members():
    """DemoEvent is the union of the four classes, and the reason is "stop" or "length"."""
    from pi_course.survival import Aborted, Delta, DemoEvent, Finished, Started

    members = set(get_args(DemoEvent))
    assert {Started, Delta, Finished, Aborted} - members == set()
    assert set(get_args(get_type_hints(Finished)["reason"])) == {"stop", "length"}


def test_events_are_values():
    """Events are frozen: assigning a field raises. Equal fields make equal events."""
    from pi_course.survival import Aborted, Delta, Finished, Started

    def events():
        return [Started("r1"), Delta("r1", "Pi"), Finished("r1", "stop"), Aborted("r2")]

    for event in events():
        with pytest.raises(FrozenInstanceError):
            event.request_id = "r9"
    assert events() == events()
    assert Delta("r1", "Pi") != Delta("r1", "pi")


def test_format_refuses_what_is_no_event():
    """format_event ends in assert_never: a value outside the union raises AssertionError."""
    from pi_course.survival import format_event

    def outcome(value):
        try:
            return f"accepted as {format_event(value)!r}"
        except AssertionError as error:
            return f"raised by {traceback.extract_tb(error.__traceback__)[-1].name}"

    assert outcome({"type": "delta", "requestId": "r1", "text": "Pi"}) == "raised by assert_never"
    look_alike = SimpleNamespace(type="started", request_id="r1")
    assert outcome(look_alike) == "raised by assert_never"


def test_read_delta_takes_a_wire_object():
    """A mapping with type, requestId and text becomes a Delta; an empty text is legal."""
    from pi_course.survival import Delta, read_delta

    assert read_delta(WIRE_DELTA) == Delta("r1", "Pi")
    assert read_delta(json.loads('{"text":"","requestId":"x","type":"delta"}')) == Delta("x", "")


def test_strings_get_in_as_they_came():
    """Nothing is stripped or changed: blanks count, so an id of one blank is not empty."""
    from pi_course.survival import Delta, read_delta

    assert read_delta({**WIRE_DELTA, "text": " Pi\n"}) == Delta("r1", " Pi\n")
    assert read_delta({**WIRE_DELTA, "requestId": " R1 "}) == Delta(" R1 ", "Pi")
    assert refusal({**WIRE_DELTA, "requestId": " "}) == f"accepted as {Delta(' ', 'Pi')!r}"


def test_read_delta_takes_any_mapping():
    """A mapping that is not a dict is as good."""
    from pi_course.survival import Delta, read_delta

    for mapping in (MappingProxyType(WIRE_DELTA), ChainMap({}, WIRE_DELTA)):
        assert isinstance(mapping, Mapping)
        assert read_delta(mapping) == Delta("r1", "Pi")


def test_extra_fields_do_not_get_in():
    """The Delta is built from the checked fields only; the mapping stays as it was."""
    from pi_course.survival import Delta, read_delta

    value = {**WIRE_DELTA, "admin": True, "reason": "stop", "request_id": "r9"}
    event = read_delta(value)
    assert (type(event), event) == (Delta, Delta("r1", "Pi"))
    assert (hasattr(event, "admin"), hasattr(event, "reason")) == (False, False)
    assert value == {**WIRE_DELTA, "admin": True, "reason": "stop", "request_id": "r9"}


def test_delta_is_not_tied_to_its_source():
    """Changing the mapping afterwards does not change the event."""
    from pi_course.survival import Delta, read_delta

    value = dict(WIRE_DELTA)
    event = read_delta(value)
    value["text"] = "changed"
    assert event == Delta("r1", "Pi")


@pytest.mark.parametrize(
    "value",
    [None, [], ["delta", "r1", "Pi"], ("delta",), "delta", 42, True, LooksLikeAMapping()],
    ids=["none", "empty-list", "list", "tuple", "text", "number", "bool", "look-alike"],
)
def test_only_a_mapping_gets_in(value):
    """What is no Mapping is refused, also if it has get(); the error names `value` and its repr."""
    assert refusal(value) == f"invalid delta event: value must be a mapping, got {value!r}"


def test_event_object_is_not_a_wire_object():
    """A Delta itself is not a mapping and is refused like any other value."""
    from pi_course.survival import Delta

    event = Delta("r1", "Pi")
    assert refusal(event) == f"invalid delta event: value must be a mapping, got {event!r}"


@pytest.mark.parametrize(
    ("field", "rule", "got"),
    [
        ("type", "'delta'", "started"),
        ("type", "'delta'", None),
        ("type", "'delta'", True),
        ("type", "'delta'", "Delta"),
        ("type", "'delta'", "delta "),
        ("type", "'delta'", []),
        ("type", "'delta'", {}),
        ("requestId", "a non-empty string", ""),
        ("requestId", "a non-empty string", None),
        ("requestId", "a non-empty string", True),
        ("requestId", "a non-empty string", 7),
        ("text", "a string", 42),
        ("text", "a string", True),
        ("text", "a string", None),
        ("text", "a string", b"Pi"),
        ("text", "a string", ["P", "i"]),
    ],
    ids=[
        "type-started",
        "type-null",
        "type-true",
        "type-capital",
        "type-blank",
        "type-list",
        "type-object",
        "id-empty",
        "id-null",
        "id-true",
        "id-number",
        "text-number",
        "text-true",
        "text-null",
        "text-bytes",
        "text-list",
    ],
)
def test_wrong_field_is_named(field, rule, got):
    """A field with a wrong value is refused; the error names the field, the rule and the value."""
    text = refusal({**WIRE_DELTA, field: got})
    assert text == f"invalid delta event: {field} must be {rule}, got {got!r}"


@pytest.mark.parametrize(
    ("field", "rule"),
    [("type", "'delta'"), ("requestId", "a non-empty string"), ("text", "a string")],
    ids=["type", "id", "text"],
)
def test_missing_field_is_named(field, rule):
    """A field that is not there is refused; the error says `got nothing`, which is not null."""
    value = {name: field_value for name, field_value in WIRE_DELTA.items() if name != field}
    assert refusal(value) == f"invalid delta event: {field} must be {rule}, got nothing"
    makes_it_up = defaultdict(lambda: "delta", value)  # what is asked with [] is there at once
    assert refusal(makes_it_up) == f"invalid delta event: {field} must be {rule}, got nothing"


def test_snake_case_id_does_not_count():
    """The wire name is requestId; request_id beside it is an extra field."""
    value = {"type": "delta", "request_id": "r1", "text": "Pi"}
    assert refusal(value) == (
        "invalid delta event: requestId must be a non-empty string, got nothing"
    )


def test_first_wrong_field_is_reported():
    """With several faults, type comes before requestId and requestId before text."""
    assert [
        refusal({}),
        refusal({"type": "delta"}),
        refusal({"type": "delta", "requestId": "r1"}),
    ] == [
        "invalid delta event: type must be 'delta', got nothing",
        "invalid delta event: requestId must be a non-empty string, got nothing",
        "invalid delta event: text must be a string, got nothing",
    ]
