"""The generated pages: the glossary, the error tree, and the README's table of chapters."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.errors import CourseError

START, END = "<!-- chapters: start", "<!-- chapters: end -->"
NOTE = "<!-- Written by `pi-course dev sync`; change checkpoints/ instead. -->"


def glossary(chapters: Sequence[Checkpoint]) -> str:
    """Every term with its sentence and the chapter that brings it, in alphabetical order."""
    rows = [
        (term.term, term.text, f"[{chapter.nn}](../notebooks/{chapter.id}.ipynb)")
        for chapter in chapters
        for term in chapter.terms
    ]
    lines = [
        "# Glossary",
        "",
        NOTE,
        "",
        "| term | meaning | chapter |",
        "|---|---|---|",
        *(f"| {term} | {text} | {link} |" for term, text, link in sorted(rows, key=_first)),
    ]
    return "\n".join(lines) + "\n"


def _first(row: tuple[str, str, str]) -> str:
    return row[0].casefold()


def error_tree(files: Mapping[str, Path]) -> str:
    """The exceptions of the runtime below PiError, each with its module and first sentence."""
    children: dict[str, list[tuple[str, str, str]]] = {}
    for path, file in files.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                says = (ast.get_docstring(node) or "").split("\n")[0]
                for base in node.bases:
                    row = (node.name, path, says)
                    children.setdefault(ast.unparse(base), []).append(row)
    lines = ["# Errors of the runtime", "", NOTE, "", "- `PiError`: the root"]

    def add(name: str, depth: int) -> None:
        for child, path, says in sorted(children.get(name, [])):
            lines.append(f"{'  ' * depth}- `{child}` ({path}): {says}")
            add(child, depth + 1)

    add("PiError", 1)
    return "\n".join(lines) + "\n"


def readme(text: str, chapters: Sequence[Checkpoint]) -> str:
    """The README with its table of chapters made anew between the two comments."""
    start, end = text.find(START), text.find(END)
    if start < 0 or end < start:
        raise CourseError(f"README.md lacks its marks '{START} -->' and '{END}'. Put them back.")
    head = text[: text.index("\n", start) + 1]
    rows = [
        f"| [{chapter.nn}](notebooks/{chapter.id}.ipynb) | {chapter.title} | {chapter.minutes} |"
        for chapter in chapters
    ]
    table = ["| | chapter | minutes |", "|---|---|---|", *rows]
    return head + "\n" + "\n".join(table) + "\n\n" + text[end:]
