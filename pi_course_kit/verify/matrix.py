"""Prove chapters: every rule on every chapter, in a small pool, into one matrix."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pi_course_kit import faults, snapshot
from pi_course_kit.checkpoint import Checkpoint, checkpoints
from pi_course_kit.errors import CourseError
from pi_course_kit.typecheck import Diagnostic, type_check_all
from pi_course_kit.verify import (
    books,
    isolation,
    layout,
    leaks,
    proof,
    prose,
    runs,
    scenarios,
    sources,
    students,
)
from pi_course_kit.verify.case import Case, Course, opened
from pi_course_kit.verify.rule import Finding, Rule, State

RULES: tuple[Rule, ...] = (
    *layout.RULES,
    *isolation.RULES,
    *prose.RULES,
    *books.RULES,
    *leaks.RULES,
    *runs.RULES,
    *scenarios.RULES,
    *students.RULES,
    *proof.RULES,
)

APART = 3  # rules of one chapter that wait beside each other
Judged = tuple[list[Finding], float]


@dataclass
class Row:
    """One chapter: the state of each rule, what was found, and how long it took."""

    chapter: Checkpoint
    states: dict[str, State] = field(default_factory=dict[str, State])
    findings: list[tuple[str, Finding]] = field(default_factory=list[tuple[str, Finding]])
    times: dict[str, float] = field(default_factory=dict[str, float])
    proof: dict[str, Any] = field(default_factory=dict[str, Any])
    digests: dict[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0

    def take(self, rule: Rule, judged: Judged) -> None:
        found, self.times[rule.id] = judged
        self.states[rule.id] = "failed" if found else "passed"
        self.findings += [(rule.id, finding) for finding in found]


@dataclass(frozen=True)
class Matrix:
    rows: tuple[Row, ...]
    seconds: float

    @property
    def green(self) -> bool:
        return not any(row.findings for row in self.rows)

    @property
    def faults(self) -> int:
        return sum(len(row.chapter.faults) for row in self.rows)


def prove(
    chosen: Sequence[Checkpoint],
    rules: Sequence[Rule] = RULES,
    *,
    deep: Callable[[str], None] | None = None,
) -> Matrix:
    """`deep` is told what runs while proof.json is brought up to date; None leaves it as it is."""
    began = time.monotonic()
    with scratch_folder() as scratch, ThreadPoolExecutor(_workers() + 1) as pool:
        course = Course(checkpoints(), scratch, pool.submit(_types, chosen, scratch / "types"))
        # The last chapter is the longest: it goes first, so that no worker ends up alone with it.
        waiting = [pool.submit(_row, course, chapter, rules, deep) for chapter in reversed(chosen)]
        rows = [row.result() for row in reversed(waiting)]
    return Matrix(tuple(rows), time.monotonic() - began)


def _workers() -> int:
    """One more than there are processors: tests that must hang wait for their time-out."""
    return min(4, 1 + (os.cpu_count() or 1))


@contextmanager
def scratch_folder() -> Generator[Path]:
    """A folder for everything, and a workspace of its own, so that no progress is touched."""
    kept = os.environ.get("PI_COURSE_WORKSPACE")
    with tempfile.TemporaryDirectory(prefix="pi-course-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder).resolve()
        os.environ["PI_COURSE_WORKSPACE"] = str(scratch / "workspace")
        try:
            yield scratch
        finally:
            if kept is None:
                del os.environ["PI_COURSE_WORKSPACE"]
            else:
                os.environ["PI_COURSE_WORKSPACE"] = kept


def _row(
    course: Course, chapter: Checkpoint, rules: Sequence[Rule], deep: Callable[[str], None] | None
) -> Row:
    row = Row(chapter)
    row.digests["parent"] = snapshot.parent_digest(chapter.number)
    row.digests["target"] = snapshot.target_digest(chapter.number)
    with opened(course, chapter) as case:
        if deep is not None:
            proof.prove(case, deep)
        began = time.monotonic()
        with ThreadPoolExecutor(APART) as pool:
            waiting: dict[str, Future[Judged]] = {}
            for rule in rules:
                if any(row.states.get(needed) in ("failed", "waits") for needed in rule.needs):
                    row.states[rule.id] = "waits"
                elif not rule.applies(case):
                    row.states[rule.id] = "n/a"
                elif rule.apart:
                    row.states[rule.id] = "passed"  # its place; the answer comes
                    waiting[rule.id] = pool.submit(_judge, rule, case)
                else:
                    row.take(rule, _judge(rule, case))
            for rule in rules:
                if rule.id in waiting:
                    row.take(rule, waiting[rule.id].result())
        row.seconds = time.monotonic() - began
        row.proof = proof.read(case)
    order = [rule.id for rule in rules]
    row.findings.sort(key=lambda found: order.index(found[0]))
    return row


def _judge(rule: Rule, case: Case) -> Judged:
    began = time.monotonic()
    try:
        found = list(rule.check(case))
    except CourseError as error:
        found = [Finding(str(error), case.name(case.chapter.folder), "")]
    except Exception as error:  # what is wrong with one chapter must not hide the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"the rule can't be applied: {type(error).__name__}: {error}"
        where = f"{case.chapter.id}, seen in {Path(place.filename).name}:{place.lineno}"
        found = [Finding(what, where, "Correct the chapter, or the rule.")]
    return found, time.monotonic() - began


def _types(chosen: Sequence[Checkpoint], folder: Path) -> dict[str, list[Diagnostic]]:
    """The type checker on all snapshots and types faults, started once.

    A file that is the same in two snapshots, with all that it imports, is checked in the first.
    """
    roots: dict[Path, list[Path]] = {}
    first: dict[str, tuple[Path, str]] = {}
    shared: dict[Path, list[tuple[Path, str]]] = {}
    for chapter in chosen:
        files = snapshot.snapshot_files(chapter.number)
        root = folder / chapter.nn
        snapshot.write(files, root)
        roots[root] = []
        for path in (path for path in files if path.endswith(".py")):
            place = first.setdefault(_closure(path, files), (root, path))
            if place[0] == root:
                roots[root].append(root / path)
            else:
                shared.setdefault(root, []).append(place)
        for fault in chapter.faults:
            if fault.expect == "types" and fault.file in files:
                broken = folder / f"{chapter.nn} {fault.id}"
                snapshot.write(files, broken)
                roots[broken] = [broken / fault.file]
                _break(broken / fault.file, chapter, fault.id)
    found: Mapping[Path, list[Diagnostic]] = type_check_all(roots, folder)
    return {
        root.name: [
            *errors,
            *(
                error
                for other, path in shared.get(root, ())
                for error in found[other]
                if error.file == path
            ),
        ]
        for root, errors in found.items()
    }


def _closure(path: str, files: Mapping[str, Path]) -> str:
    """A digest of a file and of all that it imports."""
    read = {path, *sources.reached(sources.read(files[path]), files)}
    return f"{path} {snapshot.digest({each: files[each] for each in read})}"


def _break(path: Path, chapter: Checkpoint, fault: str) -> None:
    try:
        text = faults.apply(chapter.fault(fault), path.read_text(encoding="utf-8"))
    except CourseError:
        return  # the rule `faults` says so
    path.write_text(text, encoding="utf-8", newline="\n")
