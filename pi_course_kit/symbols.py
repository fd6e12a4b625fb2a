"""Source text by top-level name: what is there, what is missing, and cutting bodies out.

Starters and hint levels 2 and 4 come from the target through this module, so they can't go
stale. An owner is a lab: `owners` maps "text_of" or "EventStream.push" to a lab's id. A method
without an owner of its own belongs to its class's lab.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pi_course_kit.checkpoint import Checkpoint

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Statement:
    """One definition of a module or class body with its decorators and the comments above it.

    It has several nodes where they are one thing: the overloads of a function and the function, a
    property and its setter. `start` and `end` are line indexes, the end excluded; `gap` counts the
    blank lines before.
    """

    nodes: tuple[ast.stmt, ...]
    names: tuple[str, ...]
    start: int
    end: int
    gap: int

    @property
    def node(self) -> ast.stmt:
        """The last node: of overloads the function itself."""
        return self.nodes[-1]

    def is_stub(self) -> bool:
        return any(map(is_stub, self.nodes))


def statements(body: list[ast.stmt], lines: list[str]) -> list[Statement]:
    found: list[Statement] = []
    floor = 0
    for node in body:
        start = min([node.lineno] + [line.lineno for line in getattr(node, "decorator_list", [])])
        start -= 1
        while start > floor and lines[start - 1].lstrip().startswith("#"):
            start -= 1
        gap = 0
        while start - gap > floor and not lines[start - gap - 1].strip():
            gap += 1
        end = node.end_lineno or node.lineno
        last = found[-1] if found else None
        if last and is_text(node) and not is_text(last.node):
            # A string below an assignment documents it: the two stay together.
            found[-1] = replace(last, end=end)
        elif last and _is_more_of(last.node, node):
            found[-1] = replace(last, nodes=(*last.nodes, node), end=end)
        else:
            found.append(Statement((node,), names_of(node), start, end, gap))
        floor = end
    return found


def _is_more_of(before: ast.stmt, node: ast.stmt) -> bool:
    """Whether a function goes on with the one before it, as behind an overload or in a setter."""
    return isinstance(before, Function) and isinstance(node, Function) and before.name == node.name


def is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def names_of(node: ast.stmt) -> tuple[str, ...]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return (node.name,)
        case ast.Assign():
            return tuple(
                name.id
                for target in node.targets
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            )
        case ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
        case _:
            return ()


def names(source: str) -> tuple[str, ...]:
    """Every name that the source defines, once: "text_of", "EventStream", "EventStream.push".

    Example:
        >>> names("A = 1\\nclass B:\\n    def c(self): ...\\n")
        ('A', 'B', 'B.c')
    """
    found: list[str] = []
    for node in ast.parse(source).body:
        found.extend(names_of(node))
        if isinstance(node, ast.ClassDef):
            found.extend(f"{node.name}.{name}" for child in node.body for name in names_of(child))
    return tuple(dict.fromkeys(found))


def owners(chapter: Checkpoint, file: str) -> dict[str, str]:
    """name -> lab id, for the symbols of one teaching file."""
    return {
        symbol.removeprefix(f"{file}:"): lab.id
        for lab in chapter.labs
        for symbol in lab.symbols
        if symbol.startswith(f"{file}:")
    }


def given(chapter: Checkpoint, file: str) -> frozenset[str]:
    prefix = f"{file}:"
    return frozenset(g.removeprefix(prefix) for g in chapter.given if g.startswith(prefix))


def missing(chapter: Checkpoint, folder: Path) -> tuple[str, ...]:
    """What a practice folder lacks of the chapter, a sentence each, in the order of the labs."""
    found: list[str] = []
    for file in chapter.files:
        path = folder / file
        if not path.is_file():
            found.append(f"{file} is missing")
            continue
        try:
            source = path.read_text(encoding="utf-8")
            there = set(names(source))
            stubs = _stubs(source)
        except (SyntaxError, ValueError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            reason = error.msg if isinstance(error, SyntaxError) else error
            found.append(f"{file}{line} is not valid Python: {reason}")
            continue
        owned = owners(chapter, file)
        found.extend(f"{file} has no {name}" for name in owned if name not in there)
        start = chapter.folder / "parent" / file
        if len(stubs) > 1 and start.is_file() and start.read_bytes() == path.read_bytes():
            found.append(f"{file} is still the starter")
        else:
            found.extend(f"{file}: {name}() is still the starter" for name in stubs)
    return tuple(found)


def _owner(name: str, owners: Mapping[str, str]) -> str | None:
    return owners.get(name) or owners.get(name.split(".")[0])


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, Function):
                    yield f"{node.name}.{child.name}", child


def _stubs(source: str) -> list[str]:
    return [name for name, node in _functions(ast.parse(source)) if is_stub(node)]


def is_stub(node: ast.stmt) -> bool:
    """A body that raises NotImplementedError somewhere, or a class that holds such a method."""
    return any(
        isinstance(child, ast.Raise)
        and child.exc is not None
        and any(
            isinstance(name, ast.Name) and name.id == "NotImplementedError"
            for name in ast.walk(child.exc)
        )
        for child in ast.walk(node)
    )


def starter(target: str, owners: Mapping[str, str]) -> str:
    """The target with the body of every owned function cut down to NotImplementedError."""
    return cut_bodies(target, owners, keep=frozenset())


def cut_bodies(source: str, owners: Mapping[str, str], keep: frozenset[str]) -> str:
    """Cut each function whose lab is not in `keep`."""
    lines = source.split("\n")
    for name, node in reversed(list(_functions(ast.parse(source)))):
        lab = _owner(name, owners)
        if lab is not None and lab not in keep:
            _cut(lines, name, node, lab)
    return "\n".join(lines)


def _cut(lines: list[str], name: str, node: Function, lab: str) -> None:
    body = node.body[1:] if is_text(node.body[0]) else node.body
    if not body or _is_ellipsis(body[0]):
        return
    first = node.body[0]
    start = first.end_lineno if is_text(first) else first.lineno - 1
    assert start is not None
    if start < node.lineno:  # the body stands on the line of the def
        return
    while not is_text(first) and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    indent = " " * first.col_offset
    lines[start : node.end_lineno] = [f'{indent}raise NotImplementedError("Lab {lab}: {name}()")']


def _is_ellipsis(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and node.value.value is ...
    )


def signatures(target: str, owners: Mapping[str, str], lab: str) -> str:
    """The lab's own definitions out of the target, bodies cut, as one text."""
    source = starter(target, owners)
    lines = source.split("\n")
    return "\n\n\n".join(
        "\n".join(lines[statement.start : statement.end])
        for statement in statements(ast.parse(source).body, lines)
        if any(belongs(name, owners, lab) for name in statement.names)
    )


def outline(target: str, owners: Mapping[str, str]) -> list[str]:
    """A line of Markdown for each owned definition: its name, fields or parameters.

    Example:
        >>> outline("def f(a: int, *, b: str = '') -> bool:\\n    return True\\n", {"f": "1.1"})
        ["`f(a: int, *, b: str='') -> bool` (lab 1.1)"]
    """
    lines: list[str] = []
    for node in ast.parse(target).body:
        for name in names_of(node):
            lab = owners.get(name) or next(
                (lab for symbol, lab in owners.items() if symbol.startswith(f"{name}.")), None
            )
            if lab is not None:
                lines.append(f"`{_outline(node)}` (lab {lab})")
    return lines


def _outline(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
                return f"{node.name}{returns.replace(' ->', ':')} (read-only property)"
            start = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
            return f"{start}{node.name}({_parameters(node.args)}){returns}"
        case ast.ClassDef():
            fields = [
                f"{ast.unparse(child.target)}: {ast.unparse(child.annotation)}"
                for child in node.body
                if isinstance(child, ast.AnnAssign)
            ]
            methods = [
                _outline(child)
                for child in node.body
                if isinstance(child, Function) and _is_public(child.name)
            ]
            bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
            inside = "; ".join(fields + methods)
            return f"class {node.name}{bases}" + (f": {inside}" if inside else "")
        case _:
            return ast.unparse(node)


def _is_public(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name != "__post_init__" if dunder else not name.startswith("_")


def _parameters(arguments: ast.arguments) -> str:
    """The parameters as written, less what names something private: `result=…`."""
    return re.sub(r"(\w+): [^,]*\b_\w+[^,=]*=\s*_\w+", r"\1=…", ast.unparse(arguments))


def belongs(name: str, owners: Mapping[str, str], lab: str) -> bool:
    return owners.get(name) == lab or any(
        owner == lab and symbol.startswith(f"{name}.") for symbol, owner in owners.items()
    )
