"""Practice folders: what is in them, and every place where one must not be made."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pi_course_kit import checkpoint, practice, snapshot, symbols, workspace
from pi_course_kit.errors import CourseError


def tree(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def test_a_folder_holds_the_parent_the_tests_and_the_page(fake_course: Path) -> None:
    made = practice.create(checkpoint.find("1"))
    assert made.folder == workspace.workspace() / "01-hello"
    assert sorted(p for p in tree(made.folder) if "." in p) == [
        ".pi-course.json",
        "LEARNING.md",
        "pyproject.toml",
        "tests/test_01_hello.py",
    ]
    marker = json.loads((made.folder / ".pi-course.json").read_text(encoding="utf-8"))
    assert marker["chapter"] == "01-hello"
    assert marker["target"] == snapshot.target_digest(1)
    assert workspace.progress_for().state("01-hello") == "started"


def test_a_later_folder_holds_the_snapshot_before_it_with_cut_starters(fake_course: Path) -> None:
    folder = practice.create(checkpoint.find("2")).folder
    source = (folder / "pi_course/greet.py").read_text(encoding="utf-8")
    assert 'return f"hello {name}"' in source
    assert 'raise NotImplementedError("Lab 2.1: bye()")' in source
    assert (folder / "tests/test_01_hello.py").is_file()
    assert symbols.missing(checkpoint.find("2"), folder) == (
        "pi_course/greet.py: bye() is still the starter",
    )


def test_the_page_says_what_to_do_and_holds_no_answer(fake_course: Path) -> None:
    page = (practice.create(checkpoint.find("1")).folder / "LEARNING.md").read_text("utf-8")
    for words in (
        "pi_course/greet.py is missing",
        "pi-course check --lab 1.1",
        "pi-course hint 1.1",
        "tests/test_01_hello.py",
        snapshot.target_digest(1)[:12],
        "hello(name: str) -> str",
        "You are coaching me",
    ):
        assert words in page
    assert 'return f"hello' not in page


def places(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "there").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/precious").write_text("mine", encoding="utf-8")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    repository = Path(practice.__file__).parents[1]
    return {
        "exists already": tmp_path / "there",
        "exists already ": tmp_path / "full",
        "exists already  ": tmp_path / "file",
        "symbolic link": tmp_path / "link",
        "symbolic link ": tmp_path / "dangling",
        "your home": Path.home(),
        "root of the disk": Path("/"),
        "inside the course's checkout": repository / "practice",
        "file is a file": tmp_path / "file" / "below",
    }


def test_no_place_where_something_could_be_lost(fake_course: Path, tmp_path: Path) -> None:
    cases = places(tmp_path)
    before = tree(tmp_path)
    for words, place in cases.items():
        with pytest.raises(CourseError, match=words.strip()) as caught:
            practice.create(checkpoint.find("1"), place)
        assert "pi-course practice" in str(caught.value)
    assert tree(tmp_path) == before
    assert not (Path(practice.__file__).parents[1] / "practice").exists()


def test_a_failed_write_leaves_nothing(
    fake_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CourseError, match="No space left on device"):
        practice.create(checkpoint.find("1"), tmp_path / "new")
    assert not [p for p in tree(tmp_path) if "new" in p]


def test_odd_names_work(fake_course: Path, tmp_path: Path) -> None:
    place = tmp_path / "练习 one" / "-x 空格"
    assert practice.create(checkpoint.find("1"), place).folder == place
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "way").symlink_to(real)
    assert practice.create(checkpoint.find("1"), tmp_path / "way/one").folder.is_dir()


def test_the_folder_is_found_from_inside(
    fake_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = practice.create(checkpoint.find("2"), tmp_path / "two").folder
    monkeypatch.chdir(folder / "tests")
    assert practice.practice_folder() == folder
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CourseError, match="not a practice folder"):
        practice.practice_folder()
    with pytest.raises(CourseError, match="does not exist"):
        practice.practice_folder(tmp_path / "gone")


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ('{"kit": "99.0.0", "chapter": "01-hello"}', "was made by pi-course 99.0.0"),
        ("{", "can't be read"),
        ("[]", "lacks its kit or chapter"),
        ('{"kit": "0.1.0", "chapter": "77-x"}', "There is no chapter '77-x'"),
    ],
)
def test_a_marker_we_cannot_trust(
    fake_course: Path, tmp_path: Path, marker: str, words: str
) -> None:
    folder = practice.create(checkpoint.find("1"), tmp_path / "one").folder
    (folder / ".pi-course.json").write_text(marker, encoding="utf-8")
    with pytest.raises(CourseError, match=words):
        practice.chapter_of(folder)


def test_a_marker_moved_to_another_chapter_is_refused(fake_course: Path, tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("2"), tmp_path / "two").folder
    marker = folder / ".pi-course.json"
    text = marker.read_text(encoding="utf-8")
    marker.write_text(text.replace("02-bye", "01-hello"), encoding="utf-8")
    with pytest.raises(CourseError, match="says chapter 01, but the folder was made for 02"):
        practice.chapter_of(folder)


def test_starting_from_ones_own_folder_keeps_what_one_wrote(
    fake_course: Path, tmp_path: Path
) -> None:
    one = practice.create(checkpoint.find("1"), tmp_path / "one").folder
    mine = '"""Mine."""\n\n\ndef hello(name):\n    return "hello " + name\n'
    (one / "pi_course").mkdir(exist_ok=True)
    (one / "pi_course/__init__.py").write_text("", encoding="utf-8")
    (one / "pi_course/greet.py").write_text(mine, encoding="utf-8")
    (one / "pi_course/extra.py").write_text("X = 1\n", encoding="utf-8")
    made = practice.create(checkpoint.find("2"), tmp_path / "two", one)
    source = (made.folder / "pi_course/greet.py").read_text(encoding="utf-8")
    assert source.startswith(mine)
    assert 'raise NotImplementedError("Lab 2.1: bye()")' in source
    assert "pi_course/greet.py" in made.kept
    assert (made.folder / "pi_course/extra.py").read_text(encoding="utf-8") == "X = 1\n"
    assert (one / "pi_course/greet.py").read_text(encoding="utf-8") == mine


def test_starting_from_a_red_folder_makes_nothing(fake_course: Path, tmp_path: Path) -> None:
    one = practice.create(checkpoint.find("1"), tmp_path / "one").folder
    with pytest.raises(CourseError, match="is not green up to chapter 01"):
        practice.create(checkpoint.find("2"), tmp_path / "two", one)
    with pytest.raises(CourseError, match="takes a folder of a chapter before"):
        practice.create(checkpoint.find("1"), tmp_path / "two", one)
    assert not os.path.lexists(tmp_path / "two")
