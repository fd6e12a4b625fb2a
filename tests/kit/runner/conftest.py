"""A chapter of three tests in two labs, and a learner's folder to check against it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from pi_course_kit import __version__
from pi_course_kit.checkpoint import Checkpoint, Lab, Step
from pi_course_kit.limits import Limits
from pi_course_kit.results import CheckResult
from pi_course_kit.runner import Checker, test_path

TEST = "tests/test_03_words.py"

TESTS = '''\
"""The focused test of the fake chapter."""


def test_greets_by_name():
    """It greets the one who is named."""
    from pi_course.words import greet

    assert greet("Ann") == "hello Ann"


def test_counts_words():
    """Words are what stands between spaces."""
    from pi_course.words import count

    result = count("a b c")
    assert result == 3


def test_joins_lines():
    """Lines are joined by a newline."""
    from pi_course.words import join

    assert join(["one", "two", "three"]) == "one\\ntwo\\nthree"
'''

SOLUTION = """\
def greet(name):
    return f"hello {name}"


def count(text):
    return len(text.split())


def join(lines):
    return "\\n".join(lines)
"""

# Short, since each hostile case waits for one of them; the tests that must not hit one take ms.
SHORT = Limits(
    test_seconds=0.6, grace_seconds=0.6, red_seconds=2.0, total_seconds=20.0, output_bytes=2_000_000
)


class Learner:
    """A practice folder of the fake chapter, checked from a guard that all tests share."""

    def __init__(self, folder: Path, checker: Checker) -> None:
        self.folder = folder
        self.checker = checker
        self.chapter = checker.chapter
        self.write("", "pi_course/__init__.py")
        self.write(test_path(self.chapter).read_text("utf-8"), TEST)
        self.write(json.dumps({"kit": __version__, "chapter": self.chapter.id}), ".pi-course.json")

    def write(self, text: str, path: str = "pi_course/words.py") -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8", newline="\n")
        return file

    def check(self, lab: str | None = None, **limits: float) -> CheckResult:
        return self.checker.check(self.folder, lab=lab, limits=replace(SHORT, **limits))


def chapter_at(folder: Path, tests: str = TESTS) -> Checkpoint:
    test = folder / "parent" / "tests" / "test_03_words.py"
    test.parent.mkdir(parents=True)
    test.write_text(tests, encoding="utf-8", newline="\n")
    target = folder / "target" / "pi_course" / "words.py"
    target.parent.mkdir(parents=True)
    target.write_text(SOLUTION, encoding="utf-8", newline="\n")
    one = Lab(
        "3.1",
        "Words",
        ("pi_course/words.py:greet", "pi_course/words.py:count"),
        (Step("greeting", ("test_greets_by_name",)), Step("counting", ("test_counts_words",))),
        "a greeting",
    )
    two = Lab(
        "3.2",
        "Lines",
        ("pi_course/words.py:join",),
        (Step("joining", ("test_joins_lines",)),),
        "three lines",
    )
    return Checkpoint(
        folder=folder,
        number=3,
        slug="words",
        title="Words and lines",
        idea="One idea.",
        artifact="pi_course/words.py",
        minutes=10,
        level="entry",
        requires=(),
        mode="rebuild",
        goals=("count words",),
        files=("pi_course/words.py",),
        given=(),
        starters=False,
        deletions=(),
        first_red=("pi_course/words.py is missing",),
        run="",
        interface="",
        transfer="",
        terms=(),
        labs=(one, two),
        faults=(),
        questions=(),
        pi=(),
        mutants=(),
    )


@pytest.fixture(scope="session")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    chapter = chapter_at(tmp_path_factory.mktemp("course") / "03-words")
    with Checker(chapter) as checker:
        yield checker


@pytest.fixture
def learner(tmp_path: Path, checker: Checker) -> Learner:
    return Learner(tmp_path / "my practice 练习", checker)


@pytest.fixture
def with_tests(tmp_path: Path) -> Iterator[Callable[[str, str], Learner]]:
    """Makes a learner of a chapter whose focused test has one text replaced by another."""
    with ExitStack() as stack:

        def make(old: str, new: str) -> Learner:
            chapter = chapter_at(tmp_path / "course" / "03-words", TESTS.replace(old, new))
            return Learner(tmp_path / "practice", stack.enter_context(Checker(chapter)))

        yield make
