"""Mutants of a chapter's new code: a body gone, a constant for an answer, a condition flipped.

Kept mutation libraries (mutmut, cosmic-ray) mutate one installed source tree and start pytest
anew for each change: they know no overlays, can't tell a chapter's new code from the code before
it, and have no operator that removes a body or a field. So this is done on the ast, 50 ms each.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pi_course_kit.verify import sources

VERSION = 1  # part of the digest under which results are kept: raise it with any change here

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CONSTANTS = {
    "str": ["''"],
    "bytes": ["b''"],
    "int": ["0"],
    "float": ["0.0"],
    "bool": ["True", "False"],
    "list": ["[]"],
    "tuple": ["()"],
    "dict": ["{}"],
    "set": ["set()"],
    "Mapping": ["{}"],
    "Sequence": ["()"],
}
# Memory and typing, not behaviour: no test of a chapter should ask for them.
UNTESTED_KEYWORDS = {"slots"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """`id` is stable under edits elsewhere: "messages.py:text_of/compare-1"."""

    id: str
    file: str
    text: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Change:
    """Another value for one field of one node."""

    node: ast.AST
    field: str
    value: Any


@dataclass(frozen=True, slots=True)
class Point:
    id: str
    node: ast.AST
    change: Change
    what: str


def mutants(file: str, target: str, before: str) -> Iterator[Mutant]:
    """Every mutant of what `target` has and `before` (the earlier version, or "") has not."""
    known = set(_parts(ast.parse(before)).values())
    tree = ast.parse(target)
    plain = ast.unparse(tree)
    for point in list(_points(tree, known)):
        text = _changed(tree, point.change)
        if text != plain:
            line = getattr(point.node, "lineno", 1)
            yield Mutant(f"{_short(file)}:{point.id}", file, text + "\n", line, point.what)


def _changed(tree: ast.Module, change: Change) -> str:
    kept = getattr(change.node, change.field)
    setattr(change.node, change.field, change.value)
    text = ast.unparse(tree)
    setattr(change.node, change.field, kept)
    return text


def _short(file: str) -> str:
    return file.removeprefix("pi_course/")


def _parts(tree: ast.Module) -> dict[str, str]:
    """Each function and class-level or top-level statement as text, under its name."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name} {i}": _text(node.name, s) for i, s in enumerate(node.body)}
            found[f"{node.name} head"] = _head(node)
        else:
            found[f"{len(found)}"] = _text("", node)
    return found


def _text(owner: str, node: ast.AST) -> str:
    return f"{owner}: {ast.unparse(node)}"


def _head(node: ast.ClassDef) -> str:
    parts = [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
    return f"class {node.name}: {', '.join(map(ast.unparse, parts))}"


def _points(tree: ast.Module, known: set[str]) -> Iterator[Point]:
    for node in tree.body:
        match node:
            case ast.ClassDef():
                yield from _of_class(node, known)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _text("", node) not in known:
                yield from _of_function(node, node.name)
            case ast.Assign() | ast.AnnAssign() if _text("", node) not in known:
                name = next(sources.defined(node), "module")
                yield from _conditions(node, name, [node])
            case _:
                pass


def _of_class(node: ast.ClassDef, known: set[str]) -> Iterator[Point]:
    if any(ast.unparse(base).startswith("Protocol") for base in node.bases):
        return  # nothing of a protocol runs
    if _head(node) not in known:
        yield from _conditions(node, node.name, [*node.decorator_list, *node.keywords])
    for count, child in enumerate(list(node.body), 1):
        if _text(node.name, child) in known:
            continue
        if isinstance(child, sources.Function):
            yield from _of_function(child, f"{node.name}.{child.name}")
        elif isinstance(child, ast.ClassDef):
            yield from _of_class(child, known)
        elif not (sources.is_text(child) or isinstance(child, ast.Pass)):
            name = next(sources.defined(child), f"statement-{count}")
            yield Point(
                f"{node.name}.{name}/removed", child, _remover(node, child), f"{name} removed"
            )
            yield from _conditions(child, f"{node.name}.{name}", [child])


def _remover(node: ast.ClassDef, child: ast.stmt) -> Change:
    rest = [other for other in node.body if other is not child]
    return Change(node, "body", rest or [ast.Pass()])


def _of_function(node: sources.Function, name: str) -> Iterator[Point]:
    body = sources.body(node)
    if body:
        if not _is_nothing(body):
            yield Point(f"{name}/body", node, _filler(node, _nothing(node)), "body removed")
        for count, constant in enumerate(_constants(node), 1):
            suffix = f"-{count}" if count > 1 else ""
            yield Point(
                f"{name}/constant{suffix}",
                node,
                _filler(node, [ast.Return(ast.parse(constant, mode="eval").body)]),
                f"always {constant}",
            )
    defaults = [default for default in [*node.args.defaults, *node.args.kw_defaults] if default]
    yield from _conditions(node, name, [*node.decorator_list, *defaults, *node.body])


def _is_nothing(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and ast.unparse(body[0]) in ("pass", "return", "return None")


def _nothing(node: sources.Function) -> list[ast.stmt]:
    """An empty body; one that had a yield stays a generator, of nothing."""
    if _yields(node):
        return [ast.Return(), ast.Expr(ast.Yield())]
    return [ast.Pass()]


def _yields(node: ast.AST) -> bool:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(child, sources.Function | ast.ClassDef | ast.Lambda) and _yields(child):
            return True
    return False


def _constants(node: sources.Function) -> list[str]:
    if node.returns is None or _yields(node):
        return []
    name = ast.unparse(node.returns).strip("'\"").partition("[")[0]
    options = CONSTANTS.get(name.strip(), [])
    returned = [ast.unparse(part) for part in sources.body(node)]
    return [constant for constant in options if returned != [f"return {constant}"]]


def _filler(node: sources.Function, body: list[ast.stmt]) -> Change:
    kept = node.body[:1] if sources.is_text(node.body[0]) else []
    return Change(node, "body", [*kept, *body])


# Conditions

Kind = Literal["compare", "bool", "not", "condition"]


def _conditions(owner: ast.AST, name: str, parts: list[ast.AST]) -> Iterator[Point]:
    """Each comparison, and/or, not, True/False and bare condition in the parts."""
    counts: dict[Kind, int] = {}
    for part in parts:
        for node, kind, change, what in _flips(part):
            counts[kind] = counts.get(kind, 0) + 1
            yield Point(f"{name}/{kind}-{counts[kind]}", node, change, what)


Flip = tuple[ast.AST, Kind, Change, str]


def _flips(node: ast.AST) -> Iterator[Flip]:
    match node:
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                other = FLIPPED[type(op)]
                changed = [*ops[:index], other(), *ops[index + 1 :]]
                what = f"{ast.unparse(node)} with {_operator(other)}"
                yield node, "compare", Change(node, "ops", changed), what
        case ast.BoolOp():
            other, word = (ast.Or(), "or") if isinstance(node.op, ast.And) else (ast.And(), "and")
            yield node, "bool", Change(node, "op", other), f"{ast.unparse(node)} with {word}"
        case ast.UnaryOp(op=ast.Not()):
            # not x becomes not not x: the same truth as x, and a bool as before
            yield node, "not", Change(node, "operand", _not(node.operand)), "without not"
        case ast.Constant(value=bool()):
            yield node, "bool", Change(node, "value", not node.value), f"not {node.value}"
        case _:
            yield from _bare_conditions(node)
    for child in _children(node):
        yield from _flips(child)


def _bare_conditions(node: ast.AST) -> Iterator[Flip]:
    """Conditions that are no comparison, and/or or not: `if items`."""
    match node:
        case ast.If() | ast.While() | ast.IfExp() if _is_bare(node.test):
            yield node, "condition", Change(node, "test", _not(node.test)), _if_not(node.test)
        case ast.match_case(guard=ast.expr() as guard) if _is_bare(guard):
            yield guard, "condition", Change(node, "guard", _not(guard)), _if_not(guard)
        case ast.comprehension(ifs=ifs):
            for index, test in enumerate(ifs):
                if _is_bare(test):
                    changed = [*ifs[:index], _not(test), *ifs[index + 1 :]]
                    yield test, "condition", Change(node, "ifs", changed), _if_not(test)
        case _:
            return


def _if_not(test: ast.expr) -> str:
    return f"if not {ast.unparse(test)}"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What runs below a node: annotations do not, and some keywords no test should see."""
    skipped = [getattr(node, field, None) for field in ("annotation", "returns", "type_params")]
    for child in ast.iter_child_nodes(node):
        if any(child is part for part in skipped):
            continue
        if isinstance(child, ast.keyword) and child.arg in UNTESTED_KEYWORDS:
            continue
        if isinstance(child, ast.arg):
            continue
        yield child


def _is_bare(test: ast.expr) -> bool:
    """A condition that no other operator flips; `if TYPE_CHECKING` and `while True` are none."""
    if isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
        return False
    return not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING")


def _operator(op: type[ast.cmpop]) -> str:
    return ast.unparse(ast.Compare(ast.Name("a"), [op()], [ast.Name("b")]))[2:-2]


def _not(node: ast.expr) -> ast.UnaryOp:
    return ast.UnaryOp(ast.Not(), node)
