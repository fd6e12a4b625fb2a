"""A chapter's checkpoint.toml as frozen values.

The learner's commands read it with tomllib alone: importing pydantic would cost more than
the command itself. `manifest.py` holds the strict model that `verify` and the tests use.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pi_course_kit.data import data_dir
from pi_course_kit.errors import CourseError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """Some of a lab's tests under one name, so that a lab can be made green in two goes."""

    name: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lab:
    """`symbols` are "file:Name"; the tests of all labs together are the pinned ids."""

    id: str
    title: str
    symbols: tuple[str, ...]
    steps: tuple[Step, ...]
    expect: str

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(test for step in self.steps for test in step.tests)


@dataclass(frozen=True, slots=True)
class Fault:
    """An edit on the target's text that must turn exactly `tests` red (or types, or nothing)."""

    id: str
    title: str
    file: str
    old: str
    new: str
    expect: Literal["tests", "types", "nothing"]
    tests: tuple[str, ...]
    shows: str
    reason: str


@dataclass(frozen=True, slots=True)
class Question:
    """An acceptance question; `show` is evaluated on the checkpoint's `run` as evidence."""

    ask: str
    answer: str
    show: str


@dataclass(frozen=True, slots=True)
class Term:
    term: str
    text: str


@dataclass(frozen=True, slots=True)
class PiFact:
    version: str
    text: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """Code with `async def scenario(trace)`, to be run on two packages and compared.

    `lab` is the one whose behaviour it shows.
    """

    id: str
    title: str
    lab: str
    code: str


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that the focused test may miss, with the reason why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    folder: Path
    number: int
    slug: str
    title: str
    idea: str
    artifact: str
    minutes: int
    level: Literal["entry", "core", "advanced"]
    requires: tuple[str, ...]
    mode: Literal["observe", "rebuild"]
    goals: tuple[str, ...]
    files: tuple[str, ...]
    given: tuple[str, ...]
    starters: bool
    deletions: tuple[str, ...]
    first_red: tuple[str, ...]
    run: str
    interface: str
    transfer: str
    terms: tuple[Term, ...]
    labs: tuple[Lab, ...]
    faults: tuple[Fault, ...]
    questions: tuple[Question, ...]
    pi: tuple[PiFact, ...]
    mutants: tuple[Survivor, ...]
    scenarios: tuple[Scenario, ...] = ()

    @property
    def nn(self) -> str:
        return f"{self.number:02d}"

    @property
    def id(self) -> str:
        return f"{self.nn}-{self.slug}"

    @property
    def test_name(self) -> str:
        return f"test_{self.nn}_{self.slug.replace('-', '_')}.py"

    @property
    def tests(self) -> tuple[str, ...]:
        """The pinned test ids of all labs, in order."""
        return tuple(test for lab in self.labs for test in lab.tests)

    def lab(self, name: str) -> Lab:
        for lab in self.labs:
            if lab.id == name:
                return lab
        known = ", ".join(lab.id for lab in self.labs)
        raise CourseError(f"Chapter {self.nn} has no lab {name!r}. Its labs are: {known}.")

    def lab_of(self, test: str) -> str:
        """The id of the lab that owns a test; "" for a test that is not pinned."""
        for lab in self.labs:
            if test in lab.tests:
                return lab.id
        return ""

    def fault(self, name: str) -> Fault:
        for fault in self.faults:
            if fault.id == name:
                return fault
        known = ", ".join(fault.id for fault in self.faults) or "none"
        raise CourseError(f"Chapter {self.nn} has no fault {name!r}. Its faults are: {known}.")

    def scenario(self, name: str) -> Scenario:
        for scenario in self.scenarios:
            if scenario.id == name:
                return scenario
        known = ", ".join(scenario.id for scenario in self.scenarios) or "none"
        raise CourseError(
            f"Chapter {self.nn} has no scenario {name!r}. Its scenarios are: {known}."
        )


def load(folder: Path) -> Checkpoint:
    """Read one checkpoint.toml; CourseError names the file and the field that is wrong."""
    path = folder / "checkpoint.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(f"{path} can't be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} is not valid TOML: {error}. Correct that line.") from error
    try:
        return _checkpoint(folder, table)
    except KeyError as error:
        raise CourseError(
            f"{path}: the field {error.args[0]!r} is missing. Add it; "
            "`pi-course verify` checks the whole file."
        ) from error
    except (TypeError, AttributeError, ValueError) as error:
        raise CourseError(
            f"{path}: a field has the wrong type ({error}). `pi-course verify` names the field."
        ) from error


def _checkpoint(folder: Path, table: Mapping[str, Any]) -> Checkpoint:
    number = table["number"]
    if not isinstance(number, int) or f"{number:02d}-{table['slug']}" != folder.name:
        raise CourseError(
            f"{folder / 'checkpoint.toml'}: number {number!r} and slug {table['slug']!r} "
            f"do not match the folder's name {folder.name!r}. Make them equal."
        )
    return Checkpoint(
        folder=folder,
        number=number,
        slug=table["slug"],
        title=table["title"],
        idea=table["idea"],
        artifact=table["artifact"],
        minutes=table["minutes"],
        level=table["level"],
        requires=_texts(table, "requires"),
        mode=table["mode"],
        goals=_texts(table, "goals"),
        files=_texts(table, "files"),
        given=_texts(table, "given"),
        starters=table.get("starters", True),
        deletions=_texts(table, "deletions"),
        first_red=_texts(table, "first_red"),
        run=table.get("run", ""),
        interface=table.get("interface", ""),
        transfer=table.get("transfer", ""),
        terms=_rows(table, "terms", lambda row: Term(row["term"], row["text"])),
        labs=_rows(table, "labs", _lab),
        faults=_rows(table, "faults", _fault),
        questions=_rows(
            table, "questions", lambda row: Question(row["ask"], row["answer"], row["show"])
        ),
        pi=_rows(table, "pi", lambda row: PiFact(row["version"], row["text"])),
        mutants=_rows(table, "mutants", lambda row: Survivor(row["id"], row["reason"])),
        scenarios=_rows(
            table,
            "scenarios",
            lambda row: Scenario(row["id"], row["title"], row["lab"], row["code"]),
        ),
    )


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):  # pyright: ignore[reportUnknownVariableType]
        raise TypeError(f"{key} must be a list of strings")
    return tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _rows(
    table: Mapping[str, Any], key: str, make: Callable[[Mapping[str, Any]], T]
) -> tuple[T, ...]:
    return tuple(make(row) for row in table.get(key, []))


def _lab(row: Mapping[str, Any]) -> Lab:
    return Lab(
        id=row["id"],
        title=row["title"],
        symbols=_texts(row, "symbols"),
        steps=_rows(row, "steps", lambda step: Step(step["name"], _texts(step, "tests"))),
        expect=row["expect"],
    )


def _fault(row: Mapping[str, Any]) -> Fault:
    return Fault(
        id=row["id"],
        title=row["title"],
        file=row["file"],
        old=row["old"],
        new=row["new"],
        expect=row["expect"],
        tests=_texts(row, "tests"),
        shows=row.get("shows", ""),
        reason=row.get("reason", ""),
    )


@cache
def folders() -> tuple[Path, ...]:
    """The checkpoint folders in chapter order, found by name and not opened."""
    return tuple(sorted(p for p in data_dir("checkpoints").iterdir() if p.name[:2].isdigit()))


@cache
def checkpoints() -> tuple[Checkpoint, ...]:
    return tuple(_load(folder) for folder in folders())


@cache
def _load(folder: Path) -> Checkpoint:
    return load(folder)


def find(name: str) -> Checkpoint:
    """The chapter called "3", "03" or "03-message-ir"."""
    for folder in folders():
        number = folder.name[:2]
        if name == folder.name or (name.isascii() and name.isdigit() and int(name) == int(number)):
            return _load(folder)
    known = ", ".join(folder.name[:2] for folder in folders())
    raise CourseError(
        f"There is no chapter {name!r}. The chapters are {known}; see `pi-course list`."
    )


def following(chapter: Checkpoint) -> Checkpoint | None:
    """The chapter after this one; None after the last."""
    number = chapter.number + 1
    found = (folder for folder in folders() if int(folder.name[:2]) == number)
    return next(map(_load, found), None)
