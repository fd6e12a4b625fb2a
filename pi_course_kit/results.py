"""What came out of a run: per test, per file, and the verdict over all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["passed", "failed", "error", "missing"]
Verdict = Literal["green", "red", "error"]


@dataclass(frozen=True, slots=True)
class Tested:
    """A file of the folder under test, and the hash of the bytes that ran."""

    __test__ = False  # pytest takes names in Test… for test classes

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test: `called`, `expected` and `got` are source and reprs, cut to a readable length.

    "error" is a failure outside the test's own body, "missing" a test that did not run.
    """

    __test__ = False

    id: str
    lab: str
    outcome: Outcome
    title: str
    message: str = ""
    called: str | None = None
    expected: str | None = None
    got: str | None = None
    where: str | None = None
    code: str | None = None
    file: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run of test files on one folder.

    `sentence` says what spoiled the run as a whole; `error` that it could not be made at all.
    """

    tests: tuple[TestResult, ...]
    tested: tuple[Tested, ...]
    sentence: str | None
    printed: str
    error: str | None = None

    @property
    def green(self) -> bool:
        return (
            self.error is None
            and self.sentence is None
            and bool(self.tests)
            and all(test.outcome == "passed" for test in self.tests)
        )

    @property
    def red_ids(self) -> tuple[str, ...]:
        return tuple(test.id for test in self.tests if test.outcome != "passed")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`check` of one practice folder; `notes` are said beside any verdict."""

    chapter: str
    verdict: Verdict
    tests: tuple[TestResult, ...]
    tested: tuple[Tested, ...]
    missing: tuple[str, ...]
    sentence: str | None
    printed: str
    notes: tuple[str, ...] = ()
    lab: str | None = None


def to_json(result: CheckResult) -> dict[str, Any]:
    return {
        "chapter": result.chapter,
        "verdict": result.verdict,
        "tests": [
            {
                "id": test.id,
                "lab": test.lab,
                "outcome": test.outcome,
                "message": test.message,
                "where": test.where,
            }
            for test in result.tests
        ],
        "tested": [{"path": file.path, "sha256": file.sha256} for file in result.tested],
        "missing": list(result.missing),
        "sentence": result.sentence,
        "notes": list(result.notes),
    }
