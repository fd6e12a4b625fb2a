"""The committed notebooks are as they were built; found without running them.

Cleared outputs, code that changed since, another snapshot: each would pass nbval or be shown to a
reader as if it were true. Planted copies show that each of them is noticed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_course_kit import checkpoint
from pi_course_kit.notebook import build as builder

NOTEBOOKS = builder.notebooks()
ROOT = Path(__file__).resolve().parents[2]


def source(cell: builder.Cell) -> str:
    return cell["source"]


def of_type(notebook: builder.Notebook, kind: str) -> list[builder.Cell]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.name)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_the_notebooks_are_those_of_the_chapters_without_a_gap() -> None:
    chapters = [folder.name for folder in checkpoint.folders()]
    assert [path.stem for path in NOTEBOOKS] == chapters[: len(NOTEBOOKS)]
    assert len(NOTEBOOKS) >= 4


def test_it_is_as_it_was_built(path: Path) -> None:
    assert builder.problems(builder.read(path), builder.number_of(path)) == []


def test_it_is_written_as_the_builder_writes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == builder.dump(builder.read(path))


def cleared(notebook: builder.Notebook) -> None:
    for cell in builder.code_cells(notebook):
        cell["outputs"] = []


def one_cleared(notebook: builder.Notebook) -> None:
    next(cell for cell in builder.code_cells(notebook) if cell["outputs"])["outputs"] = []


def stripped(notebook: builder.Notebook) -> None:
    for cell in builder.code_cells(notebook):
        cell["execution_count"] = None


def cell_gone(notebook: builder.Notebook) -> None:
    notebook["cells"].remove(builder.code_cells(notebook)[-1])


def code_changed(notebook: builder.Notebook) -> None:
    builder.code_cells(notebook)[1]["source"] += "\npass"


def other_snapshot(notebook: builder.Notebook) -> None:
    notebook["metadata"]["pi_course"]["digest"] = "0" * 64


def never_built(notebook: builder.Notebook) -> None:
    del notebook["metadata"]["pi_course"]


def one_id_twice(notebook: builder.Notebook) -> None:
    notebook["cells"][1]["id"] = notebook["cells"][0]["id"]


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (cleared, "0 cells have output"),
        (one_cleared, "cells have output"),
        (stripped, "not numbered"),
        (cell_gone, "code changed"),
        (code_changed, "code changed"),
        (other_snapshot, "another snapshot"),
        (never_built, "code changed"),
        (one_id_twice, "cell id"),
    ],
)
def test_a_planted_copy_is_noticed(plant: Callable[[builder.Notebook], None], says: str) -> None:
    notebook = builder.read(NOTEBOOKS[0])
    plant(notebook)
    assert says in "; ".join(builder.problems(notebook, 0))


def test_it_opens_with_the_chapter_and_ends_with_the_next(path: Path) -> None:
    notebook = builder.read(path)
    chapter = checkpoint.find(path.stem)
    cells = notebook["cells"]
    assert source(cells[0]).startswith(f"# {chapter.nn} · {chapter.title}\n")
    first = source(builder.code_cells(notebook)[0])
    assert first.startswith(f'from pi_course_kit import chapter\n\nch = chapter("{chapter.nn}")')
    assert source(builder.code_cells(notebook)[-1]) == "ch.next()"


def test_it_has_every_part_of_a_chapter(path: Path) -> None:
    notebook = builder.read(path)
    chapter = checkpoint.find(path.stem)
    code = "\n".join(source(cell) for cell in builder.code_cells(notebook))
    for part in ("ch.card()", "ch.predict(", "ch.pi()", "ch.accept()", "ch.terms()"):
        assert part in code, part
    prose = "\n".join(source(cell) for cell in of_type(notebook, "markdown"))
    for lab in chapter.labs:
        assert f"Lab {lab.id}" in prose, lab.id
    assert any(f'ch.fault("{fault.id}")' in code for fault in chapter.faults)


def test_prose_holds_no_code_and_code_no_prose(path: Path) -> None:
    notebook = builder.read(path)
    for cell in of_type(notebook, "markdown"):
        assert "```" not in source(cell) and "\n    " not in source(cell), cell["id"]
    for cell in builder.code_cells(notebook):
        comments = re.findall(r"(?m)^\s*#.*$", source(cell))
        assert len(comments) <= 1, cell["id"]


def test_every_code_cell_shows_something_or_says_what_is_used_later(path: Path) -> None:
    """A cell without output only defines names, and a later cell uses one of them."""
    cells = builder.code_cells(builder.read(path))
    for number, cell in enumerate(cells):
        if cell["outputs"]:
            continue
        later = "\n".join(source(other) for other in cells[number + 1 :])
        tree = ast.parse(source(cell))
        names = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        }
        names |= {
            name.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for name in node.targets
            if isinstance(name, ast.Name)
        }
        assert any(re.search(rf"\b{name}\b", later) for name in names), cell["id"]


def test_outputs_hold_nothing_of_one_machine_or_one_moment(path: Path) -> None:
    for cell in builder.code_cells(builder.read(path)):
        text = json.dumps(cell["outputs"])
        assert not re.search(r"0x[0-9a-f]{6,}|/tmp/|/home/|/root/|ipykernel_|site-packages", text)
        assert str(ROOT) not in text
        assert not re.search(r"<style|<script|widget-view|\\u001b", text)
        assert not re.search(r"\b20[2-9]\d-\d\d-\d\d", text), "a date"
