"""The builder: a second run gives the same bytes, and what changed is named by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_course_kit.commands import dev_notebooks
from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import build as builder

pytestmark = pytest.mark.slow

Cell = dict[str, Any]


def code(source: str, name: str = "x", *tags: str) -> Cell:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"tags": list(tags)} if tags else {},
        "source": source,
        "execution_count": None,
        "outputs": [],
    }


def prose(source: str, name: str) -> Cell:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def planted(folder: Path, *cells: Cell) -> Path:
    path = folder / "00-planted.ipynb"
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8", newline="\n")
    return path


def outputs(notebook: builder.Notebook) -> list[list[Any]]:
    return [cell["outputs"] for cell in builder.code_cells(notebook)]


LIVE = """
from pi_course_kit.notebook.view import live

async def events():
    yield {"type": "start"}
    yield {"type": "done", "result": 7}

await live(events())
"""


def test_three_builds_give_the_same_bytes(tmp_path: Path) -> None:
    path = planted(
        tmp_path,
        prose("# Title", "00-01"),
        code("import sys\nfor n in range(3):\n    print(n, flush=True)\n    sys.stderr.write('e')"),
        code("from IPython.display import display\ndisplay(1)\n2"),
        code(LIVE),
        code("1 / 0", "y", "raises-exception"),
    )
    texts = {builder.dump(builder.build(path)) for _ in range(3)}
    assert len(texts) == 1
    notebook = json.loads(texts.pop())
    assert [cell["id"] for cell in notebook["cells"]] == [
        "00-01",
        "00-02",
        "00-03",
        "00-04",
        "00-05",
    ]
    assert [cell["execution_count"] for cell in notebook["cells"][1:]] == [1, 2, 3, 4]
    made = notebook["metadata"]["pi_course"]
    assert made["outputs"] == 4
    assert sorted(notebook["metadata"]) == ["kernelspec", "language_info", "pi_course"]


def test_outputs_keep_nothing_of_this_one_run(tmp_path: Path) -> None:
    path = planted(
        tmp_path,
        code("print('a', flush=True)\nprint('b')"),
        code(LIVE),
        code("1 / 0", "y", "raises-exception"),
    )
    prints, live, error = outputs(builder.build(path))
    assert [output["text"] for output in prints] == ["a\nb\n"]
    assert [output["output_type"] for output in live] == ["display_data", "execute_result"]
    assert all(builder.WIDGET not in output["data"] for output in live)
    assert error[0]["traceback"] == ["ZeroDivisionError: division by zero"]


def test_a_failing_cell_is_named(tmp_path: Path) -> None:
    path = planted(tmp_path, code("1", "00-07"), code("1 / 0", "00-08"), code("2", "00-09"))
    with pytest.raises(builder.CellFailed, match="cell 00-08 raised ZeroDivisionError"):
        builder.build(path)


def test_the_kernel_touches_nothing_of_the_user(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "[os.environ[name].startswith(os.path.dirname(os.getcwd()))\n"
        " for name in ('PI_COURSE_WORKSPACE', 'IPYTHONDIR')]"
    )
    path = planted(tmp_path, code(program))
    assert outputs(builder.build(path))[0][0]["data"]["text/plain"] == "[True, True]"


def test_hand_written_ids_stay_and_new_cells_get_the_next(tmp_path: Path) -> None:
    notebook = {"cells": [prose("a", "00-03"), prose("b", "f3a9"), prose("c", "00-03")]}
    builder.name_cells(notebook, 0)
    assert [cell["id"] for cell in notebook["cells"]] == ["00-03", "00-04", "00-05"]


def test_a_difference_names_the_cell_and_shows_both_lines() -> None:
    def notebook(plain: str, html: str) -> builder.Notebook:
        data = {"text/plain": f"same\n{plain}", "text/html": html}
        shown = {"output_type": "display_data", "data": data, "metadata": {}}
        return {"cells": [{**code("1", "00-01"), "outputs": [shown]}], "metadata": {}}

    (text,) = builder.differences(notebook("old", "<p>old"), notebook("new", "<p>new"))
    assert text == "cell 00-01:\n--- committed\n+++ built\n same\n-old\n+new"
    (text,) = builder.differences(notebook("same", "<p>old"), notebook("same", "<p>new"))
    assert '-    "text/html": "<p>old"' in text and '+    "text/html": "<p>new"' in text
    changed = {**notebook("same", ""), "metadata": {"kernelspec": 1}}
    (text,) = builder.differences(notebook("same", ""), changed)
    assert text.startswith("its metadata:") and '+ "kernelspec": 1' in text
    gone = {"cells": [], "metadata": {}}
    assert builder.differences(notebook("", ""), gone) == ["cell 00-01 is gone"]
    assert builder.differences(gone, notebook("", "")) == ["cell 00-01 is new"]


def test_check_compares_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = planted(tmp_path, code("6 * 7"))
    unbuilt = path.read_bytes()
    assert dev_notebooks.build([str(path)], check=True) == 1
    assert path.read_bytes() == unbuilt
    assert "00-planted.ipynb: differs" in capsys.readouterr().out
    assert dev_notebooks.build([str(path)], check=False) == 0
    assert dev_notebooks.build([str(path)], check=True) == 0
    path.write_text(
        path.read_text(encoding="utf-8").replace('"42"', '"43"'), encoding="utf-8", newline="\n"
    )
    capsys.readouterr()
    assert dev_notebooks.build([str(path)], check=True) == 1
    assert "cell 00-01:" in (out := capsys.readouterr().out) and "-43\n+42" in out


def test_an_unknown_notebook_is_refused() -> None:
    with pytest.raises(CourseError, match="There is no notebook '77'"):
        dev_notebooks.build(["77"], check=True)


def test_what_is_no_notebook_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "00-broken.ipynb"
    path.write_text("{", encoding="utf-8", newline="\n")
    with pytest.raises(CourseError, match="can't be read as a notebook"):
        builder.build(path)
    with pytest.raises(CourseError, match="is no chapter's notebook"):
        builder.build(tmp_path / "notes.ipynb")
