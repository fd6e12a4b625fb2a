"""Lay definitions of the target into a learner's file.

What the learner has written stays as it is. New definitions land in the target's order, with
the imports that they use.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pi_course_kit.symbols import (
    Statement,
    belongs,
    cut_bodies,
    is_stub,
    is_text,
    names_of,
    statements,
)


def add(
    source: str,
    target: str,
    owners: Mapping[str, str],
    lab: str,
    *,
    cut: bool,
    given: frozenset[str] = frozenset(),
) -> str:
    """The learner's source with the lab's definitions of the target laid into it.

    What the learner has written stays as it is; only stubs (NotImplementedError) are replaced,
    and that only by whole code (`cut=False`). Definitions land in the target's order.
    """
    keep: frozenset[str] = frozenset() if cut else frozenset({lab})
    piece = cut_bodies(target, owners, keep)
    mine = ast.parse(source)
    lines = source.split("\n") if source.strip() else []
    theirs = piece.split("\n")
    wanted = [
        statement
        for statement in statements(ast.parse(piece).body, theirs)
        if any(name in given or belongs(name, owners, lab) for name in statement.names)
    ]
    edits = _Edits(lines)
    _lay(edits, statements(mine.body, lines), _order(piece), wanted, theirs, cut=cut)
    _imports(edits, mine, piece)
    return edits.text()


class _Edits:
    """Replacements of line ranges, applied from the end so that indexes stay right."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.ranges: list[tuple[int, int, list[str]]] = []
        self.nodes: list[ast.stmt] = []

    def replace(self, start: int, end: int, lines: list[str]) -> None:
        self.ranges.append((start, end, lines))

    def text(self) -> str:
        lines = list(self.lines)
        order = sorted(range(len(self.ranges)), key=lambda i: (self.ranges[i][0], i))
        for start, end, new in (self.ranges[i] for i in reversed(order)):
            lines[start:end] = new
        return "\n".join(lines).strip("\n") + "\n"


def _order(source: str) -> list[str]:
    return [name for node in ast.parse(source).body for name in names_of(node)]


def _lay(
    edits: _Edits,
    mine: list[Statement],
    order: list[str],
    wanted: list[Statement],
    theirs: list[str],
    *,
    cut: bool,
) -> None:
    have = {name: statement for statement in mine for name in statement.names}
    for statement in wanted:
        name = statement.names[0]
        text = theirs[statement.start : statement.end]
        existing = have.get(name)
        if existing is None:
            place = _place(have, order[: order.index(name)], mine)
            edits.replace(place, place, [""] * statement.gap + text)
            edits.nodes.append(statement.node)
        elif not cut and is_stub(existing.node):
            if isinstance(existing.node, ast.ClassDef) and isinstance(statement.node, ast.ClassDef):
                _lay_class(edits, existing.node, statement.node, theirs)
            else:
                edits.replace(existing.start, existing.end, text)
            edits.nodes.append(statement.node)


def _lay_class(edits: _Edits, mine: ast.ClassDef, target: ast.ClassDef, theirs: list[str]) -> None:
    """Fill the stubs of the learner's class; a lab can own single methods of it."""
    have = {name: s for s in statements_of(mine, edits.lines) for name in s.names}
    end = mine.end_lineno or mine.lineno
    for statement in statements_of(target, theirs):
        if not statement.names or is_stub(statement.node):
            continue
        text = theirs[statement.start : statement.end]
        existing = have.get(statement.names[0])
        if existing is None:
            edits.replace(end, end, [""] * statement.gap + text)
        elif is_stub(existing.node):
            edits.replace(existing.start, existing.end, text)


def statements_of(node: ast.ClassDef, lines: list[str]) -> list[Statement]:
    """The statements of a class body; the header's lines are no part of them."""
    head = node.body[0].lineno - 1
    blank = [""] * head + lines[head:]
    return statements(node.body, blank)


def _place(have: Mapping[str, Statement], before: list[str], mine: list[Statement]) -> int:
    """The line behind the nearest earlier definition of the target that the learner has."""
    for name in reversed(before):
        if name in have:
            return have[name].end
    leading = [s for s in mine if isinstance(s.node, ast.Import | ast.ImportFrom)]
    if leading:
        return leading[-1].end
    return mine[0].end if mine and is_text(mine[0].node) else 0


def _imports(edits: _Edits, mine: ast.Module, piece: str) -> None:
    """Add the target's imports that the laid-down code uses and the learner lacks."""
    used = {
        name.id for node in edits.nodes for name in ast.walk(node) if isinstance(name, ast.Name)
    }
    bound = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(mine)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    new: list[str] = []
    tree = ast.parse(piece)
    wanted = (used | {"TYPE_CHECKING"} if _only_typing(tree, used) else used) - bound
    if not edits.lines and is_text(tree.body[0]):
        new += piece.split("\n")[: tree.body[0].end_lineno] + [""]
    for node in tree.body:
        new += _import_lines(node, wanted, bound)
    if not new:
        return
    at = 0
    for statement in statements(mine.body, edits.lines):
        future = (
            isinstance(statement.node, ast.ImportFrom) and statement.node.module == "__future__"
        )
        if is_text(statement.node) or future:
            at = statement.end
        else:
            break
    before = [""] if at else []
    after = ["", ""] if edits.lines and not at else []
    edits.ranges.insert(0, (at, at, before + new + after))


def _only_typing(tree: ast.Module, used: set[str]) -> bool:
    """Whether an import that the code uses stands below `if TYPE_CHECKING:`."""
    return any(
        isinstance(node, ast.If) and any(_import_lines(child, used, set()) for child in node.body)
        for node in tree.body
    )


def _import_lines(node: ast.stmt, wanted: set[str], bound: set[str]) -> list[str]:
    match node:
        case ast.ImportFrom(module="__future__"):
            return [] if "annotations" in bound else [ast.unparse(node), ""]
        case ast.Import() | ast.ImportFrom():
            names = [a for a in node.names if (a.asname or a.name.split(".")[0]) in wanted]
            if not names:
                return []
            if isinstance(node, ast.Import):
                return [ast.unparse(ast.Import(names=names))]
            return [ast.unparse(ast.ImportFrom(node.module, names, node.level))]
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            inner = [line for child in node.body for line in _import_lines(child, wanted, bound)]
            return ["if TYPE_CHECKING:"] + [f"    {line}" for line in inner] if inner else []
        case _:
            return []
