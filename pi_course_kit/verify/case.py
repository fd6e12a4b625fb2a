"""What the rules look at: one chapter, with the runs that several rules share made once."""

from __future__ import annotations

import re
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pi_course_kit import practice, runner, snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.data import PACKAGE, data_dir
from pi_course_kit.errors import CourseError
from pi_course_kit.limits import Limits
from pi_course_kit.results import CheckResult, RunResult
from pi_course_kit.session import Session
from pi_course_kit.typecheck import Diagnostic
from pi_course_kit.verify import sources

# A run that hangs is red; a mutant or a null student should show that soon.
LIMITS = Limits(test_seconds=4.0, grace_seconds=1.0)
WORTH_PRELOADING = ("pydantic", "httpx")


@dataclass(frozen=True, slots=True)
class Course:
    """All chapters, a scratch folder, and the type checker's answer, which is still coming.

    `types` maps "03" to the errors of snapshot 03 and "03 ID" to those of that fault.
    """

    chapters: tuple[Checkpoint, ...]
    scratch: Path
    types: Future[dict[str, list[Diagnostic]]]

    @property
    def root(self) -> Path:
        """The folder that holds checkpoints/ and notebooks/."""
        return data_dir("checkpoints").parent

    @property
    def package(self) -> Path:
        """The shipped pi_course: beside the checkpoints, or beside the installed kit."""
        beside = self.root / "pi_course"
        return beside if beside.is_dir() else PACKAGE.parent / "pi_course"


@dataclass
class Case:
    """One chapter under proof. Runs share one warm session; nothing here is shared by threads."""

    course: Course
    chapter: Checkpoint
    scratch: Path
    _sessions: list[Session] = field(default_factory=list[Session])
    _count: int = 0

    @property
    def number(self) -> int:
        return self.chapter.number

    @property
    def test(self) -> Path:
        return runner.test_path(self.chapter)

    @property
    def toml(self) -> Path:
        return self.chapter.folder / "checkpoint.toml"

    def name(self, path: Path) -> str:
        """A path as a report names it: "checkpoints/03-message-ir/hints.md"."""
        root = self.course.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name

    def target_text(self, file: str) -> str:
        return snapshot.snapshot_files(self.number)[file].read_text(encoding="utf-8")

    def before_text(self, file: str) -> str:
        """The file as the chapter before leaves it; "" when the chapter brings it."""
        found = snapshot.snapshot_files(self.number - 1).get(file)
        return found.read_text(encoding="utf-8") if found else ""

    @cached_property
    def notebook(self) -> Path | None:
        try:
            folder = data_dir("notebooks")
        except CourseError:  # a course under construction has none
            return None
        found = sorted(folder.glob(f"{self.chapter.nn}-*.ipynb"))
        return found[0] if found else None

    # Folders

    def folder(self, name: str) -> Path:
        self._count += 1
        path = self.scratch / f"{self._count:02d}-{name}"
        path.mkdir(parents=True)
        return path

    @cached_property
    def practice(self) -> Path:
        """The practice folder as `pi-course practice` makes it. Rules must not change it."""
        return practice.create(self.chapter, self.scratch / self.chapter.id).folder

    def practice_copy(self, name: str) -> Path:
        files = sources.tree(self.practice)
        folder = self.folder(name)
        snapshot.write(files, folder)
        return folder

    def target_copy(self, name: str) -> Path:
        folder = self.folder(name)
        snapshot.write(snapshot.snapshot_files(self.number), folder)
        return folder

    # Runs

    def session(self, tests: list[Path], limits: Limits = LIMITS) -> Session:
        made = Session(tests, limits=limits, preload=self._preload)
        self._sessions.append(made)
        return made

    @property
    def _preload(self) -> list[str]:
        files = snapshot.snapshot_files(self.number).values()
        text = "\n".join(file.read_text(encoding="utf-8") for file in files)
        return [
            name for name in WORTH_PRELOADING if re.search(rf"^(from|import) {name}\b", text, re.M)
        ]

    @cached_property
    def focused(self) -> Session:
        return self.session([self.test])

    @cached_property
    def patient(self) -> Session:
        """Runs each test, however long the run has been red."""
        return self.session([self.test], replace(LIMITS, red_seconds=LIMITS.total_seconds))

    def run(
        self, root: Path, tests: tuple[str, ...] | None = None, *, patient: bool = False
    ) -> RunResult:
        """The focused tests (or some of them) on the package in `root`."""
        return (self.patient if patient else self.focused).run(
            root,
            select=tests,
            pinned=runner.pins(self.chapter, tests),
            labs=runner.labs(self.chapter),
        )

    def run_earlier(self, root: Path, tests: list[Path]) -> RunResult:
        """Focused tests of earlier chapters on the package in `root`."""
        return self.session(tests).run(root)

    @cached_property
    def parent(self) -> CheckResult:
        """`check` of the untouched practice folder."""
        return runner.check(self.practice)

    @cached_property
    def target_root(self) -> Path:
        return self.target_copy("target")

    @cached_property
    def target(self) -> RunResult:
        return self.run(self.target_root)

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        self._sessions.clear()


@contextmanager
def opened(course: Course, chapter: Checkpoint) -> Generator[Case]:
    scratch = course.scratch / chapter.id
    scratch.mkdir(parents=True)
    case = Case(course, chapter, scratch)
    try:
        yield case
    finally:
        case.close()
