"""Two values one below the other, in a given width, with their first difference marked."""

from __future__ import annotations

import ast
import re
import unicodedata

MARK = "^ first difference"
TWIN = {"==": "^ looks equal, but is not", "is": "^ equal, but another object"}
OTHER = re.compile(r"(is not|not in|in|!=|<=?|>=?) |pytest\.raises\(")
SHORT = 8  # up to this length one sees the difference without a mark
MOST = 12  # lines of one value


def compare(expected: str | None, got: str | None, room: int) -> tuple[list[str], list[str]]:
    """The lines of both reprs; a line with a mark follows the line of `got` that differs.

    `expected` may begin with an operator: "is" compares the values behind it, others nothing.
    """
    if expected and OTHER.match(expected):
        return _fold(expected.split("\n"), room), _fold((got or "").split("\n"), room)
    value = (expected or "").removeprefix("is ")
    if value != (expected or ""):
        _, shown = compare(value, got, room)
        twin = value == got
        return _fold([f"is {value}"], room), [*shown[:-1], TWIN["is"]] if twin else shown
    mine, theirs = _lines(got, expected)
    if not mine or not theirs:
        return _fold(theirs, room), _fold(mine, room)
    if mine == theirs:
        return _fold(theirs, room), [*_fold(mine, room), TWIN["=="]]
    row = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
    if row is None:
        row = min(len(mine), len(theirs))
        if row == len(mine):
            missing = "^ first difference: more lines are expected here"
            return _fold(theirs, room), [*_fold(mine, room), missing]
    column = _first_difference(mine[row], theirs[row] if row < len(theirs) else "")
    if len(mine) == 1 and max(len(mine[0]), len(theirs[0])) <= SHORT:
        return theirs, mine
    return _fold(theirs, room), _marked(mine, row, column, room)


def _lines(*pair: str | None) -> tuple[list[str], ...]:
    """Reprs as lines; those of strings, if one has several lines, as the strings themselves."""
    values = [_string(text) for text in pair]
    if all(value is not None and _is_plain(value) for value in values) and any(
        "\n" in (value or "") for value in values
    ):
        return tuple((value or "").split("\n") for value in values)
    return tuple([] if text is None else text.split("\n") for text in pair)


def _string(text: str | None) -> str | None:
    try:
        value: object = ast.literal_eval(text or "0") if (text or "")[:1] in ("'", '"') else None
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, str) else None


def _is_plain(value: str) -> bool:
    """No character but the newline needs an escape, and no line's end is invisible."""
    lines = value.split("\n")
    return all(line.isprintable() and line == line.rstrip() for line in lines)


def _first_difference(mine: str, theirs: str) -> int:
    pairs = enumerate(zip(mine, theirs, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(mine), len(theirs)))


def _fold(lines: list[str], room: int) -> list[str]:
    folded = [part for line in lines for part in _parts(line, room)]
    if len(folded) <= MOST:
        return folded
    return [*folded[:MOST], f"… {len(folded) - MOST} more lines"]


def _marked(lines: list[str], row: int, column: int, room: int) -> list[str]:
    shown: list[str] = []
    for index, line in enumerate(lines):
        start = 0
        for part in _parts(line, room):
            shown.append(part)
            last = start + len(part) >= len(line)
            if index == row and start <= column and (column < start + len(part) or last):
                pad = " " * width(part[: column - start])
                shown.append(pad + (MARK if width(pad) + len(MARK) <= room else "^"))
                row = -1
            start += len(part)
    if len(shown) <= MOST:
        return shown
    mark = next((i for i, line in enumerate(shown) if line.lstrip().startswith("^")), 0)
    start = max(0, mark - MOST + 2)
    after = len(shown) - start - MOST
    return [
        *([f"… {start} lines before"] if start else []),
        *shown[start : start + MOST],
        *([f"… {after} more lines"] if after > 0 else []),
    ]


def _parts(line: str, room: int) -> list[str]:
    parts: list[str] = []
    part = ""
    for char in line:
        if width(part) + width(char) > room:
            parts.append(part)
            part = ""
        part += char
    return [*parts, part]


def width(text: str) -> int:
    """Columns in a terminal: Chinese characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def cut(text: str, room: int) -> str:
    """`text` without line ends, in at most `room` columns."""
    text = " ".join(text.split("\n"))
    if width(text) <= room:
        return text
    while width(text) > room - 1:
        text = text[:-1]
    return text + "…"


def cut_left(text: str, room: int) -> str:
    """A path whose end matters, in at most `room` columns."""
    if width(text) <= room:
        return text
    while width(text) > room - 1:
        text = text[1:]
    return "…" + text
