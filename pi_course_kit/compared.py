"""A comparison as text: 80 columns, the last equal values, then the two that differ."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pi_course_kit import report
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.compare import Comparison, Entry
from pi_course_kit.divergence import Place
from pi_course_kit.output import WIDTH
from pi_course_kit.values import compare, cut, cut_left, width

ROOM = WIDTH - 12
BEFORE = 2  # equal values shown before the one that differs
LINES = 7  # of the learner's code

_field = partial(report.field, hyphens=False)  # a command is not cut at its dashes


def text(chapter: Checkpoint, folder: Path, where: str, found: Sequence[Comparison]) -> str:
    """What came of the scenarios of a chapter; only the last one may differ."""
    last = found[-1]
    head = cut(f"{chapter.nn} · {chapter.title}", WIDTH - 10)
    word = "differs" if last.differs else "equal"
    lines = [head + word.rjust(WIDTH - width(head)), "", "compared " + cut_left(where, WIDTH - 9)]
    names = max(len(one.scenario.id) for one in found)
    for one in found:
        line = f"  {one.scenario.id.ljust(names)}  {cut(one.scenario.title, 58 - names)}"
        word = "differs" if one.differs else f"{_count(one)} equal"
        lines.append(line + word.rjust(WIDTH - width(line)))
    lines += ["", *(_parting(chapter, folder, last) if last.differs else _equal(chapter))]
    return "\n".join(lines)


def _count(one: Comparison) -> str:
    return f"{len(one.equal)} value{'s' * (len(one.equal) != 1)}"


def _equal(chapter: Checkpoint) -> Iterator[str]:
    yield from textwrap.wrap(
        "Nothing that was traced differs from the reference. What no scenario looks at, the "
        f"focused test of chapter {chapter.nn} may: pi-course check",
        WIDTH,
    )


def _parting(chapter: Checkpoint, folder: Path, one: Comparison) -> Iterator[str]:
    assert one.reference is not None and one.mine is not None
    yield story(one)
    for entry in one.equal[-BEFORE:]:
        yield from _field("equal", cut(entry.asked, ROOM))
        yield f"              {cut(entry.value, ROOM - 2)}"
    yield ""
    yield from _field("traced", one.reference.asked or one.mine.asked)
    expected, got = both(one.reference, one.mine, ROOM)
    for name, part in (("reference", expected), ("yours", got)):
        for index, line in enumerate(part):
            yield f"  {name if not index else '':<10}{line}".rstrip()
    if one.place is not None:
        yield from _field("made in", where(one.place))
        for number, line in excerpt(folder, one.place):
            mark = ">" if number == one.place.line else " "
            yield f"            {mark} {number:>4}  {cut(line, 60)}"
    if one.lab is not None:
        yield from _field("lab", f"{one.lab.id}  {one.lab.title}")
    if one.printed.strip():
        yield from _field("printed", "\n".join(one.printed.rstrip().split("\n")[-5:]))
    yield ""
    yield from _field("next", next_step(chapter, one))


def story(one: Comparison) -> str:
    if not one.equal:
        return "The first value differs."
    if len(one.equal) == 1:
        return "The first value is equal, then:"
    return f"The first {_count(one)} are equal, then:"


def both(reference: Entry, mine: Entry, room: int) -> tuple[list[str], list[str]]:
    """The lines of both sides; a value that another expression gave says so."""
    if (reference.kind, mine.kind) == ("value", "value") and reference.asked == mine.asked:
        return compare(reference.value, mine.value, room)
    return tuple(  # type: ignore[return-value]
        textwrap.wrap(_other(entry, mine if entry is reference else reference), room) or [""]
        for entry in (reference, mine)
    )


def _other(entry: Entry, counterpart: Entry) -> str:
    if entry.kind == "value" and counterpart.kind == "value":
        return f"{entry.asked} gives {entry.value}"
    return entry.value


def where(place: Place) -> str:
    inside = "at its top level" if place.function == "<module>" else f"in {place.function}()"
    return f"{place.file}:{place.line}, {inside}"


def excerpt(folder: Path, place: Place) -> list[tuple[int, str]]:
    """The lines that ran around the place, without their common indent."""
    source = (folder / place.file).read_text(encoding="utf-8").split("\n")
    at = place.ran.index(place.line)
    first = max(0, min(at - LINES + 3, len(place.ran) - LINES))
    numbers = place.ran[first : first + LINES]
    lines = textwrap.dedent("\n".join(source[number - 1] for number in numbers)).split("\n")
    return list(zip(numbers, lines, strict=True))


def next_step(chapter: Checkpoint, one: Comparison) -> str:
    if one.lab is None:
        return "pi-course check"
    if one.lab not in chapter.labs:
        return f"pi-course hint {one.lab.id}"
    return f"pi-course check --lab {one.lab.id}"
