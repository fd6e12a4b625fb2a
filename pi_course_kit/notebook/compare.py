"""`await ch.compare("readme")`: the reference and a learner's folder, side by side in a cell."""

from __future__ import annotations

import asyncio
import inspect
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from pi_course_kit import compared
from pi_course_kit.checkpoint import Checkpoint, Scenario
from pi_course_kit.compare import Comparison, compare, compare_all
from pi_course_kit.errors import CourseError
from pi_course_kit.notebook.shown import (
    Block,
    Code,
    Facts,
    Heading,
    Pre,
    Shown,
    Table,
    Text,
    as_html,
    show,
)

ROOM = 60  # columns of a value in the table


async def compare_in_cell(
    chapter: Checkpoint, folder: Path | None, scenario: str | Callable[..., object] | None
) -> Shown:
    """In a thread, so that the kernel stays alive meanwhile."""
    if folder is None:
        return show(
            Text(f"There is nothing to compare yet: no practice folder of chapter {chapter.nn}."),
            Pre(f"pi-course practice {chapter.nn}"),
        )
    if callable(scenario):
        made = _own(scenario, chapter)
        found = [await asyncio.to_thread(compare, chapter, made, folder, name=scenario.__name__)]
    else:
        found = await asyncio.to_thread(compare_all, chapter, folder, scenario)
    return Shown(compared.text(chapter, folder, folder.name, found), _html(chapter, folder, found))


def _own(function: Callable[..., object], chapter: Checkpoint) -> Scenario:
    if not inspect.iscoroutinefunction(function):
        raise CourseError(
            "ch.compare() takes the name of a scenario, or a function that begins with "
            "`async def name(trace):`. It imports what it needs inside."
        )
    try:
        code = textwrap.dedent(inspect.getsource(function))
    except OSError as error:
        raise CourseError(
            f"The text of {function.__name__}() is not to be had, so no other process can run it. "
            "Define it in a cell of this notebook."
        ) from error
    title = (function.__doc__ or "Your own scenario").strip().partition("\n")[0]
    return Scenario(function.__name__, title, "", code)


def _html(chapter: Checkpoint, folder: Path, found: Sequence[Comparison]) -> str:
    last = found[-1]
    blocks: list[Block] = [Heading(f"{chapter.nn} · compared with {folder.name}")]
    rows = [
        (one.scenario.id, one.scenario.title, "differs" if one.differs else "equal")
        for one in found
    ]
    blocks.append(Table(("scenario", "what it does", "result"), rows))
    if last.reference is None or last.mine is None:
        blocks.append(Text("Nothing that was traced differs from the reference."))
        return as_html(blocks)
    blocks.append(Text(compared.story(last)))
    sides = [
        (Code(entry.asked), _code(entry.value), "equal") for entry in last.equal[-compared.BEFORE :]
    ]
    expected, got = compared.both(last.reference, last.mine, ROOM)
    asked = last.reference.asked or last.mine.asked
    sides.append((Code(asked), _lines(expected), _lines(got)))
    blocks.append(Table(("traced", "reference", "yours"), sides))
    if last.place is not None:
        blocks.append(Text(f"Made in `{compared.where(last.place)}`:"))
        lines = [
            f"{'>' if number == last.place.line else ' '} {number:>4}  {line}"
            for number, line in compared.excerpt(folder, last.place)
        ]
        blocks.append(Pre("\n".join(lines)))
    facts = [("next", f"`{compared.next_step(chapter, last)}`")]
    if last.lab is not None:
        facts.insert(0, ("lab", f"{last.lab.id}  {last.lab.title}"))
    if last.printed.strip():
        facts.insert(0, ("printed", last.printed.strip()[-300:]))
    blocks.append(Facts(facts))
    return as_html(blocks)


def _code(value: str) -> str:
    return Code(value if len(value) <= 3 * ROOM else value[: 3 * ROOM] + "…")


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(lines)
