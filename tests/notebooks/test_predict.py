"""`ch.predict()`: a guess is stored before the result is seen, and then shown beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pi_course_kit import checkpoint
from pi_course_kit.cli import main
from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import build as builder
from pi_course_kit.notebook.lesson import Chapter
from pi_course_kit.notebook.prediction import Prediction
from pi_course_kit.source import PackageFinder
from pi_course_kit.workspace import Progress

KEPT = """
from pi_course_kit.workspace import progress_for

kept = progress_for().chapter("00-prologue")["predictions"]
print([(p["guess"], p["result"], p["right"]) for p in kept])
"""


def ran(folder: Path, *cells: str) -> list[list[str]]:
    """The text forms that each cell of a notebook shows, the first cell aside."""
    sources = ["from pi_course_kit import chapter\nch = chapter('00')", *cells]
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"00-{number:02d}",
            "metadata": {"tags": ["raises-exception"]},
            "source": source,
            "execution_count": None,
            "outputs": [],
        }
        for number, source in enumerate(sources, 1)
    ]
    path = folder / "00-planted.ipynb"
    notebook: dict[str, Any] = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8", newline="\n")
    return [shown(cell) for cell in builder.code_cells(builder.build(path))[1:]]


def shown(cell: dict[str, Any]) -> list[str]:
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue", "")
        for output in cell["outputs"]
    ]
    return [text for text in texts if text]


def test_the_guess_stands_beside_what_the_next_cell_shows(tmp_path: Path) -> None:
    guess, result, after, kept = ran(
        tmp_path, "ch.predict('seven')", "print('six')\n1 + 1", "3", KEPT
    )
    assert guess == ["Your guess: seven\n\nIt is stored. Now run the next cell."]
    assert result[:2] == ["six\n", "2"]
    (beside,) = result[2:]
    assert beside.split("\n")[:4] == [
        "your guess  what came",
        "----------  ---------",
        "seven       six",
        "            2",
    ]
    assert "ch.guessed(True)" in beside
    assert after == ["3"]
    assert kept == ["[('seven', 'six\\n2', None)]\n"]


def test_without_a_guess_the_next_cell_is_as_ever(tmp_path: Path) -> None:
    guess, result = ran(tmp_path, "ch.predict('')", "1 + 1")
    assert guess == [
        "No guess yet. Write it between the quotes and run this cell again; then run the\nnext one."
    ]
    assert result == ["2"]


def test_an_error_is_a_result_too(tmp_path: Path) -> None:
    _, result, kept = ran(tmp_path, "ch.predict('it fails')", "1 / 0", KEPT)
    assert "it fails    ZeroDivisionError: division by zero" in result[-1]
    assert kept == ["[('it fails', 'ZeroDivisionError: division by zero', None)]\n"]


def test_a_guess_can_be_marked(tmp_path: Path) -> None:
    *_, marked, kept = ran(tmp_path, "ch.predict('2')", "1 + 1", "ch.guessed(True)", KEPT)
    assert marked == ["Marked as right."]
    assert kept == ["[('2', '2', True)]\n"]


@pytest.mark.parametrize(("choice", "right"), [("2", True), ("3", False)])
def test_a_choice_marks_itself(tmp_path: Path, choice: str, right: bool) -> None:
    cell = f"ch.predict('{choice}', choices=['2', '3'])"
    _, result, kept = ran(tmp_path, cell, "1 + 1", KEPT)
    assert f"Marked as {'right' if right else 'wrong'}" in result[-1]
    assert kept == [f"[('{choice}', '2', {right})]\n"]


@pytest.fixture
def chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chapter:
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path))
    return Chapter(checkpoint.find("00"), PackageFinder(tmp_path, {}, "chapter 00"))


def test_choices_are_listed_and_others_refused(chapter: Chapter) -> None:
    assert "Choose one of: `2`, `3`." in repr(chapter.predict("", choices=["2", "3"]))
    with pytest.raises(CourseError, match="'4' is none of the choices: 2, 3"):
        chapter.predict("4", choices=["2", "3"])
    with pytest.raises(CourseError, match="no guess to mark"):
        chapter.guessed(True)


def test_a_long_result_is_cut(chapter: Chapter, tmp_path: Path) -> None:
    progress = Progress(tmp_path)
    number = progress.record_prediction("00-prologue", "one line")
    one = Prediction(progress, "00-prologue", number, ())
    text = repr(one.came("\n".join(map(str, range(100))), None))
    assert "… 88 more lines" in text and len(text.split("\n")) < 20


def test_status_counts_right_and_wrong(chapter: Chapter) -> None:
    for right in (True, True, False):
        chapter.predict("a guess")
        chapter.guessed(right)
    chapter.predict("another")
    output = CliRunner().invoke(main, ["status"]).output
    assert "4 guesses: 2 right, 1 wrong, 1 not marked" in output
