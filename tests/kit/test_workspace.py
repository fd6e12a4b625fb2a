"""Progress is evidence: hashes, never marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_course_kit import workspace
from pi_course_kit.errors import CourseError
from pi_course_kit.workspace import Progress


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    return Progress(tmp_path / "space")


def green(progress: Progress, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "a.py").write_text("a = 1\n", encoding="utf-8")
    files = workspace.file_hashes(folder, ("a.py", "absent.py"))
    progress.record_check("01-x", folder, files, green=True)


def test_a_chapter_goes_from_new_to_accepted_and_back(progress: Progress, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    assert progress.state("01-x") == "new"
    progress.record_started("01-x", folder)
    assert progress.state("01-x") == "started"
    green(progress, folder)
    assert progress.state("01-x") == "green"
    progress.record_answers("01-x", [{"ask": "?", "mine": "!", "same": True}])
    progress.record_accepted("01-x")
    assert progress.answers("01-x") == []
    assert progress.state("01-x") == "accepted"
    (folder / "a.py").write_text("a = 2\n", encoding="utf-8")
    assert progress.state("01-x") == "started"
    green(progress, folder)
    assert progress.state("01-x") == "accepted"


def test_a_red_check_takes_no_evidence_away(progress: Progress, tmp_path: Path) -> None:
    green(progress, tmp_path / "one")
    progress.record_check("01-x", tmp_path / "one", {}, green=False)
    assert progress.state("01-x") == "green"
    progress.record_check("01-x", tmp_path / "two", {}, green=False)
    assert progress.state("01-x") == "green", "a second folder is another matter"


def test_a_new_folder_begins_at_the_first_rung(progress: Progress, tmp_path: Path) -> None:
    progress.record_hint("01-x", "1.1", 3)
    progress.record_started("01-x", tmp_path / "two")
    assert progress.hint_level("01-x", "1.1") == 0


def test_the_highest_rung_is_kept_and_predictions_add_up(progress: Progress) -> None:
    progress.record_hint("01-x", "1.1", 3)
    progress.record_hint("01-x", "1.1", 1)
    assert progress.hint_level("01-x", "1.1") == 3
    assert progress.hint_level("01-x", "1.2") == 0
    progress.record_prediction("01-x", "two")
    progress.record_prediction("01-x", "three", "3")
    assert [p["guess"] for p in progress.chapter("01-x")["predictions"]] == ["two", "three"]


def test_the_guess_of_a_cell_can_change_until_its_result_was_seen(progress: Progress) -> None:
    def kept() -> list[tuple[str, str | None, bool | None]]:
        stored = progress.chapter("01-x")["predictions"]
        return [(p["guess"], p["result"], p["right"]) for p in stored]

    assert progress.record_prediction("01-x", "one", cell="c1") == 0
    assert progress.record_prediction("01-x", "two", cell="c1") == 0
    assert progress.record_prediction("01-x", "else", cell="c2") == 1
    progress.change_prediction("01-x", 0, result="3", right=False)
    assert progress.record_prediction("01-x", "3", cell="c1") == 0
    assert kept() == [("two", "3", False), ("else", None, None)]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 1}',
        '{"chapters": 3}',
        '{"chapters": {"01-x": 7}}',
        '{"chapters": {"01-x": {"hints": "x"}}}',
        '{"chapters": {"01-x": {"green": {}}}}',
        '{"chapters": {"01-x": {"predictions": [7]}}}',
    ],
)
def test_a_broken_file_is_named_and_kept(progress: Progress, text: str) -> None:
    progress.path.parent.mkdir()
    progress.path.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match="Move it away"):
        progress.record_hint("01-x", "1.1", 1)
    assert progress.path.read_text(encoding="utf-8") == text


def test_a_file_of_a_newer_kit_is_left_alone(progress: Progress) -> None:
    progress.path.parent.mkdir()
    progress.path.write_text('{"version": 2, "chapters": {}}', encoding="utf-8")
    with pytest.raises(CourseError, match="newer pi-course"):
        progress.record_hint("01-x", "1.1", 1)


def test_green_without_files_is_no_evidence(progress: Progress, tmp_path: Path) -> None:
    progress.record_check("01-x", tmp_path / "one", {}, green=True)
    assert progress.state("01-x") == "started"


def test_an_unwritable_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CourseError, match="can't be (written|read)"):
        Progress(tmp_path / "file").record_hint("01-x", "1.1", 1)


def test_the_workspace_is_the_one_around_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PI_COURSE_WORKSPACE", raising=False)
    Progress(tmp_path).record_hint("01-x", "1.1", 1)
    assert workspace.workspace(tmp_path / "a/b") == tmp_path
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path / "chosen"))
    assert workspace.workspace(tmp_path / "a/b") == tmp_path / "chosen"


def notebook(text: str, output: str = "", count: int | None = None) -> str:
    outputs: list[Any] = (
        [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
    )
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": count,
        "outputs": outputs,
        "source": text,
    }
    return json.dumps({"cells": [cell], "nbformat": 4}, indent=1) + "\n"


def test_the_copy_of_a_notebook_spoils_no_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "00-a.ipynb").write_text(notebook("1 + 1", "2", 1), encoding="utf-8")
    monkeypatch.setattr(workspace, "data_dir", lambda kind: course)  # pyright: ignore[reportUnknownLambdaType]
    (copy,) = workspace.lay_out_notebooks(tmp_path)
    assert copy.read_text(encoding="utf-8") == notebook("1 + 1")


def test_notebooks_are_copied_once_and_never_over_a_changed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "00-a.ipynb").write_text(notebook("one"), encoding="utf-8")
    monkeypatch.setattr(workspace, "data_dir", lambda kind: course)  # pyright: ignore[reportUnknownLambdaType]
    space = tmp_path / "space"
    copy = space / "notebooks/00-a.ipynb"
    assert workspace.lay_out_notebooks(space) == [copy]
    assert workspace.lay_out_notebooks(space) == []
    copy.write_text("mine", encoding="utf-8")
    assert workspace.lay_out_notebooks(space) == []
    (course / "00-a.ipynb").write_text(notebook("two"), encoding="utf-8")
    (beside,) = workspace.lay_out_notebooks(space)
    assert beside != copy
    assert beside.read_text(encoding="utf-8") == notebook("two")
    assert copy.read_text(encoding="utf-8") == "mine"
    assert workspace.lay_out_notebooks(space) == []


def test_an_unchanged_copy_follows_the_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "00-a.ipynb").write_text(notebook("one"), encoding="utf-8")
    monkeypatch.setattr(workspace, "data_dir", lambda kind: course)  # pyright: ignore[reportUnknownLambdaType]
    workspace.lay_out_notebooks(tmp_path)
    (course / "00-a.ipynb").write_text(notebook("two"), encoding="utf-8")
    assert workspace.lay_out_notebooks(tmp_path) == [tmp_path / "notebooks/00-a.ipynb"]
    assert (tmp_path / "notebooks/00-a.ipynb").read_text(encoding="utf-8") == notebook("two")
