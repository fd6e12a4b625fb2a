"""A value as text that is the same in every process: JSON for models, no addresses.

Two dicts are equal in whatever order they were filled, and so are their texts.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any, cast

TAGS = ("role", "type")  # they say what the rest is
ADDRESS = re.compile(r" at 0x[0-9a-f]+|(?<=Task-)\d+| running at [^>\n]+:\d+")


def shown(value: object) -> str:
    """Never raises, whatever the value's own methods do.

    Example:
        >>> shown({"b": (1, 2), "a": {"y", "x"}})
        "{'a': {'x', 'y'}, 'b': (1, 2)}"
    """
    try:
        return _shown(value)
    except Exception as error:  # a learner's own repr, or a value that holds itself
        return f"<{type(value).__name__} that can't be shown: {type(error).__name__}>"


def _shown(value: Any) -> str:
    name = type(value).__name__
    match value:
        case BaseException():
            return f"{name}: {value}" if str(value) else name
        case dict():
            pairs = cast(dict[object, object], value).items()
            return "{" + ", ".join(sorted(f"{_shown(k)}: {_shown(v)}" for k, v in pairs)) + "}"
        case list():
            return "[" + ", ".join(map(_shown, cast(list[object], value))) + "]"
        case tuple() if not hasattr(cast(Any, value), "_fields"):
            items = [_shown(item) for item in cast(tuple[object, ...], value)]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        case set() | frozenset():
            items = sorted(map(_shown, cast(set[object], value)))
            return "{" + ", ".join(items) + "}" if items else f"{name}()"
        case type():
            return value.__qualname__
        case _ if callable(getattr(value, "model_dump", None)):
            fields = _in_order(value.model_dump(mode="json"))
            return f"{name} {json.dumps(fields, ensure_ascii=False)}"
        case _ if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value) if field.repr]
            return f"{name}({', '.join(f'{n}={_shown(getattr(value, n))}' for n in names)})"
        case _ if type(value).__repr__ is object.__repr__:
            return f"<{name}>"
        case _:
            return ADDRESS.sub("", repr(value))


def _in_order(value: Any) -> Any:
    """JSON with its tags first and the other keys by name."""
    if isinstance(value, list):
        return [_in_order(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    return {key: _in_order(fields[key]) for key in sorted(fields, key=_place)}


def _place(key: str) -> tuple[bool, str]:
    return key not in TAGS, key
