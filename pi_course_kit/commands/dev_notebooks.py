"""`pi-course dev notebooks [--check] [NN …]`: run the notebooks, write or compare them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from pi_course_kit.data import checkout
from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import build as builder


def build(names: Sequence[str], check: bool) -> int:
    """Execute the named notebooks (all without names); 1 if one fails or differs, else 0."""
    root = checkout()
    if root is None:
        raise CourseError("Notebooks are built in a checkout of the course, not from a wheel.")
    failed = 0
    for path in _chosen(names):
        began = time.monotonic()
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        try:
            built = builder.build(path)
        except builder.CellFailed as error:
            click.echo(f"{name}: {error}")
            failed += 1
            continue
        text, committed = builder.dump(built), path.read_text(encoding="utf-8")
        cells = builder.code_cells(built)
        if text == committed:
            verdict = "as committed"
        elif check:
            verdict = "differs from what is committed"
            failed += 1
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
            verdict = "written"
        seconds = time.monotonic() - began
        outputs = built["metadata"]["pi_course"]["outputs"]
        click.echo(
            f"{name}: {verdict} ({len(cells)} code cells, {outputs} with output, {seconds:.1f} s)"
        )
        if check and text != committed:
            for difference in builder.differences(builder.read(path), built):
                click.echo(difference)
    return 1 if failed else 0


def _chosen(names: Sequence[str]) -> list[Path]:
    known = builder.notebooks()
    if not names:
        return list(known)
    return [_find(name, known) for name in names]


def _find(name: str, known: Sequence[Path]) -> Path:
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name)
    for path in known:
        number = path.name[:2]
        if name in (path.name, path.stem) or (name.isdigit() and int(name) == int(number)):
            return path
    there = ", ".join(path.name[:2] for path in known)
    raise CourseError(f"There is no notebook {name!r}. Notebooks exist for {there}.")
