"""Two chains of evidence, small enough to read at once.

Inside, a tagged union: the type checker proves that each event is handled. At the border, `object`:
only `read_delta` lets a value from outside in, and tests prove what it refuses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, assert_never, cast


@dataclass(frozen=True, slots=True)
class Started:
    request_id: str
    type: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Delta:
    request_id: str
    text: str
    type: Literal["delta"] = "delta"


@dataclass(frozen=True, slots=True)
class Finished:
    request_id: str
    reason: Literal["stop", "length"]
    type: Literal["finished"] = "finished"


@dataclass(frozen=True, slots=True)
class Aborted:
    request_id: str
    type: Literal["aborted"] = "aborted"


DemoEvent = Started | Delta | Finished | Aborted


def format_event(event: DemoEvent) -> str:
    """One line for an event.

    Example:
        >>> format_event(Finished("r1", "stop"))
        'finish r1 stop'
    """
    match event:
        case Started():
            return f"start {event.request_id}"
        case Delta():
            return f"delta {event.request_id} {event.text}"
        case Finished():
            return f"finish {event.request_id} {event.reason}"
        case Aborted():
            return f"abort {event.request_id}"
        case _:
            # A new member of the union without a case above turns the type checker red here.
            assert_never(event)


def read_delta(value: object) -> Delta:
    """A new Delta from the checked fields of a mapping; ValueError names the field otherwise.

    Example:
        >>> read_delta({"type": "delta", "requestId": "r1", "text": 42})
        Traceback (most recent call last):
        ValueError: invalid delta event: text must be a string, got 42
    """
    if not isinstance(value, Mapping):
        raise _refusal("value", "a mapping", value)
    # isinstance says nothing about keys and values, so they are objects until checked.
    fields = cast(Mapping[object, object], value)
    kind = fields.get("type", _NOTHING)
    if kind != "delta":
        raise _refusal("type", "'delta'", kind)
    request_id = fields.get("requestId", _NOTHING)
    if not isinstance(request_id, str) or request_id == "":
        raise _refusal("requestId", "a non-empty string", request_id)
    text = fields.get("text", _NOTHING)
    if not isinstance(text, str):
        raise _refusal("text", "a string", text)
    return Delta(request_id, text)


class _Nothing:
    """Stands for a field that is not there, since None is what JSON's null becomes."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING: Final = _Nothing()


def _refusal(field: str, rule: str, got: object) -> ValueError:
    return ValueError(f"invalid delta event: {field} must be {rule}, got {got!r}")
