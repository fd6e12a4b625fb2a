"""Hints in four rungs: where, signature, pseudocode, local code.

Levels 1, 2 and 4 are read off the target, so they name what really is there. Level 3 is
written by hand in hints.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from pi_course_kit import insertion, snapshot, symbols
from pi_course_kit.checkpoint import Checkpoint, Lab
from pi_course_kit.errors import CourseError

LEVELS = {1: "where", 2: "signature", 3: "pseudocode", 4: "local code"}


def hint(chapter: Checkpoint, lab: Lab, level: int) -> str:
    """The text of one rung."""
    if level not in LEVELS:
        raise CourseError(f"There is no hint level {level}. The levels are 1 to 4.")
    if chapter.mode == "observe":
        return f"Chapter {chapter.nn} is observed: everything is there. {lab.expect}"
    if level == 1:
        return _where(chapter, lab)
    if level == 3:
        return _pseudocode(chapter, lab)
    return _code(chapter, lab, cut=level == 2)


def _files(chapter: Checkpoint, lab: Lab) -> list[tuple[str, list[str]]]:
    files: dict[str, list[str]] = {}
    for symbol in lab.symbols:
        file, _, name = symbol.partition(":")
        files.setdefault(file, []).append(name)
    return list(files.items())


def _where(chapter: Checkpoint, lab: Lab) -> str:
    lines: list[str] = []
    before = snapshot.snapshot_files(chapter.number - 1)
    for file, names in _files(chapter, lab):
        how = "has to gain" if file in before else "is yours to write; it needs"
        lines.append(f"{file} {how}:")
        lines += [f"  {name}" for name in names]
    lines.append("")
    lines.append("The tests that look at it:")
    lines += [f"  {step.name}: {', '.join(step.tests)}" for step in lab.steps]
    return "\n".join(lines)


def _pseudocode(chapter: Checkpoint, lab: Lab) -> str:
    path = chapter.folder / "hints.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = re.search(rf"^## {re.escape(lab.id)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not found:
        raise CourseError(f"{path} has no section '## {lab.id}'. Write the lab's pseudocode there.")
    return found[1].strip()


def _code(chapter: Checkpoint, lab: Lab, *, cut: bool) -> str:
    parts: list[str] = []
    for file, _ in _files(chapter, lab):
        target = snapshot.snapshot_files(chapter.number)[file].read_text(encoding="utf-8")
        text = symbols.excerpt(target, symbols.owners(chapter, file), lab.id, cut=cut)
        parts.append(f"# {file}\n\n{text}")
    return "\n\n\n".join(parts)


def write_hint(folder: Path, chapter: Checkpoint, lab: Lab, level: int) -> list[str]:
    """Lay the lab's signatures (2) or code (4) into the practice folder's files.

    Returns the files that changed. What the learner wrote stays; only stubs are replaced.
    """
    if level not in (2, 4):
        raise CourseError(
            f"Level {level} is text to read. --write takes 2 (signatures) or 4 (code)."
        )
    changed: list[str] = []
    for file, _ in _files(chapter, lab):
        path = folder / file
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        target = snapshot.snapshot_files(chapter.number)[file].read_text(encoding="utf-8")
        try:
            after = insertion.add(
                source,
                target,
                symbols.owners(chapter, file),
                lab.id,
                cut=level == 2,
                given=symbols.given(chapter, file),
            )
        except SyntaxError as error:
            raise CourseError(
                f"{path}, line {error.lineno}: {error.msg}. "
                "Nothing was written; correct that line first."
            ) from error
        if after != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(after, encoding="utf-8", newline="\n")
            changed.append(file)
    return changed
