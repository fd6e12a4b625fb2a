"""Rule: a chapter's notebook holds the outputs that its code gave on this snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pi_course_kit.verify.case import Case
from pi_course_kit.verify.rule import Finding, Rule, swap


def _read(path: Path) -> dict[str, Any]:
    """As nbformat reads it; its import would take longer than all that is looked at here."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if not isinstance(cell["source"], str):
            cell["source"] = "".join(cell["source"])
    return notebook


def notebook(case: Case) -> Iterator[Finding]:
    from pi_course_kit.notebook import build

    if case.notebook is None:
        yield Finding(
            "the chapter has no notebook",
            f"notebooks/{case.chapter.id}.ipynb",
            "Write it, then run `pi-course dev notebooks`.",
        )
        return
    where = case.name(case.notebook)
    if case.notebook.stem != case.chapter.id:
        yield Finding("its name is not the chapter's", where, f"Call it {case.chapter.id}.ipynb.")
    try:
        problems = build.problems(_read(case.notebook), case.number)
    except (ValueError, KeyError, TypeError) as error:
        yield Finding(f"it can't be read: {error}", where, "")
        return
    for problem in problems:
        yield Finding(problem, where, f"Run `pi-course dev notebooks {case.chapter.nn}`.")


def _clear(course: Path) -> None:
    path = course / "notebooks/01-hello.ipynb"
    cleared = _read(path)
    for cell in cleared["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    path.write_text(json.dumps(cleared), encoding="utf-8", newline="\n")


RULES = (
    Rule(
        "notebook",
        "The notebook's outputs are those that its code gave on this snapshot, all of them.",
        notebook,
        _clear,
        settled=True,
        more={"stale": swap("notebooks/01-hello.ipynb", "print(1 + 1)", "print(2 + 2)")},
    ),
)
