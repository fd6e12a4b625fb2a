"""What the rules look at: one chapter, with the runs that several rules share made once."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import BoundedSemaphore, Condition, RLock
from typing import TypeVar

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
# Runs each test, however long the run has been red.
PATIENT = replace(LIMITS, red_seconds=LIMITS.total_seconds)
# For whoever only asks whether it is red, and why.
HASTY = replace(LIMITS, red_seconds=0.5)
WORTH_PRELOADING = ("pydantic", "httpx")
SLOW = 1.0  # seconds of one run
AT_ONCE = 3

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Course:
    """All chapters, a scratch folder, and the type checker's answer, which is still coming.

    `types` maps "03" to the errors of snapshot 03 and "03 ID" to those of that fault.
    """

    chapters: tuple[Checkpoint, ...]
    scratch: Path
    types: Future[dict[str, list[Diagnostic]]]
    slots: AbstractContextManager[object] = field(
        default_factory=lambda: BoundedSemaphore(2 + (os.cpu_count() or 1))
    )

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
    """One chapter under proof. Rules may run in several threads, and lend each other warm sessions.

    A run on the same files is made once, whichever rule asks: code comes from them alone, and each
    run is a fork of its own.
    """

    course: Course
    chapter: Checkpoint
    scratch: Path
    _sessions: list[Session] = field(default_factory=list[Session])
    _idle: dict[tuple[Path, ...], list[Session]] = field(
        default_factory=dict[tuple[Path, ...], list[Session]]
    )
    _made: Counter[tuple[Path, ...]] = field(default_factory=Counter[tuple[Path, ...]])
    _free: Condition = field(default_factory=Condition)
    _runs: dict[tuple[object, ...], RunResult] = field(
        default_factory=dict[tuple[object, ...], RunResult]
    )
    _count: Iterator[int] = field(default_factory=count)
    _lock: RLock = field(default_factory=RLock)
    _seconds: float | None = None  # of one run of the target

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
        path = self.scratch / f"{next(self._count):02d}-{name}"
        path.mkdir(parents=True)
        return path

    @property
    def practice(self) -> Path:
        """The practice folder as `pi-course practice` makes it. Rules must not change it."""
        with self._lock:
            return self._practice

    @cached_property
    def _practice(self) -> Path:
        return practice.create(self.chapter, self.scratch / self.chapter.id).folder

    def copy(self, files: Mapping[str, Path], name: str) -> Path:
        folder = self.folder(name)
        snapshot.write(files, folder)
        return folder

    def practice_copy(self, name: str) -> Path:
        return self.copy(sources.tree(self.practice), name)

    def target_copy(self, name: str) -> Path:
        return self.copy(snapshot.snapshot_files(self.number), name)

    # Runs

    def session(self, tests: Sequence[Path], limits: Limits = LIMITS) -> Session:
        made = Session(tests, limits=limits, preload=self._preload)
        self._sessions.append(made)
        return made

    @contextmanager
    def lent(self, tests: Sequence[Path]) -> Generator[Session]:
        """A warm session for these tests that nobody else uses meanwhile."""
        key = tuple(tests)
        with self._free:
            idle = self._idle.setdefault(key, [])
            while not idle and self._made[key] >= self._at_once:
                self._free.wait()
            session = idle.pop() if idle else None
            self._made[key] += session is None
        try:
            with self.course.slots:
                session = session or self.session(tests)
                yield session
        finally:
            with self._free:
                if session is None:  # it could not be made
                    self._made[key] -= 1
                else:
                    idle.append(session)
                self._free.notify_all()

    @property
    def _at_once(self) -> int:
        """Where a run takes long it mostly waits, so several wait at a time. Elsewhere one more
        session would cost more than it saves."""
        return AT_ONCE if (self._seconds or 0) >= SLOW else 1

    @cached_property
    def _preload(self) -> list[str]:
        files = snapshot.snapshot_files(self.number).values()
        text = "\n".join(file.read_text(encoding="utf-8") for file in files)
        return [
            name for name in WORTH_PRELOADING if re.search(rf"^(from|import) {name}\b", text, re.M)
        ]

    def run(
        self, root: Path, tests: tuple[str, ...] | None = None, *, limits: Limits = LIMITS
    ) -> RunResult:
        """The focused tests (or some of them) on the package in `root`."""
        files = snapshot.digest(
            {
                path: file
                for path, file in sources.tree(root).items()
                if path.startswith("pi_course/")
            }
        )
        # A green run has run all of its tests, so it would be the same with more patience.
        for key in ((files, tests), (files, tests, limits)):
            if key in self._runs:
                return self._runs[key]
        with self.lent([self.test]) as session:
            result = session.run(
                root,
                select=tests,
                pinned=runner.pins(self.chapter, tests),
                labs=runner.labs(self.chapter),
                limits=limits,
            )
        self._runs[(files, tests) if result.green else (files, tests, limits)] = result
        return result

    def run_earlier(self, root: Path, tests: list[Path]) -> RunResult:
        """Focused tests of earlier chapters on the package in `root`."""
        with self.lent(tests) as session:
            return session.run(root)

    @cached_property
    def parent(self) -> CheckResult:
        """`check` of the untouched practice folder."""
        with self.lent([self.test]) as session:
            checker = runner.Checker(self.chapter, session=session)
            return checker.check(self.practice, limits=Limits())

    @property
    def target_root(self) -> Path:
        with self._lock:
            return self._target_root

    @cached_property
    def _target_root(self) -> Path:
        return self.target_copy("target")

    @property
    def target(self) -> RunResult:
        began = time.monotonic()
        result = self.run(self.target_root)
        if self._seconds is None:
            self._seconds = time.monotonic() - began
        return result

    def each(self, do: Callable[[Item], Sequence[Found]], items: Sequence[Item]) -> list[Found]:
        """What `do` finds for each item, in their order."""
        with ThreadPoolExecutor(self._at_once) as pool:
            return [found for part in pool.map(do, items) for found in part]

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        self._sessions.clear()
        self._idle.clear()
        self._made.clear()


@contextmanager
def opened(course: Course, chapter: Checkpoint) -> Generator[Case]:
    scratch = course.scratch / chapter.id
    scratch.mkdir(parents=True)
    case = Case(course, chapter, scratch)
    try:
        yield case
    finally:
        case.close()
