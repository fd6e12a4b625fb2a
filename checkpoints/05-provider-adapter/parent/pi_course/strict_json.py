"""JSON text, read more strictly than json.loads reads it.

That takes NaN and Infinity, makes infinity of 1e999, and of a key that comes twice it keeps one
value and says nothing. What nobody meant is then stored, or done by a tool.
"""

import json
import math
from typing import NoReturn


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python reads no number that is so long, and so could not read it back
        raise ValueError(f"an integer of {len(digits)} digits is too long") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has the same key twice")
    return value


JSON = json.JSONDecoder(parse_constant=_no_constant)
"""What the standard calls JSON, for text that others are to blame for."""

STRICT_JSON = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_constant=_no_constant,
    parse_float=_finite,
    parse_int=_whole,
)
"""Nothing of which anybody could doubt what it means, for text that something is done with.

Both raise ValueError; text that is nested too deeply raises RecursionError.
"""
