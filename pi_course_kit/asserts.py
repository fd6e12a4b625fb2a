"""The course's tests as they are loaded for a check: `==` in an assert is asked of both sides.

In `assert actual == expected` the learner's value may answer for itself, and one that says yes to
everything would pass. Here a text, a number or a container that the test expects is compared by
its own rules, down to the elements. pytest rewrites the asserts as ever; the comparison it makes
is then put through `same`.
"""

from __future__ import annotations

import ast
import importlib.util
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

import pytest

VERSION = b"1"  # of what is kept in __pycache__: raise it with any change to the tree
NAME = "@same"
PLAIN = (str, bytes, int, float, complex, bool, type(None))
DEEP = 50  # no test expects more levels


def same(left: object, right: object) -> object:
    """`left == right`, and False when only the left one's word stands for it."""
    equal: Any = left == right
    return equal and _plainly(left, right, 0) if equal is True else equal


def _plainly(left: Any, right: Any, depth: int) -> bool:
    """Whether two values that are said to be equal are so by the right one's rules."""
    kind = cast(Any, type(right))
    if kind in PLAIN:
        return type(left) in PLAIN or kind.__eq__(right, left) is True
    if depth > DEEP:
        return True
    if kind is list or kind is tuple:
        rules: Any = kind
        if not isinstance(left, kind) or rules.__len__(left) != len(right):
            return False
        pairs = zip(rules.__iter__(left), right, strict=True)
        return all(_plainly(mine, theirs, depth + 1) for mine, theirs in pairs)
    if kind is dict:
        table = _table(left)
        return len(table) == len(right) and all(
            _plainly(table.get(key), value, depth + 1) for key, value in right.items()
        )
    return True  # it has rules of its own: an event, a set, a class of the learner's


def _table(value: Any) -> dict[Any, Any]:
    """What a mapping holds, whatever a class of dicts says about itself."""
    if isinstance(value, dict):
        return cast(Any, dict).copy(value)
    return {**cast(Mapping[Any, Any], value)} if isinstance(value, Mapping) else {}


class TestFinder(MetaPathFinder):
    """Finds the test files of a run for pytest, in front of pytest's own hook."""

    __test__ = False

    def __init__(self, tests: Sequence[Path], config: pytest.Config) -> None:
        self._tests = {path.stem: path for path in tests}
        self._config = config

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._tests.get(fullname.rpartition(".")[2])
        if file is None or not path or file.parent not in map(Path, path):
            return None
        loader = _Loader(fullname, str(file), self._config)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, config: pytest.Config) -> None:
        super().__init__(fullname, path)
        self._config = config

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, NAME, same)
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        kept = Path(importlib.util.cache_from_source(self.path))
        kept = kept.with_suffix(f".pi-course-{pytest.__version__}.pyc")
        head = importlib.util.MAGIC_NUMBER + VERSION + importlib.util.source_hash(source)
        head += os.fsencode(self.path) + b"\n"
        try:
            data = kept.read_bytes()
            if data.startswith(head):
                return marshal.loads(data[len(head) :])
        except (OSError, ValueError, EOFError, TypeError):
            pass
        code = compile(self._tree(source), self.path, "exec", dont_inherit=True)
        if not sys.dont_write_bytecode:
            self._keep(kept, head + marshal.dumps(code))
        return code

    def _tree(self, source: bytes) -> ast.Module:
        from _pytest.assertion.rewrite import rewrite_asserts

        tree = ast.parse(source, self.path)
        rewrite_asserts(tree, source, self.path, self._config)
        return _Same().visit(tree)

    def _keep(self, path: Path, data: bytes) -> None:
        made = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(exist_ok=True)
            made.write_bytes(data)
            made.replace(path)
        except OSError:
            pass  # a read-only course: it is compiled each time


class _Same(ast.NodeTransformer):
    """`@py_assert2 = left == right`, as pytest writes it, becomes a call of `same`."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) as compared,
            ) if name.startswith("@py_assert"):
                function = ast.copy_location(ast.Name(NAME, ast.Load()), compared)
                call = ast.Call(function, [left, right], [])
                node.value = ast.copy_location(call, compared)
            case _:
                pass
        return node
