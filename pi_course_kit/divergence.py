"""Which line made two traces differ, inferred from the ways that both sides went.

An exception has its own place. Else it is the first function, known to both sides, that was given
the same and gave something else; inside it, the line after which a local name of both held
something else. Else it is the first step that the other side did not take. Where no name differs
and the function is written nearly as in the reference, it is the first line that reads otherwise.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from pi_course_kit import symbols

ENDS = ("return", "raise")
ALIKE = 0.5  # of two functions' lines: below it, a line that reads otherwise says nothing

Step = dict[str, Any]  # as trace.py records it
Pair = tuple[list[Step], list[Step]]  # the reference's way to a value, and the learner's


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the learner's, the function around it, and the lines of it that ran."""

    file: str
    line: int
    function: str
    ran: tuple[int, ...]


def locate(
    entries: Sequence[tuple[Step, Step]],
    root: Path,
    folder: Path,
    again: Callable[[], Sequence[Step]],
) -> Place | None:
    """The line of `folder` that made the last pair differ; None when nothing of it ran.

    What an entry shows may have been decided on the way to one before it: of other values the
    first counts, of other steps the nearest. `again` traces the reference a second time: what
    is another one there too, such as the number of a process, says nothing.
    """
    last = entries[-1][1]
    if last.get("at"):
        return _place(last["at"], _ran(last["way"], last["at"]))
    both = _names(root, entries, 0) & _names(folder, entries, 1)
    both -= _unsteady([ours for ours, _ in entries], again())
    ways: list[Pair] = [
        (_steps(ours["way"], both), _steps(theirs["way"], both)) for ours, theirs in entries
    ]
    wording = _Wording(root, folder)
    found = _by_value(ways, wording) or _by_step(ways, wording)
    if found is None and (at := next((s["last"] for _, s in reversed(entries) if s["last"]), None)):
        found = _place(at, _ran(_whole(ways, 1), at))
    return found


def _by_value(ways: Sequence[Pair], wording: _Wording) -> Place | None:
    ours, theirs = _whole(ways, 0), _whole(ways, 1)
    pair = _other_value(ours, theirs)
    if pair is None:
        return None
    counterpart, step = pair
    at = step["at"]
    if counterpart is None:
        at = step["back"]
        step = _end(theirs[theirs.index(step) :], at)
        alike = [other for other in ours if step and _call(other) == _call(step)]
        counterpart = alike[-1] if alike else None
    if not (counterpart and step):
        return _place(at, step["ran"] if step else [])
    line = _line_inside(counterpart, step) or wording.otherwise(counterpart, step)
    if line is None and (place := wording.before(step, ours, theirs)):
        return place
    return _place((at[0], line or at[1], at[2]), step["ran"])


def _by_step(ways: Sequence[Pair], wording: _Wording) -> Place | None:
    ours, theirs = _whole(ways, 0), _whole(ways, 1)
    step = next((step for way in reversed(ways) if (step := _other_step(*way))), None)
    if step is None:
        return None
    at = _caller(step)
    if step["kind"] in ENDS and (place := wording.before(step, ours, theirs)):
        return place
    return _place(at, step.get("ran") or _ran(theirs, at))


def _steps(way: Sequence[Step], functions: set[tuple[str, str]]) -> list[Step]:
    return [step for step in way if _function(step) in functions]


def _whole(ways: Sequence[Pair], side: int) -> list[Step]:
    return [step for pair in ways for step in pair[side]]


def _names(root: Path, entries: Sequence[tuple[Step, Step]], side: int) -> set[tuple[str, str]]:
    """(file, name) of what is defined in the files that one side went through."""
    found: set[tuple[str, str]] = set()
    for file in {step["at"][0] for pair in entries for step in pair[side]["way"]}:
        text = (root / file).read_text(encoding="utf-8")
        found |= {(file, name) for name in symbols.names(text)}
    return found


def _unsteady(first: Sequence[Step], again: Sequence[Step]) -> set[tuple[str, str]]:
    """The functions whose steps are others in a second run of the same code."""
    counts = [
        Counter(
            (_function(step), step["kind"], step["given"], step["value"])
            for entry in run
            for step in entry["way"]
        )
        for run in (first, again[: len(first)])
    ]
    return {function for function, *_ in (counts[0] - counts[1]) + (counts[1] - counts[0])}


class _Wording:
    """How both sides have written a function that is nearly the same."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._roots = (root, folder)

    def otherwise(self, ours: Step, theirs: Step) -> int | None:
        """The first line that ran in a call and is not in the other side's function."""
        wanted, found = (self._function(side, step) for side, step in enumerate((ours, theirs)))
        match = SequenceMatcher(None, list(wanted.values()), list(found.values()), autojunk=False)
        if match.ratio() < ALIKE:
            return None
        numbers = list(found)
        same = {n for _, at, size in match.get_matching_blocks() for n in numbers[at : at + size]}
        return next((line for line in theirs["ran"] if line not in same), None)

    def before(self, late: Step, ours: Sequence[Step], theirs: Sequence[Step]) -> Place | None:
        """The place of the first other step, if it came before `late` and its words tell the line.

        An object may have been in another state long before it showed.
        """
        first = _other_step(ours, theirs)
        index = next(i for i, step in enumerate(theirs) if step is first or step is late)
        if theirs[index] is late:
            return None
        for at in (_caller(side[index]) for side in (ours, theirs) if index < len(side)):
            ends = [_end(side[index:], at) for side in (ours, theirs)]
            if ends[0] and ends[1] and (line := self.otherwise(ends[0], ends[1])):
                return _place((at[0], line, at[2]), ends[1]["ran"])
        return None

    def _function(self, side: int, step: Step) -> dict[int, str]:
        """The lines of the innermost function around the first that ran, by number."""
        text = (self._roots[side] / step["at"][0]).read_text(encoding="utf-8")
        first = min(step["ran"], default=0)
        around = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.lineno <= first <= (node.end_lineno or 0)
        ]
        inner = max(around, key=lambda node: node.lineno, default=None)
        if inner is None:
            return {}
        lines = text.split("\n")[inner.lineno - 1 : inner.end_lineno]
        return {inner.lineno + index: line.strip() for index, line in enumerate(lines)}


def _caller(step: Step) -> Sequence[Any]:
    """Who took a step: where a function is entered it was the one that called it."""
    return step["back"] if step["kind"] == "enter" and step["back"] else step["at"]


def _function(step: Step) -> tuple[str, str]:
    return step["at"][0], step["at"][2]


def _other_value(ours: Sequence[Step], theirs: Sequence[Step]) -> tuple[Step | None, Step] | None:
    """The first step with another value: a public function that was given another one, or any
    that was given the same as its counterpart, which comes first in the pair, and gave another.
    """
    calls: dict[tuple[str, ...], list[Step]] = {}
    for step in ours:
        calls.setdefault(_call(step), []).append(step)
    for step in theirs:
        found = calls.get(_call(step), [])
        counterpart = found.pop(0) if found else None
        if step["kind"] == "enter":
            if counterpart is None and step["back"] and _is_public(step["at"][2]):
                return None, step
        elif counterpart is not None and any(
            counterpart[key] != step[key] for key in ("kind", "value")
        ):
            return counterpart, step
    return None


def _call(step: Step) -> tuple[str, ...]:
    """What pairs the steps of both sides: calls, and apart from them the ends of calls."""
    way = "end" if step["kind"] in ENDS else step["kind"]
    # A generator returns something else than a function that hands one out.
    return (way, *_function(step), step["given"], str(step["code"]))


def _is_public(function: str) -> bool:
    name = function.rpartition(".")[2]
    return not name.startswith("_") or name.endswith("__")


def _line_inside(ours: Step, theirs: Step) -> int | None:
    """The line of a call after which a local name of both sides held something else.

    Where the other side changed a name and this one did not, it is the end of the straight path
    on which that change is missing.
    """
    both = set(ours["names"]) & set(theirs["names"])
    wanted = [(name, value) for _, name, value in ours["changes"] if name in both]
    found = [change for change in theirs["changes"] if change[1] in both]
    same = 0
    while same < min(len(wanted), len(found)) and tuple(found[same][1:]) == wanted[same]:
        same += 1
    if same == max(len(wanted), len(found)):
        return None
    ran: list[int] = theirs["ran"]
    end = found[same][0] if same < len(found) else len(ran) - 1
    if same < len(found) and tuple(found[same][1:]) not in wanted[same:]:
        return ran[end]
    path = ran[found[same - 1][0] + 1 if same else 0 : end + 1]
    back = next((i for i in range(1, len(path)) if path[i] < path[i - 1]), len(path))
    return path[back - 1] if path else None


def _other_step(ours: Sequence[Step], theirs: Sequence[Step]) -> Step | None:
    for index, step in enumerate(theirs):
        if index >= len(ours) or (step["kind"], _function(step)) != (
            ours[index]["kind"],
            _function(ours[index]),
        ):
            return step
    return theirs[-1] if theirs and len(theirs) < len(ours) else None


def _place(at: Sequence[Any], ran: Sequence[int]) -> Place:
    file, line, function = at
    return Place(file, line, function, tuple(sorted({*ran, line})))


def _end(way: Sequence[Step], at: Sequence[Any]) -> Step | None:
    """The next end of a call of this function."""
    return next(
        (step for step in way if _function(step) == (at[0], at[2]) and step["kind"] in ENDS), None
    )


def _ran(way: Sequence[Step], at: Sequence[Any]) -> list[int]:
    """The lines that ran in the last call of a function which has ended."""
    for step in reversed(way):
        if _function(step) == (at[0], at[2]) and step.get("ran"):
            return step["ran"]
    return []
