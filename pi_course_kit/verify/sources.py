"""Python source as the rules see it: imports, bodies, names, and what reaches what."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


def tree(folder: Path) -> dict[str, Path]:
    """Every file below a folder by its path there, caches left out."""
    return {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


@lru_cache(maxsize=2048)
def parsed(text: str) -> ast.Module | None:
    """The tree of a text, None when it is not Python. Nobody may change it: it is shared."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def imports(text: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, module and name of each import of pi_course, at any depth.

    Example:
        >>> list(imports("from pi_course.loop import run\\n"))
        [(1, 'pi_course.loop', 'run')]
    """
    module = parsed(text)
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "pi_course":
                    yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module.split(".")[0] == "pi_course":
                for alias in node.names:
                    yield node.lineno, node.module, alias.name


def module_path(module: str, files: Mapping[str, Path]) -> str | None:
    """The file of a dotted module among `files`.

    Example:
        >>> module_path("pi_course.loop", {"pi_course/loop.py": Path("loop.py")})
        'pi_course/loop.py'
    """
    stem = module.replace(".", "/")
    for path in (f"{stem}.py", f"{stem}/__init__.py"):
        if path in files:
            return path
    return None


def module_name(path: str) -> str:
    """The dotted module of a file: "pi_course/tools/__init__.py" is "pi_course.tools"."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def reached(text: str, files: Mapping[str, Path]) -> frozenset[str]:
    """The files of the package that running this text may import, one through the other."""
    found: set[str] = set()
    todo = [text]
    while todo:
        for path in _direct(todo.pop(), files):
            if path not in found:
                found.add(path)
                todo.append(read(files[path]))
    return frozenset(found)


def _direct(text: str, files: Mapping[str, Path]) -> Iterator[str]:
    for _, module, name in imports(text):
        parts = module.split(".")
        candidates = [".".join(parts[: i + 1]) for i in range(len(parts))]
        if name is not None:
            candidates.append(f"{module}.{name}")
        for candidate in candidates:
            if path := module_path(candidate, files):
                yield path


def with_helpers(text: str, name: str) -> str:
    """A top-level function of a text with the functions and classes of the text that it uses."""
    module = parsed(text)
    there = {
        node.name: node
        for node in (module.body if module else ())
        if isinstance(node, Function | ast.ClassDef)
    }
    found: dict[str, str] = {}
    todo = [name]
    while todo:
        node = there.get(todo.pop())
        if node is not None and node.name not in found:
            found[node.name] = ast.unparse(node)
            todo += [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
    return "\n\n".join(found.values())


def digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function by its dotted name: "EventStream.push", "outer.inner"."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if isinstance(child, Function):
                yield name, child
            yield from functions(child, f"{name}.")
        else:
            yield from functions(child, prefix)


def is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def body(function: Function) -> list[ast.stmt]:
    """The statements of a function without its docstring; [] when it has only `...`."""
    rest = function.body[1:] if is_text(function.body[0]) else function.body
    if all(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and node.value.value is ...
        for node in rest
    ):
        return []
    return rest


def public_names(text: str) -> Iterator[str]:
    """Top-level names that a module defines and does not mark as its own."""
    module = parsed(text)
    for node in module.body if module else ():
        for name in defined(node):
            if not name.startswith("_"):
                yield name


def defined(node: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement defines, imports aside."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.If() | ast.Try():
            for child in [*node.body, *node.orelse]:
                yield from defined(child)
        case _:
            return


def defined_names(text: str) -> Iterator[str]:
    """Every top-level name that can be imported from a module, what it imports included."""
    module = parsed(text)
    for node in module.body if module else ():
        yield from defined(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0]
