"""The arguments of a finished call: strict, since what is guessed here is done by a tool."""

import json
import math
from typing import NoReturn

from pi_course.surrogates import replace_surrogates_in
from pi_course.wire import frozen_json


def parse_arguments(raw: str) -> object:
    """One JSON object, or ValueError with the reason. A call without arguments may be blank.

    Example:
        >>> parse_arguments('{"path": "README.md"}')
        {'path': 'README.md'}
        >>> parse_arguments(" ")
        {}
    """
    if not raw.strip():
        return {}
    try:
        value: object = _STRICT.decode(raw)
        if (kind := type(value).__name__) != "dict":
            raise ValueError(f"found {kind}")
        return frozen_json(replace_surrogates_in(value))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has the same key twice")
    return value


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
)
