"""The missing names in the text of a check: few one by one, many by lab and file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pi_course_kit import checkpoint, gaps
from pi_course_kit.checkpoint import Checkpoint, Lab

FILE = "pi_course/greet.py"
OTHER = "pi_course/other.py"


@pytest.fixture
def chapter(fake_course: Path) -> Checkpoint:
    chapter = checkpoint.load(fake_course / "01-hello")
    names = ("hello", "Greeter", "Greeter.wave")
    one = replace(chapter.labs[0], symbols=tuple(f"{FILE}:{name}" for name in names))
    two = Lab("1.2", "More", (f"{FILE}:Greeter.wave", f"{OTHER}:bow"), one.steps, "")
    return replace(chapter, labs=(replace(one, symbols=one.symbols[:2]), two))


def test_few_lines_stay_as_they_are(chapter) -> None:
    lines = [f"{FILE} has no hello", f"{FILE}: Greeter.wave() is still the starter"]
    assert gaps.text(lines, chapter, 78) == lines


def test_many_are_put_together_by_lab_file_and_kind(chapter) -> None:
    lines = [
        f"{OTHER} is missing",
        f"{FILE} has no Greeter.wave",
        f"{FILE} has no hello",
        f"{FILE} has no Greeter",
        f"{FILE}: Greeter.__init__() is still the starter",
    ]
    assert gaps.text(lines, chapter, 78) == [
        f"{OTHER} is missing",
        f"lab 1.1  {FILE} has no hello, Greeter",
        f"lab 1.1  {FILE}, still the starter: Greeter.__init__()",
        f"lab 1.2  {FILE} has no Greeter.wave",
    ]


def test_a_long_group_is_wrapped_under_its_file(chapter) -> None:
    lines = [f"{FILE} has no hello"] * 20
    shown = gaps.text(lines, chapter, 78)
    assert len(shown) == 3
    assert shown[1].startswith(" " * 9 + "hello")
    assert max(map(len, shown)) <= 78


def test_a_lab_has_its_own_lines_and_those_of_its_files(chapter) -> None:
    lines = [
        f"{OTHER} is missing",
        f"{FILE}, line 3 is not valid Python: invalid syntax",
        f"{FILE} has no hello",
        f"{FILE}: Greeter.wave() is still the starter",
    ]
    assert gaps.of_lab(lines, chapter, None) == lines
    assert gaps.of_lab(lines, chapter, "1.1") == lines[1:3]
    assert gaps.of_lab(lines, chapter, "1.2") == [lines[0], lines[1], lines[3]]


def test_private_names_are_nobodys_business(chapter) -> None:
    assert gaps.is_public(f"{FILE}: Greeter.__init__() is still the starter")
    assert gaps.is_public(f"{FILE} is missing")
    assert not gaps.is_public(f"{FILE} has no _low")
