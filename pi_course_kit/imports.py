"""The import block at the top of a module: merged, sorted and grouped as the formatter does it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable

from pi_course_kit.symbols import is_text

Import = ast.Import | ast.ImportFrom
WIDTH = 100


def needed(target: ast.Module, used: set[str], bound: set[str]) -> list[Import]:
    """The imports of the target, cut down to names that are used and not bound already."""
    found: list[Import] = []
    for node in target.body:
        if not isinstance(node, Import):
            continue
        names = [
            alias
            for alias in node.names
            if (_is_future(node) or _bound(alias) in used) and _bound(alias) not in bound
        ]
        if not names:
            continue
        if isinstance(node, ast.Import):
            found.append(ast.Import(names=names))
        else:
            found.append(ast.ImportFrom(node.module, names, node.level))
    return found


def bound_names(tree: ast.Module) -> set[str]:
    imports = [node for node in ast.walk(tree) if isinstance(node, Import)]
    return {_bound(alias) for node in imports for alias in node.names}


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def merge(source: str, new: Iterable[Import]) -> str:
    """The source with `new` in its first import block; a block with comments is only added to."""
    new = list(new)
    if not new:
        return source
    body = ast.parse(source).body
    lines = source.split("\n")
    start = 1 if body and is_text(body[0]) else 0
    block: list[Import] = []
    for node in body[start:]:
        if not isinstance(node, Import):
            break
        block.append(node)
    if block:
        first, last = block[0].lineno - 1, block[-1].end_lineno or block[-1].lineno
    else:
        first = last = (body[0].end_lineno or 1) if start else 0
    if any("#" in line for line in lines[first:last]):
        future = [node for node in new if _is_future(node)]
        rest = [node for node in new if not _is_future(node)]
        lines[last:last] = _spaced(_render(rest), above=True)
        lines[first:first] = _spaced(_render(future), above=False)
        return "\n".join(lines)
    above = [""] if not block and first else []
    below = lines[last:]
    while below and not below[0].strip():
        below.pop(0)
    gap = ["", ""] if below and below[0].startswith(("def ", "class ", "@", "async ")) else [""]
    return "\n".join([*lines[:first], *above, *_render([*block, *new]), *gap, *below])


def _is_future(node: Import) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _spaced(made: list[str], *, above: bool) -> list[str]:
    if not made:
        return []
    return ["", *made] if above else [*made, ""]


def _render(nodes: list[Import]) -> list[str]:
    plain: set[tuple[str, str | None]] = set()
    members: dict[str, set[tuple[str, str | None]]] = {}
    for node in nodes:
        for alias in node.names:
            if isinstance(node, ast.Import):
                plain.add((alias.name, alias.asname))
            else:
                module = "." * node.level + (node.module or "")
                members.setdefault(module, set()).add((alias.name, alias.asname))
    groups: dict[int, list[str]] = {}
    for name, asname in sorted(plain, key=lambda item: item[0]):
        groups.setdefault(_group(name), []).append(f"import {_alias(name, asname)}")
    for module in sorted(members):
        groups.setdefault(_group(module), []).extend(_from(module, members[module]))
    made: list[str] = []
    for group in sorted(groups):
        made += ([""] if made else []) + groups[group]
    return made


def _group(module: str) -> int:
    root = module.split(".")[0]
    if root == "__future__":
        return 0
    if root in sys.stdlib_module_names:
        return 1
    return 3 if root in ("", "pi_course") else 2


def _from(module: str, names: set[tuple[str, str | None]]) -> list[str]:
    parts = [_alias(name, asname) for name, asname in sorted(names, key=_rank)]
    line = f"from {module} import {', '.join(parts)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {part}," for part in parts), ")"]


def _alias(name: str, asname: str | None) -> str:
    return f"{name} as {asname}" if asname else name


def _rank(item: tuple[str, str | None]) -> tuple[int, str]:
    """Constants, then classes, then the rest."""
    name = item[0]
    if name.isupper() and len(name) > 1:
        return 0, name
    return (1 if name[:1].isupper() else 2), name
