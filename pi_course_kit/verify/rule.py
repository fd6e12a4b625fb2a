"""A rule: an id, a sentence, a check of one chapter, and a fault that the check must catch.

A rule that can't fail proves nothing, so a rule without its planted fault is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pi_course_kit.verify.case import Case

State = Literal["passed", "failed", "waits", "n/a"]
Plant = Callable[[Path], None]
Check = Callable[[Case], Iterable["Finding"]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule found: what is wrong, where, and what to do next."""

    what: str
    where: str
    do: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`needs` are rules whose failure makes this one meaningless: it then waits.

    `plant` breaks exactly this rule in a copy of the sample course (verify/sample.py): before
    what is derived there is made again, or with `settled` after it. `more` are further faults
    by name, for a rule that can be broken in several ways. `apart` rules wait for processes: they
    run beside the others, and no rule needs one of them.
    """

    id: str
    sentence: str
    check: Check
    plant: Plant
    needs: tuple[str, ...] = ()
    applies: Callable[[Case], bool] = lambda case: True
    settled: bool = False
    apart: bool = False
    more: Mapping[str, Plant] = field(default_factory=dict[str, Plant])

    @property
    def plants(self) -> dict[str, Plant]:
        """Every fault under the name that a trial has."""
        return {self.id: self.plant} | {f"{self.id}/{name}": p for name, p in self.more.items()}


def rebuilt(case: Case) -> bool:
    return case.chapter.mode == "rebuild"


def swap(path: str, old: str, new: str) -> Plant:
    """A planted fault that is an edit: `old` must stand in the file exactly once."""

    def plant(course: Path) -> None:
        file = course / path
        text = file.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{path} holds {old!r} {text.count(old)} times, not once")
        file.write_text(text.replace(old, new), encoding="utf-8", newline="\n")

    return plant


def put(path: str, text: str) -> Plant:
    """A planted fault that is a whole file."""

    def plant(course: Path) -> None:
        file = course / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")

    return plant


def both(*plants: Plant) -> Plant:
    def plant(course: Path) -> None:
        for one in plants:
            one(course)

    return plant
