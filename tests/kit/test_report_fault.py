"""What `pi-course fault` prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pi_course_kit import checkpoint, faults
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.cli import main
from pi_course_kit.faults import FaultResult
from pi_course_kit.results import TestResult
from pi_course_kit.typecheck import Diagnostic


def test_a_fault_is_readable_and_says_that_the_place_is_in_the_copy(
    fake_course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chapter = checkpoint.find("1")
    passed = TestResult("test_hello", "1.1", "passed", "It says hello.")
    failed = replace(passed, outcome="failed", message="no", where="pi_course/greet.py:4 hello")

    def run(chapter: Checkpoint, name: str) -> FaultResult:
        fault = replace(
            chapter.fault(name), title="A long title. " * 10, shows="What one sees. " * 20
        )
        wrong = Diagnostic("pi_course/greet.py", 4, "str is not int. " * 10, "reportX")
        diff = ("   ", "-  old", "+  new", " ")
        return FaultResult(fault, diff, (failed,), (passed,), (wrong,))

    monkeypatch.setattr(faults, "run_fault", run)
    text = CliRunner().invoke(main, ["fault", "1", chapter.faults[0].id]).stdout
    lines = text.split("\n")
    assert "  where     pi_course/greet.py:4 hello (in the copy)" in lines
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line and not line.strip()] == []
    assert lines.count("  -  old") == 1
