"""The command: exit codes, JSON, the evidence it leaves, and wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pi_course_kit import checkpoint, practice, typecheck
from pi_course_kit.cli import main
from pi_course_kit.typecheck import Diagnostic
from pi_course_kit.workspace import progress_for

HELLO = 'def hello(name: str) -> str:\n    return f"hello {name}"\n'


@pytest.fixture
def folder(fake_course: Path, tmp_path: Path) -> Path:
    folder = practice.create(checkpoint.find("1"), tmp_path / "my practice 练习").folder
    (folder / "pi_course").mkdir()
    (folder / "pi_course" / "__init__.py").write_text("", encoding="utf-8")
    return folder


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def run_json(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    result = run(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def solve(folder: Path, text: str = HELLO) -> None:
    (folder / "pi_course" / "greet.py").write_text(text, encoding="utf-8")


def test_an_untouched_folder_is_red_with_its_declared_first_red(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 1
    assert "missing\n  pi_course/greet.py is missing\n" in result.stdout
    assert "next      write what lab 1.1 lacks: LEARNING.md says what" in result.stdout


def test_a_solved_folder_is_green_and_shows_what_was_tested(folder: Path) -> None:
    solve(folder)
    result = run(folder)
    assert result.exit_code == 0
    assert "tested in " in result.stdout
    assert f"/{folder.name}\n" in result.stdout
    assert "pi_course/greet.py" in result.stdout


def test_tests_of_another_course_are_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solve(folder)
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PI_COURSE_DATA", root)
    note = f"the tests are those of another course: PI_COURSE_DATA names {root}."
    assert run_json(folder)[1]["notes"] == [note]
    monkeypatch.delenv("PI_COURSE_DATA")
    assert run_json(folder)[1]["notes"] == []


def test_json_has_exactly_the_fields_that_were_promised(folder: Path) -> None:
    code, value = run_json(folder)
    assert (code, value["chapter"], value["verdict"]) == (1, "01-hello", "red")
    assert value["tests"] == [
        {
            "id": "test_hello",
            "lab": "1.1",
            "outcome": "failed",
            "message": "pi_course/greet.py is missing",
            "where": None,
        }
    ]
    solve(folder)
    code, value = run_json(folder)
    assert (code, value["verdict"]) == (0, "green")
    assert [file["path"] for file in value["tested"]] == [
        "pi_course/__init__.py",
        "pi_course/greet.py",
    ]


@pytest.mark.parametrize(
    "text",
    ["def hello(:\n", "import nothing_like_this\n", "import os; os._exit(0)\n", "exit(0)\n"],
    ids=["syntax error", "import error", "os._exit", "exit"],
)
def test_whatever_the_files_do_is_red_and_not_an_error(folder: Path, text: str) -> None:
    solve(folder, text)
    code, value = run_json(folder)
    assert (code, value["verdict"]) == (1, "red")


def test_green_is_recorded_and_a_change_puts_it_out(folder: Path) -> None:
    solve(folder)
    progress = progress_for(folder)
    assert progress.state("01-hello") == "started"
    run(folder)
    assert progress.state("01-hello") == "green"
    solve(folder, HELLO + "\n")
    assert progress.state("01-hello") == "started"


def test_a_lab_alone_is_no_evidence(folder: Path) -> None:
    solve(folder)
    result = run(folder, "--lab", "1.1")
    assert result.exit_code == 0
    assert "so far" not in result.stdout
    assert progress_for(folder).state("01-hello") == "started"


def test_type_errors_never_hide_a_test_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_error(paths: object, root: object) -> list[Diagnostic]:
        return [Diagnostic("pi_course/greet.py", 2, "str is not int", "reportReturnType")]

    monkeypatch.setattr(typecheck, "type_check", one_error)
    solve(folder)
    result = run(folder, "--types")
    assert result.exit_code == 1
    assert "  tests green, types red\n" in result.stdout
    assert "1/1    green" in result.stdout
    assert (
        "types     1 error (red)\n  pi_course/greet.py:2: str is not int (reportReturnType)"
        in result.stdout
    )
    code, value = run_json(folder, "--types")
    assert (code, value["verdict"]) == (1, "green")
    assert value["types"] == ["pi_course/greet.py:2: str is not int (reportReturnType)"]


def test_the_type_checker_itself_is_asked(folder: Path) -> None:
    solve(folder, HELLO + "\n\nCOUNT: int = 'three'\n")
    result = run(folder, "--types")
    assert result.exit_code == 1
    assert "pi_course/greet.py:5: " in result.stdout


def wrong_marker(folder: Path) -> None:
    (folder / ".pi-course.json").write_text("not json", encoding="utf-8")


def newer_kit(folder: Path) -> None:
    text = json.dumps({"kit": "99.0", "chapter": "01-hello"})
    (folder / ".pi-course.json").write_text(text, encoding="utf-8")


def no_marker(folder: Path) -> None:
    (folder / ".pi-course.json").unlink()


def tests_gone(folder: Path) -> None:
    for test in checkpoint.find("1").folder.glob("parent/tests/*.py"):
        test.unlink()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (no_marker, "is not a practice folder"),
        (wrong_marker, "can't be read"),
        (newer_kit, "was made by pi-course 99.0"),
        (tests_gone, "is missing, so nothing can be checked"),
    ],
)
def test_a_check_that_can_not_run_is_an_error_with_a_sentence(folder, spoil, sentence) -> None:
    solve(folder)
    spoil(folder)
    result = run(folder)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""
    code, value = run_json(folder)
    assert (code, value["verdict"], value["chapter"]) == (2, "error", None)
    assert (value["tests"], value["tested"]) == ([], [])
    assert sentence in value["sentence"]


def test_an_unknown_lab_is_wrong_use(folder: Path) -> None:
    code, value = run_json(folder, "--lab", "9.9")
    assert (code, value["verdict"]) == (2, "error")
    assert "has no lab '9.9'" in value["sentence"]


def test_a_folder_that_is_not_there_is_wrong_use(fake_course: Path, tmp_path: Path) -> None:
    code, value = run_json(tmp_path / "nowhere")
    assert (code, value["verdict"]) == (2, "error")


def test_the_folder_is_found_from_inside_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solve(folder)
    monkeypatch.chdir(folder / "pi_course")
    assert run().exit_code == 0
