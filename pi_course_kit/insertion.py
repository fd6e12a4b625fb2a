"""Lay definitions of the target into a learner's file.

What the learner has written stays as it is: only stubs (NotImplementedError) are replaced, and
that by whole code only. New definitions land in the target's order, with the imports and the
given helpers that they use.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pi_course_kit import imports
from pi_course_kit.errors import CourseError
from pi_course_kit.symbols import Statement, belongs, cut_bodies, is_text, statements


@dataclass(frozen=True, slots=True)
class Laid:
    """The new text of a file, the names laid into it, and those of the learner's that were kept."""

    source: str
    names: tuple[str, ...]
    kept: tuple[str, ...]


def add(
    source: str,
    target: str,
    owners: Mapping[str, str],
    lab: str,
    *,
    cut: bool,
    given: frozenset[str] = frozenset(),
) -> Laid:
    """The learner's source with the lab's definitions of the target in it, bodies cut or whole.

    Raises CourseError where the lab stands on a name of an earlier lab that is not there yet.
    """
    piece = cut_bodies(target, owners, frozenset() if cut else frozenset({lab}))
    tree = ast.parse(piece)
    theirs = statements(tree.body, piece.split("\n"))
    if not source.strip():
        source = f"{_docstring(piece, tree)}\n"
    mine = ast.parse(source)
    lines = source.split("\n")
    have = {name: s for s in statements(mine.body, lines) for name in s.names}
    asked = [s for s in theirs if any(belongs(name, owners, lab) for name in s.names)]
    wanted = [s for s in asked if _missing(s, have, lines, piece.split("\n"), cut=cut)]
    kept = tuple(s.names[0] for s in asked if s not in wanted and not _same(s, have))
    if not wanted:
        return Laid(source, (), kept)
    used = _used(wanted)
    helpers = _helpers(theirs, used, given - have.keys())
    _refuse_gaps(used, owners, lab, have)
    edits = _Edits(lines)
    chosen = [s for s in theirs if s in wanted or s in helpers]
    order = [name for s in theirs for name in s.names]
    for statement in chosen:
        _lay(edits, statement, have, order, mine, piece.split("\n"))
    text = edits.text()
    uses = _used(chosen)
    new = imports.needed(tree, uses, imports.bound_names(mine))
    laid = tuple(s.names[0] for s in wanted)
    return Laid(imports.merge(text, new), laid, kept)


def listing(
    target: str,
    owners: Mapping[str, str],
    lab: str,
    *,
    given: frozenset[str],
    name: str | None = None,
) -> str:
    """The lab's code (or one definition of it) with the helpers and imports that it uses."""
    piece = cut_bodies(target, owners, frozenset({lab}))
    tree, lines = ast.parse(piece), piece.split("\n")
    theirs = statements(tree.body, lines)
    asked = [
        s
        for s in theirs
        if any(belongs(own, owners, lab) and name in (None, own) for own in s.names)
    ]
    helpers = _helpers(theirs, _used(asked), given)
    chosen = [s for s in theirs if s in asked or s in helpers]
    code = "\n\n\n".join("\n".join(lines[s.start : s.end]) for s in chosen)
    return imports.merge(code, imports.needed(tree, _used(chosen), set())) if chosen else ""


def _docstring(piece: str, tree: ast.Module) -> str:
    first = tree.body[0] if tree.body else None
    if first is None or not is_text(first):
        return ""
    return "\n".join(piece.split("\n")[first.lineno - 1 : first.end_lineno])


def _missing(
    statement: Statement,
    have: Mapping[str, Statement],
    lines: list[str],
    theirs: list[str],
    *,
    cut: bool,
) -> bool:
    existing = have.get(statement.names[0])
    if existing is None or cut:
        return existing is None
    if not (isinstance(existing.node, ast.ClassDef) and isinstance(statement.node, ast.ClassDef)):
        return existing.is_stub()
    whole = [s for s in _members(statement.node, theirs) if s.names and not s.is_stub()]
    own = {name: s for s in _members(existing.node, lines) for name in s.names}
    stubs = any(s.is_stub() for s in own.values())
    return stubs and any(_missing(s, own, lines, theirs, cut=False) for s in whole)


def _same(statement: Statement, have: Mapping[str, Statement]) -> bool:
    existing = have.get(statement.names[0])
    return existing is not None and _dumped(existing) == _dumped(statement)


def _dumped(statement: Statement) -> list[str]:
    return [ast.dump(node) for node in statement.nodes]


def _used(chosen: Sequence[Statement]) -> set[str]:
    nodes = (node for s in chosen for node in s.nodes)
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _helpers(theirs: Sequence[Statement], used: set[str], free: frozenset[str]) -> list[Statement]:
    """The given definitions that the laid ones use, directly or through each other."""
    found: list[Statement] = []
    reached = set(used)
    while True:
        new = [
            s
            for s in theirs
            if s not in found and any(name in reached and name in free for name in s.names)
        ]
        if not new:
            return found
        found += new
        reached |= _used(new)


def _refuse_gaps(
    used: set[str], owners: Mapping[str, str], lab: str, have: Mapping[str, Statement]
) -> None:
    for name, owner in owners.items():
        if name in used and name not in have and _number(owner) < _number(lab):
            raise CourseError(
                f"Lab {lab} needs {name} of lab {owner}, which your file does not have yet. "
                "Nothing was written; write or lay that lab first."
            )


def _number(lab: str) -> tuple[int, ...]:
    return tuple(int(part) for part in lab.split("."))


class _Edits:
    """Replacements of line ranges, applied from the end so that indexes stay right."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._ranges: list[tuple[int, int, list[str]]] = []

    def replace(self, start: int, end: int, lines: list[str]) -> None:
        self._ranges.append((start, end, lines))

    def text(self) -> str:
        lines = list(self.lines)
        order = sorted(range(len(self._ranges)), key=lambda i: (self._ranges[i][0], i))
        for start, end, new in (self._ranges[i] for i in reversed(order)):
            lines[start:end] = new
        return "\n".join(lines).strip("\n") + "\n"


def _lay(
    edits: _Edits,
    statement: Statement,
    have: Mapping[str, Statement],
    order: list[str],
    mine: ast.Module,
    theirs: list[str],
) -> None:
    name = statement.names[0]
    text = theirs[statement.start : statement.end]
    existing = have.get(name)
    if existing is None:
        place = _place(have, order[: order.index(name)], mine, edits.lines)
        edits.replace(place, place, [""] * statement.gap + text)
    elif isinstance(existing.node, ast.ClassDef) and isinstance(statement.node, ast.ClassDef):
        _lay_class(edits, existing.node, statement.node, theirs)
    else:
        edits.replace(existing.start, existing.end, text)


def _lay_class(edits: _Edits, mine: ast.ClassDef, target: ast.ClassDef, theirs: list[str]) -> None:
    """Fill the stubs of the learner's class; a lab can own single methods of it."""
    have = {name: s for s in _members(mine, edits.lines) for name in s.names}
    end = mine.end_lineno or mine.lineno
    for statement in _members(target, theirs):
        if not statement.names or statement.is_stub():
            continue
        text = theirs[statement.start : statement.end]
        existing = have.get(statement.names[0])
        if existing is None:
            edits.replace(end, end, [""] * statement.gap + text)
        elif existing.is_stub():
            edits.replace(existing.start, existing.end, text)


def _members(node: ast.ClassDef, lines: list[str]) -> list[Statement]:
    """The statements of a class body; the header's lines are no part of them."""
    head = node.body[0].lineno - 1
    return statements(node.body, [""] * head + lines[head:])


def _place(
    have: Mapping[str, Statement], before: list[str], mine: ast.Module, lines: list[str]
) -> int:
    """The line behind the nearest earlier definition of the target that the learner has."""
    for name in reversed(before):
        if name in have:
            return have[name].end
    body = statements(mine.body, lines)
    leading = [s for s in body if isinstance(s.node, imports.Import)]
    if leading:
        return leading[-1].end
    return body[0].end if body and is_text(body[0].node) else 0
