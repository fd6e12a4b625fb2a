"""What is derived equals what it comes from; a fix in an old layer is carried by a merge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pi_course_kit import checkpoint, sync
from pi_course_kit.errors import CourseError


@pytest.fixture
def course(fake_course: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = fake_course.parent
    monkeypatch.setattr(sync, "checkout", lambda: root)
    readme = "# Course\n\n<!-- chapters: start -->\n<!-- chapters: end -->\n\nMore.\n"
    (root / "README.md").write_text(readme, encoding="utf-8")
    return root


def test_sync_writes_the_package_and_the_starters(course: Path) -> None:
    (course / "pi_course").mkdir()
    (course / "pi_course/stray.py").write_text("", encoding="utf-8")
    stale = [
        "pi_course/__init__.py",
        "pi_course/greet.py",
        "README.md",
        "docs/glossary.md",
        "docs/errors.md",
        "pi_course/stray.py",
    ]
    assert sync.sync(check=True) == stale
    assert (course / "pi_course/stray.py").exists()
    assert sync.sync(check=False) == stale
    assert sync.sync(check=True) == []
    target = course / "checkpoints/02-bye/target/pi_course/greet.py"
    assert (course / "pi_course/greet.py").read_bytes() == target.read_bytes()


def test_the_pages_are_written_from_the_chapters(course: Path) -> None:
    greet = course / "checkpoints/02-bye/target/pi_course/greet.py"
    error = '\n\nclass RudeError(PiError):\n    """No greeting."""\n'
    greet.write_text(greet.read_text(encoding="utf-8") + error, encoding="utf-8")
    sync.sync(check=False)
    readme = (course / "README.md").read_text(encoding="utf-8")
    assert "| [02](notebooks/02-bye.ipynb) | Chapter 2 | 10 |" in readme
    assert readme.endswith("<!-- chapters: end -->\n\nMore.\n")
    glossary = (course / "docs/glossary.md").read_text(encoding="utf-8")
    assert "| greeting | A friendly word. | [01](../notebooks/01-hello.ipynb) |" in glossary
    errors = (course / "docs/errors.md").read_text(encoding="utf-8")
    assert "  - `RudeError` (pi_course/greet.py): No greeting." in errors
    (course / "README.md").write_text("nothing\n", encoding="utf-8")
    with pytest.raises(CourseError, match="Put them back"):
        sync.sync(check=False)


def test_a_starter_that_differs_from_its_target_is_stale(course: Path) -> None:
    sync.sync(check=False)
    starter = course / "checkpoints/02-bye/parent/pi_course/greet.py"
    starter.write_text("stale\n", encoding="utf-8")
    assert sync.sync(check=True) == ["checkpoints/02-bye/parent/pi_course/greet.py"]


def git(course: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, cwd=course, check=True, capture_output=True)


@pytest.fixture
def repository(course: Path) -> Path:
    git(course, "init", "-q")
    git(course, "add", ".")
    git(course, "commit", "-qm", "start")
    return course


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


def test_a_fix_reaches_the_later_version(repository: Path) -> None:
    old = repository / "checkpoints/01-hello/target/pi_course/greet.py"
    replace(old, '"""Greetings."""', '"""Kind greetings."""')
    assert sync.carry(checkpoint.find("1"), "pi_course/greet.py", "HEAD") == ["02"]
    later = repository / "checkpoints/02-bye/target/pi_course/greet.py"
    text = later.read_text(encoding="utf-8")
    assert text.startswith('"""Kind greetings."""')
    assert "def bye" in text


def test_a_conflict_stops_and_changes_nothing(repository: Path) -> None:
    old = repository / "checkpoints/01-hello/target/pi_course/greet.py"
    later = repository / "checkpoints/02-bye/target/pi_course/greet.py"
    replace(later, "hello {name}", "hello, {name}!")
    replace(old, "hello {name}", "hallo {name}")
    before = later.read_bytes()
    with pytest.raises(CourseError, match="conflicts with chapter 02"):
        sync.carry(checkpoint.find("1"), "pi_course/greet.py", "HEAD")
    assert later.read_bytes() == before


def test_carry_names_what_it_cannot_find(repository: Path) -> None:
    with pytest.raises(CourseError, match="no version of pi_course/x.py"):
        sync.carry(checkpoint.find("1"), "pi_course/x.py", "HEAD")
    with pytest.raises(CourseError, match="git has no"):
        sync.carry(checkpoint.find("1"), "pi_course/greet.py", "nonsense")
