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


def hint(chapter: Checkpoint, lab: Lab, level: int, name: str | None = None) -> str:
    """The text of one rung; with `name`, levels 2 and 4 show that definition alone."""
    if level not in LEVELS:
        raise CourseError(f"There is no hint level {level}. The levels are 1 to 4.")
    if chapter.mode == "observe":
        return f"Chapter {chapter.nn} is observed: everything is there. {lab.expect}"
    if name is not None and name not in (symbol.partition(":")[2] for symbol in lab.symbols):
        known = ", ".join(symbol.partition(":")[2] for symbol in lab.symbols)
        raise CourseError(f"Lab {lab.id} has no {name!r}. Its names are: {known}.")
    if level == 1:
        return _where(chapter, lab)
    if level == 3:
        return _pseudocode(chapter, lab)
    return _code(chapter, lab, name, cut=level == 2)


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
        if file not in before:
            lines.append(f"{file} is yours to write. This lab needs in it:")
        else:
            there = symbols.names(before[file].read_text(encoding="utf-8"))
            last = [name for name in there if "." not in name][-1]
            lines.append(f"{file} is there already. Below {last} it has to gain:")
        lines += [f"  {name}" for name in names]
    lines.append("")
    lines.append("The tests that look at it:")
    for step in lab.steps:
        count = len(step.tests)
        lines.append(f"  {step.name}: {count} {'test' if count == 1 else 'tests'}")
    return "\n".join(lines)


def _pseudocode(chapter: Checkpoint, lab: Lab) -> str:
    path = chapter.folder / "hints.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    found = re.search(rf"^## {re.escape(lab.id)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not found:
        raise CourseError(f"{path} has no section '## {lab.id}'. Write the lab's pseudocode there.")
    return found[1].strip()


def _code(chapter: Checkpoint, lab: Lab, name: str | None, *, cut: bool) -> str:
    parts: list[str] = []
    for file, _ in _files(chapter, lab):
        target = snapshot.snapshot_files(chapter.number)[file].read_text(encoding="utf-8")
        owners = symbols.owners(chapter, file)
        if cut:
            owners = {own: of for own, of in owners.items() if name in (None, own)}
            text = symbols.signatures(target, owners, lab.id)
        else:
            given = symbols.given(chapter, file)
            text = insertion.listing(target, owners, lab.id, given=given, name=name).strip()
        if text:
            parts.append(f"# {file}\n\n{text}")
    return "\n\n\n".join(parts)


def write_hint(
    folder: Path, chapter: Checkpoint, lab: Lab, level: int
) -> list[tuple[str, insertion.Laid]]:
    """Lay the lab's signatures (2) or code (4) into the practice folder's files.

    Returns what was laid and kept for each file. All files are worked out before one is written.
    """
    if level not in (2, 4):
        raise CourseError(
            f"Level {level} is text to read. --write takes 2 (signatures) or 4 (code)."
        )
    results: list[tuple[str, insertion.Laid]] = []
    for file, _ in _files(chapter, lab):
        path = folder / file
        if path.exists() and not path.is_file():
            raise CourseError(f"{path} is a folder where a file belongs. Nothing was written.")
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        target = snapshot.snapshot_files(chapter.number)[file].read_text(encoding="utf-8")
        owners, given = symbols.owners(chapter, file), symbols.given(chapter, file)
        try:
            laid = insertion.add(source, target, owners, lab.id, cut=level == 2, given=given)
        except SyntaxError as error:
            raise CourseError(
                f"{path}, line {error.lineno}: {error.msg}. "
                "Nothing was written; correct that line first."
            ) from error
        results.append((file, laid))
    for file, laid in results:
        if laid.names:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(laid.source, encoding="utf-8", newline="\n")
    return results
