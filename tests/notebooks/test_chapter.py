"""`chapter("03")`: where pi_course comes from, and what is refused in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import build as builder
from pi_course_kit.notebook import kernel


def python(program: str, cwd: Path, **env: str) -> str:
    """What a fresh Python prints; its last line of error when it fails."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PI_COURSE_SOURCE", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", f"from pi_course_kit import chapter\n{program}"],
        cwd=cwd,
        env={**clean, "PI_COURSE_WORKSPACE": str(cwd / "workspace"), **env},
        capture_output=True,
        encoding="utf-8",
    )
    return done.stdout or done.stderr.strip().split("\n")[-1]


def own_package(folder: Path) -> Path:
    (folder / "pi_course").mkdir(parents=True)
    (folder / "pi_course" / "__init__.py").write_text("", encoding="utf-8", newline="\n")
    (folder / "pi_course" / "prologue.py").write_text(
        "MINE = True\n", encoding="utf-8", newline="\n"
    )
    return folder


def test_pi_course_is_the_snapshot_and_ends_with_the_chapter(tmp_path: Path) -> None:
    out = python(
        "chapter('01')\n"
        "import pi_course.survival, pi_course.prologue\n"
        "try:\n    import pi_course.event_stream\n"
        "except ModuleNotFoundError as error:\n    print(error)\n",
        tmp_path,
    )
    assert out == "pi_course.event_stream is not in chapter 01; chapter 02 brings it.\n"


def test_a_package_in_the_current_folder_is_not_taken(tmp_path: Path) -> None:
    own_package(tmp_path)
    out = python(
        "chapter('00')\nimport pi_course.prologue\nprint(hasattr(pi_course.prologue, 'MINE'))",
        tmp_path,
    )
    assert out == "False\n"


def test_mine_is_served_as_strictly(tmp_path: Path) -> None:
    mine = own_package(tmp_path / "my folder 我")
    program = (
        "import pi_course.prologue\nprint(pi_course.prologue.MINE)\n"
        "try:\n    import pi_course.errors\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    expected = "True\npi_course.errors is not in your folder; chapter 00 brings it.\n"
    assert python(f"chapter('00', mine={str(mine)!r})\n{program}", tmp_path) == expected
    assert python(f"chapter('00')\n{program}", tmp_path, PI_COURSE_SOURCE=str(mine)) == expected


def test_programs_that_the_kernel_starts_get_the_same_package(tmp_path: Path) -> None:
    out = python(
        "import subprocess, sys\n"
        "chapter('00'); chapter('00')\n"
        "import pi_course\n"
        "program = 'import pi_course; print(pi_course.__file__)'\n"
        "child = subprocess.check_output([sys.executable, '-c', program], encoding='utf-8')\n"
        "print(child.strip() == pi_course.__file__)",
        tmp_path,
    )
    assert out == "True\n"


def test_one_source_a_kernel(tmp_path: Path) -> None:
    out = python("chapter('00')\nchapter('00')\nchapter('01')", tmp_path)
    assert "This kernel already runs on chapter 00" in out
    assert "Restart the kernel" in out and "to run on chapter 01" in out


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("chapter('77')", "There is no chapter '77'"),
        ("chapter('00', mine='nowhere')", "There is no pi_course/ in"),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path: Path, call: str, says: str) -> None:
    assert says in python(call, tmp_path)


def test_a_kernel_that_is_too_old_or_bare_is_refused() -> None:
    with pytest.raises(CourseError, match="runs Python 3.10; the course needs 3.11"):
        kernel.require((3, 10))
    with pytest.raises(CourseError, match="has no some_missing_package"):
        kernel.require(package="some_missing_package")
    kernel.require()


def test_the_first_line_loads_no_heavy_module(tmp_path: Path) -> None:
    out = python(
        "chapter('00')\nimport sys\n"
        "print(sorted({'pydantic', 'pytest', 'nbclient', 'ipywidgets'} & set(sys.modules)))",
        tmp_path,
    )
    assert out == "[]\n"


def test_what_it_shows_names_no_path(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    out = python(
        "ch = chapter('00')\nprint(ch, ch._repr_html_(), ch.card(), ch.card()._repr_html_())",
        tmp_path,
        PI_COURSE_CACHE=cache,
    )
    assert "Chapter 00" in out
    assert cache not in out and str(tmp_path) not in out and sys.prefix not in out


def test_a_guess_is_stored_and_an_empty_one_is_not(tmp_path: Path) -> None:
    progress = tmp_path / "workspace" / "progress.json"
    out = python("ch = chapter('00')\nprint(ch.predict('  '))", tmp_path)
    assert out.startswith("No guess yet.") and not progress.exists()
    out = python("ch = chapter('00')\nprint(ch.predict(' seven events '))", tmp_path)
    assert out.startswith("Your guess: seven events")
    stored = json.loads(progress.read_text(encoding="utf-8"))["chapters"]["00-prologue"]
    assert [item["guess"] for item in stored["predictions"]] == ["seven events"]


def test_the_notebook_shows_an_error_as_one_line(tmp_path: Path) -> None:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "00-01",
        "metadata": {"tags": ["raises-exception"]},
        "source": "from pi_course_kit import chapter\n\nchapter('77')",
        "execution_count": None,
        "outputs": [],
    }
    path = tmp_path / "00-planted.ipynb"
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8", newline="\n")
    (raw,) = builder.code_cells(builder.build(path, raw=True))
    (error,) = raw["outputs"]
    assert error["ename"] == "CourseError"
    assert error["traceback"] == [f"CourseError: {error['evalue']}"]
