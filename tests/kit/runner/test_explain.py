"""What a failure says: sentences for what is no ordinary one, and no noise of libraries."""

from __future__ import annotations

from pathlib import Path

from pi_course_kit import report
from pi_course_kit.results import CheckResult, TestResult
from pi_course_kit.values import width

SOLUTION = """\
def greet(name):
    return f"hello {name}"


def count(text):
    return len(text.split())


def join(lines):
    return "\\n".join(lines)
"""
REFUSAL = """\
from pydantic import BaseModel


class Named(BaseModel):
    name: tuple[int, ...]


def greet(name):
    return Named(name=[{"a long key of the value": "x" * 80}], other=1)
"""


def one(result: CheckResult, name: str) -> TestResult:
    return next(test for test in result.tests if test.id == name)


def test_a_breakpoint_is_named_and_no_debugger_started(learner) -> None:
    learner.write(
        SOLUTION.replace("    return f", "    print('seen')\n    breakpoint()\n    return f")
    )
    result = learner.check()
    test = one(result, "test_greets_by_name")
    assert test.message.startswith("breakpoint() can't be used under check")
    assert (test.where or "").startswith("pi_course/words.py:")
    text = report.text(result, learner.checker.chapter, learner.folder)
    assert "(Pdb)" not in text
    assert "NoDebugger" not in text
    assert "  | seen" in text
    assert "words.py(" not in text


def test_a_refusal_of_pydantic_keeps_its_indent_and_loses_its_links(learner) -> None:
    learner.write(REFUSAL + SOLUTION.partition("\n\n\n")[2])
    result = learner.check(test_seconds=10.0, red_seconds=10.0)  # it imports pydantic
    message = one(result, "test_greets_by_name").message
    assert message.startswith("ValidationError: 1 validation error for Named\nname.0\n  Input")
    assert "errors.pydantic.dev" not in message
    lines = report.text(result, learner.checker.chapter, Path("/practice")).split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("            name.0"))
    assert lines[start + 1].startswith(" " * 14 + "Input should be")
    assert lines[start + 2].startswith(" " * 14)
    assert max(width(line) for line in lines) <= 80
