"""`await ch.compare()`: the notebook's form of compare, run without a kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pi_course_kit import checkpoint, faults, practice, snapshot
from pi_course_kit.errors import CourseError
from pi_course_kit.notebook.lesson import Chapter
from pi_course_kit.notebook.shown import Shown
from pi_course_kit.source import PackageFinder

CHAPTER = checkpoint.find("02")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A practice folder of chapter 02 with a fault in it."""
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path))
    made = practice.create(CHAPTER).folder
    file = snapshot.snapshot_files(2)["pi_course/event_stream.py"]
    text = faults.apply(CHAPTER.fault("last-event-lost"), file.read_text(encoding="utf-8"))
    (made / "pi_course/event_stream.py").write_text(text, encoding="utf-8", newline="\n")
    return made


def opened(folder: Path, owner: str) -> Chapter:
    return Chapter(CHAPTER, PackageFinder(folder, {}, owner))


def compared(chapter: Chapter, scenario: Any = None) -> Shown:
    return asyncio.run(chapter.compare(scenario))


@pytest.mark.parametrize("owner", ["your folder", "chapter 02"])
def test_both_sides_stand_beside_each_other(folder: Path, owner: str) -> None:
    # On the reference it is the practice folder that was made last.
    shown = compared(opened(folder, owner), "pushes")
    assert "reference ['start', 'text', 'done']" in repr(shown)
    assert "yours     ['start', 'text']" in repr(shown)
    assert max(map(len, repr(shown).split("\n"))) <= 80
    html = shown.html
    assert "<th" in html and "reference" in html and "yours" in html
    assert "['start', 'text', 'done']" in html
    assert "in EventStream.push()" in html and "pi-course check --lab 2.1" in html
    assert str(folder) not in repr(shown) + html


def test_the_same_comparison_gives_the_same_text(folder: Path) -> None:
    chapter = opened(folder, "your folder")
    assert compared(chapter) == compared(chapter)


def test_a_function_of_the_notebook_is_a_scenario_too(folder: Path) -> None:
    async def closed(trace: Any) -> None:
        """What StreamClosed is."""
        from pi_course.errors import PiError
        from pi_course.event_stream import StreamClosed

        trace(issubclass(StreamClosed, PiError))

    shown = compared(opened(folder, "your folder"), closed)
    assert "closed  What StreamClosed is." in repr(shown)
    assert "1 value equal" in repr(shown)


def test_what_is_no_scenario_is_refused(folder: Path) -> None:
    with pytest.raises(CourseError, match="async def name"):
        compared(opened(folder, "your folder"), lambda trace: None)  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(CourseError, match="no scenario 'x'"):
        compared(opened(folder, "your folder"), "x")


def test_without_a_practice_folder_it_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path))
    shown = compared(opened(tmp_path, "chapter 02"))
    assert "no practice folder of chapter 02" in repr(shown)
    assert "pi-course practice 02" in repr(shown)
