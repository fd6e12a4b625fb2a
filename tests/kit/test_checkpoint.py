"""checkpoint.toml: the quick reader and the strict model; snapshots and their digests."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_course_kit import checkpoint, manifest, snapshot
from pi_course_kit.errors import CourseError


@pytest.mark.parametrize("name", ["2", "02", "02-bye"])
def test_three_names_mean_the_same_chapter(fake_course: Path, name: str) -> None:
    assert checkpoint.find(name).id == "02-bye"


@pytest.mark.parametrize("name", ["", "7", "bye", "-1", "2.1", "02-", "٢", "../01-hello"])
def test_other_names_are_refused_with_the_list(fake_course: Path, name: str) -> None:
    with pytest.raises(CourseError, match="The chapters are 01, 02"):
        checkpoint.find(name)


def edit(course: Path, old: str, new: str) -> Path:
    path = course / "01-hello/checkpoint.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="\n")
    return path.parent


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("number = 1", "number = 4", "do not match the folder's name '01-hello'"),
        ("number = 1", "number = = 1", "is not valid TOML"),
        ('idea = "One idea."\n', "", "the field 'idea' is missing"),
        ('goals = ["say hello"]', 'goals = "say hello"', "goals must be a list of strings"),
        ('ask = "What', 'question = "What', "the field 'ask' is missing"),
    ],
)
def test_the_reader_names_the_file_and_the_field(
    fake_course: Path, old: str, new: str, words: str
) -> None:
    folder = edit(fake_course, old, new)
    with pytest.raises(CourseError, match=words) as caught:
        checkpoint.load(folder)
    assert "checkpoint.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("minutes = 10", 'minutes = "10"', "minutes: Input should be a valid integer"),
        ("minutes = 10", "minutes = 10\ncolour = 1", "colour: Extra inputs are not permitted"),
        ('mode = "rebuild"', 'mode = "rewrite"', "mode: Input should be 'observe' or 'rebuild'"),
        ('id = "1.1"', 'id = "3.1"', "the labs of chapter 1 are named 1.1"),
        ('tests = ["test_hello"]\nshows', 'tests = ["test_x"]\nshows', "no lab has: test_x"),
        ('expect = "tests"', 'expect = "nothing"', "`tests` belongs to expect = 'tests'"),
        ('first_red = ["pi_course/greet.py is missing"]', "first_red = []", "first_red belongs"),
        ('symbols = ["pi_course/greet.py:hello"]', 'symbols = ["hello"]', "symbols.0"),
    ],
)
def test_the_strict_model_names_each_field(
    fake_course: Path, old: str, new: str, words: str
) -> None:
    folder = edit(fake_course, old, new)
    with pytest.raises(CourseError, match=words):
        manifest.validate(folder)


def test_every_checkpoint_of_the_course_is_valid() -> None:
    for folder in checkpoint.folders():
        manifest.validate(folder)
        checkpoint.load(folder)


def test_the_tests_of_a_chapter_are_those_of_its_labs(fake_course: Path) -> None:
    chapter = checkpoint.find("2")
    assert chapter.tests == ("test_bye",)
    assert chapter.lab_of("test_bye") == "2.1"
    assert chapter.lab_of("test_other") == ""
    assert chapter.test_name == "test_02_bye.py"


def test_a_snapshot_is_the_newest_version_of_each_path(fake_course: Path) -> None:
    one, two = snapshot.snapshot_files(1), snapshot.snapshot_files(2)
    assert set(one) == set(two) == {"pi_course/__init__.py", "pi_course/greet.py"}
    assert one["pi_course/greet.py"].parts[-4] == "01-hello"
    assert two["pi_course/greet.py"].parts[-4] == "02-bye"
    assert two["pi_course/__init__.py"].parts[-4] == "01-hello"
    assert snapshot.snapshot_files(0) == {}


def test_digests_form_a_chain_and_see_every_byte(fake_course: Path, tmp_path: Path) -> None:
    assert snapshot.parent_digest(2) == snapshot.target_digest(1)
    assert snapshot.target_digest(2) != snapshot.target_digest(1)
    (tmp_path / "a").write_bytes(b"bc")
    (tmp_path / "b").write_bytes(b"c")
    assert snapshot.digest({"a": tmp_path / "a"}) != snapshot.digest({"ab": tmp_path / "b"})


def test_a_deletion_is_listed_never_implied(fake_course: Path) -> None:
    path = fake_course / "02-bye/checkpoint.toml"
    text = path.read_text(encoding="utf-8")
    listed = text.replace("starters", 'deletions = ["pi_course/__init__.py"]\nstarters', 1)
    path.write_text(listed, encoding="utf-8", newline="\n")
    assert set(snapshot.snapshot_files(2)) == {"pi_course/greet.py"}
    assert "pi_course/__init__.py" not in snapshot.practice_files(2)


def test_the_cache_is_named_by_its_digest_and_mended(fake_course: Path) -> None:
    folder = snapshot.cached_snapshot(2)
    assert folder.name == snapshot.target_digest(2)[:16]
    source = folder / "pi_course/greet.py"
    good = source.read_bytes()
    source.write_bytes(b"broken = True\n")
    (folder / "pi_course/planted.py").write_bytes(b"")
    assert snapshot.cached_snapshot(2) == folder
    assert source.read_bytes() == good
    assert not (folder / "pi_course/planted.py").exists()
