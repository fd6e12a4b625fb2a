"""`check`: run the course's copy of the focused test on a folder, and decide the verdict.

Green is never the absence of bad news. It takes every pinned test collected once and passed, a
canary that failed in the same session, an end record, and a normal exit of the child.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pi_course_kit import practice, symbols
from pi_course_kit.checkpoint import Checkpoint, find
from pi_course_kit.limits import Limits
from pi_course_kit.results import (
    CheckResult,
    Outcome,
    RunResult,
    Tested,
    TestResult,
    Verdict,
    to_json,
)
from pi_course_kit.session import Session
from pi_course_kit.source import MOST_BYTES

__all__ = [
    "CheckResult",
    "Checker",
    "Limits",
    "Outcome",
    "RunResult",
    "Session",
    "TestResult",
    "Tested",
    "Verdict",
    "check",
    "run_tests",
    "to_json",
]


def test_path(chapter: Checkpoint) -> Path:
    """The course's own copy of the focused test."""
    return chapter.folder / "parent" / "tests" / chapter.test_name


test_path.__test__ = False  # type: ignore[attr-defined]


def run_tests(
    package_root: Path,
    number: int,
    *,
    tests: Sequence[Path] | None = None,
    select: Sequence[str] | None = None,
    limits: Limits | None = None,
    owner: str = "your folder",
) -> RunResult:
    """Run test files on `package_root/pi_course`; by default the pinned ones of one chapter.

    For many runs of the same tests make a `Session` and call its `run`: that forks instead of
    starting anew.
    """
    chapter = find(str(number))
    with Session(tests or [test_path(chapter)], limits=limits, owner=owner) as session:
        pinned = pins(chapter, select) if tests is None else None
        return session.run(package_root, select=select, pinned=pinned, labs=labs(chapter))


def pins(chapter: Checkpoint, select: Sequence[str] | None = None) -> list[tuple[str, str]]:
    names = chapter.tests if select is None else select
    return [(chapter.test_name, name) for name in names]


def labs(chapter: Checkpoint) -> dict[str, str]:
    return {test: lab.id for lab in chapter.labs for test in lab.tests}


class Checker:
    """Checks practice folders of one chapter, as often as wanted, from one warm guard.

    `session` is one that is there already; leaving the checker closes it all the same.
    """

    def __init__(
        self, chapter: Checkpoint, *, preload: Sequence[str] = (), session: Session | None = None
    ) -> None:
        self.chapter = chapter
        self.session = session or Session([test_path(chapter)], preload=preload)

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def check(
        self, folder: Path, *, lab: str | None = None, limits: Limits | None = None
    ) -> CheckResult:
        chapter = self.chapter
        select = None if lab is None else chapter.lab(lab).tests
        run = self.session.run(
            folder, select=select, pinned=pins(chapter, select), labs=labs(chapter), limits=limits
        )
        verdict: Verdict = "error" if run.error else "green" if run.green else "red"
        return CheckResult(
            chapter=chapter.id,
            verdict=verdict,
            tests=run.tests,
            tested=run.tested,
            missing=_missing(chapter, folder),
            sentence=run.error or run.sentence,
            printed=run.printed,
            notes=tuple(_notes(chapter, folder)),
            lab=lab,
        )


def check(
    folder: Path,
    *,
    lab: str | None = None,
    chapter: Checkpoint | None = None,
    limits: Limits | None = None,
) -> CheckResult:
    """Check a practice folder; its marker says which chapter, unless `chapter` does."""
    chapter = chapter or practice.chapter_of(folder)
    with Checker(chapter) as checker:
        return checker.check(folder, lab=lab, limits=limits)


def _missing(chapter: Checkpoint, folder: Path) -> tuple[str, ...]:
    files = [folder / file for file in chapter.files]
    if any(file.is_file() and file.stat().st_size > MOST_BYTES for file in files):
        return ()  # the tests say so, and parsing it would take longer than they do
    try:
        return symbols.missing(chapter, folder)
    except (RecursionError, MemoryError):  # nested deeper than Python can parse: the tests say so
        return ()


def _notes(chapter: Checkpoint, folder: Path) -> list[str]:
    """What lies in the folder and had no part in the run, though it looks as if it had."""
    notes: list[str] = []
    mine = folder / "tests" / chapter.test_name
    name = f"tests/{chapter.test_name}"
    if not mine.is_file():
        notes.append(f"{name} is missing in your folder; the course's own copy was run.")
    elif mine.read_bytes() != test_path(chapter).read_bytes():
        notes.append(f"{name} was changed in your folder; the course's own copy was run.")
    for conftest in sorted({*folder.glob("conftest.py"), *folder.glob("*/conftest.py")}):
        notes.append(f"{conftest.relative_to(folder).as_posix()} in your folder was not used.")
    return notes
