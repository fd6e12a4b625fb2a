"""Fault experiments: a declared edit on a copy of the finished chapter, run and restored."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pi_course_kit import runner, snapshot
from pi_course_kit.checkpoint import Checkpoint, Fault
from pi_course_kit.errors import CourseError
from pi_course_kit.limits import Limits
from pi_course_kit.runner import TestResult
from pi_course_kit.typecheck import Diagnostic, type_check

# A check may stop soon after it is red. Here every test is to show whether it notices.
LIMITS = Limits(red_seconds=Limits().total_seconds)


@dataclass(frozen=True, slots=True)
class FaultResult:
    """The run with the fault and the run after it was taken out again."""

    fault: Fault
    diff: tuple[str, ...]
    broken: tuple[TestResult, ...]
    restored: tuple[TestResult, ...]
    types: tuple[Diagnostic, ...]

    @property
    def red(self) -> tuple[TestResult, ...]:
        return tuple(test for test in self.broken if test.outcome != "passed")

    @property
    def holds(self) -> bool:
        """Whether the fault did exactly what its chapter declares."""
        red = {test.id for test in self.red}
        green_again = all(test.outcome == "passed" for test in self.restored)
        types_red = bool(self.types) == (self.fault.expect == "types")
        return red == set(self.fault.tests) and green_again and types_red


def apply(fault: Fault, source: str) -> str:
    """The target's text with the fault in it; its `old` must stand there exactly once."""
    count = source.count(fault.old)
    if count != 1:
        raise CourseError(
            f"Fault {fault.id}: its `old` text occurs {count} times in {fault.file}, not once. "
            "Correct the fault in checkpoint.toml."
        )
    return source.replace(fault.old, fault.new)


def diff(fault: Fault, source: str) -> tuple[str, ...]:
    lines = difflib.unified_diff(
        source.split("\n"), apply(fault, source).split("\n"), n=1, lineterm=""
    )
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))


@contextmanager
def snapshot_copy(number: int) -> Generator[Path]:
    """A throwaway folder with the package after chapter `number`."""
    with tempfile.TemporaryDirectory(prefix="pi-course-") as folder:
        root = Path(folder).resolve()
        snapshot.write(snapshot.snapshot_files(number), root)
        yield root


def run_fault(chapter: Checkpoint, fault_id: str) -> FaultResult:
    fault = chapter.fault(fault_id)
    with snapshot_copy(chapter.number) as root:
        path = root / fault.file
        source = path.read_text(encoding="utf-8")
        path.write_text(apply(fault, source), encoding="utf-8", newline="\n")
        broken = runner.run_tests(root, chapter.number, limits=LIMITS).tests
        types = tuple(type_check([path], root)) if fault.expect == "types" else ()
        path.write_text(source, encoding="utf-8", newline="\n")
        restored = runner.run_tests(root, chapter.number).tests
    return FaultResult(fault, diff(fault, source), tuple(broken), tuple(restored), types)
