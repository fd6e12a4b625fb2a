"""The course's tests as they are loaded for a check: what an assert asks, and whether it was asked.

In `assert actual == expected` the learner's value may answer for itself, and one that says yes to
everything would pass. Here a text, a number or a container that the test expects is compared by
its own rules, down to the elements, before the learner's value gets to see it. pytest rewrites the
asserts as ever; the comparison it makes is then put through `same`, `differ`, `within` or
`without`.

And each test says when it has come to its end, as does each coroutine in it that asserts. Whatever
was changed so that a test passes without being run, this is missing then.
"""

from __future__ import annotations

import ast
import importlib.util
import marshal
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

import pytest

VERSION = b"2"  # of what is kept in __pycache__: raise it with any change to the tree
PLAIN = (str, bytes, int, float, complex, bool, type(None))
SETS = (set, frozenset)
_EMPTY: dict[str, int] = {}
VIEWS = (type(_EMPTY.keys()), type(_EMPTY.items()))
DEEP = 50  # no test expects more levels

# Under names of their own: learner code may have replaced the built-in ones.
_type, _isinstance, _len, _zip, _any, _all = type, isinstance, len, zip, any, all
_list, _tuple, _dict, _mapping, _cast = list, tuple, dict, Mapping, cast
_frame = sys._getframe  # pyright: ignore[reportPrivateUsage]


def same(left: object, right: object) -> object:
    """`left == right`, and False when only the left one's word stands for it."""
    # First by our rules: the left one's may take over what it is shown.
    if not _plainly(left, right, 0):
        return False
    return left == right


def differ(left: object, right: object) -> object:
    """`left != right`, of values that are not equal as well."""
    differs: Any = left != right
    return differs and not (left == right) if differs is True else differs


def within(left: object, right: object) -> object:
    """`left in right`, by the rules of the built-in text or container that the right one is."""
    found = _found(left, right)
    return left in _cast(Any, right) if found is None else found


def without(left: object, right: object) -> object:
    found = _found(left, right)
    return left not in _cast(Any, right) if found is None else not found


def _found(left: Any, right: Any) -> bool | None:
    """Whether it is in there; None where only the right one can know."""
    kind: Any
    for kind in (str, bytes):
        if _isinstance(right, kind):
            return _isinstance(left, kind) and kind.__contains__(right, left)
    for kind in (_list, _tuple, *SETS, _dict):
        if _isinstance(right, kind):
            if _type(right) is kind and left not in right:
                return False
            return _any(one is left or same(one, left) is True for one in kind.__iter__(right))
    return None


def _plainly(left: Any, right: Any, depth: int) -> bool:
    """Whether two values may be equal by the rules of the right one, who is expected."""
    kind = _cast(Any, _type(right))
    if kind in PLAIN:
        return _type(left) in PLAIN or kind.__eq__(right, left) is True
    if depth > DEEP:
        return True
    if kind is _list or kind is _tuple:
        rules: Any = kind
        if not _isinstance(left, kind) or rules.__len__(left) != _len(right):
            return False
        pairs = _zip(rules.__iter__(left), right, strict=True)
        own = _type(left) is not kind
        return _all(_element(mine, theirs, own, depth + 1) for mine, theirs in pairs)
    if kind is _dict:
        table = _table(left)
        own = _type(left) is not _dict
        return _len(table) == _len(right) and _all(
            key in table and _element(table[key], value, own, depth + 1)
            for key, value in right.items()
        )
    if kind in SETS:
        return _of_sets(left, right, depth)
    return True  # it has rules of its own: an event, a class of the learner's


def _element(left: Any, right: Any, own: bool, depth: int) -> bool:
    """`own` says that they lie in a container whose own word on them counts for nothing."""
    if not _plainly(left, right, depth):
        return False
    return not own or left is right or left == right


def _of_sets(left: Any, right: Any, depth: int) -> bool:
    if not _isinstance(left, SETS):
        return _isinstance(left, VIEWS)
    rules: Any = set if _isinstance(left, set) else frozenset
    if rules.__len__(left) != _len(right):
        return False
    mine: list[Any] = _list(rules.__iter__(left))
    if _type(left) in SETS and _all(_type(one) in PLAIN for one in mine):
        return True  # nothing in it has rules of its own
    return _all(_any(_element(one, other, True, depth + 1) for other in right) for one in mine)


def _table(value: Any) -> dict[Any, Any]:
    """What a mapping holds, whatever a class of dicts says about itself."""
    if _isinstance(value, dict):
        return _cast(Any, _dict).copy(value)
    return {**_cast(Mapping[Any, Any], value)} if _isinstance(value, _mapping) else {}


# The end of a test

ENDS = "@ends"
NOT_RUN = "this test was not run to its end, whatever says that it passed"
_reached: list[tuple[CodeType, tuple[str, ...]]] = []


def _ends(*wanted: str) -> None:
    """Called by a test, or a coroutine in it, as its last step; `wanted` must have ended before."""
    _reached.append((_frame(1).f_code, wanted))


def ended(code: CodeType) -> str:
    """Why a test that passed was not run, or ""; forgets what was run since the last call."""
    found = _reached[:]
    _reached.clear()
    ends = [wanted for reached, wanted in found if reached is code]
    if not ends:
        return NOT_RUN
    inner = _names_of(code)
    there = {reached.co_name for reached, _ in found if reached in inner}
    left = next((name for name in ends[-1] if name not in there), None)
    if left is None:
        return ""
    return f"{left}() of this test was not run to its end, so nothing in it was asked"


def _names_of(code: CodeType) -> set[CodeType]:
    """The code of all functions in a test."""
    found: set[CodeType] = set()
    todo = [code]
    while todo:
        inner = [const for const in todo.pop().co_consts if _isinstance(const, CodeType)]
        found.update(inner)
        todo.extend(inner)
    return found


class TestFinder(MetaPathFinder):
    """Finds the test files of a run for pytest, in front of pytest's own hook."""

    __test__ = False

    def __init__(self, tests: Sequence[Path], config: pytest.Config) -> None:
        self._tests = {path.stem: path for path in tests}
        self._config: pytest.Config | None = config

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._tests.get(fullname.rpartition(".")[2])
        if self._config is None or file is None or not path or file.parent not in map(Path, path):
            return None
        loader = _Loader(fullname, str(file), self)
        return importlib.util.spec_from_file_location(fullname, file, loader=loader)

    def rewritten(self, source: bytes, path: str) -> ast.Module:
        from _pytest.assertion.rewrite import rewrite_asserts

        assert self._config is not None
        tree = _with_ends(ast.parse(source, path))
        rewrite_asserts(tree, source, path, self._config)
        return _Same().visit(tree)

    def forget(self) -> None:
        """All tests are loaded; no way leads from here to pytest any more."""
        sys.meta_path.remove(self)
        self._config = None


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, finder: TestFinder) -> None:
        super().__init__(fullname, path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        for name, function in {**COMPARED, ENDS: _ends}.items():
            setattr(module, name, function)
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
        tree = self._finder.rewritten(source, self.path)
        code = compile(tree, self.path, "exec", dont_inherit=True)
        if not sys.dont_write_bytecode:
            self._keep(kept, head + marshal.dumps(code))
        return code

    def _keep(self, path: Path, data: bytes) -> None:
        made = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(exist_ok=True)
            made.write_bytes(data)
            made.replace(path)
        except OSError:
            pass  # a read-only course: it is compiled each time


COMPARED = {"@same": same, "@differ": differ, "@within": within, "@without": without}
OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "@same",
    ast.NotEq: "@differ",
    ast.In: "@within",
    ast.NotIn: "@without",
}


class _Same(ast.NodeTransformer):
    """`@py_assert2 = left == right`, as pytest writes it, becomes a call of `same`."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Compare(left=left, ops=[operator], comparators=[right]) as compared,
            ) if name.startswith("@py_assert") and _type(operator) in OPERATORS:
                asked = ast.Name(OPERATORS[_type(operator)], ast.Load())
                call = ast.Call(ast.copy_location(asked, compared), [left, right], [])
                node.value = ast.copy_location(call, compared)
            case _:
                pass
        return node


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _with_ends(tree: ast.Module) -> ast.Module:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            inner = [each for each in ast.walk(node) if isinstance(each, ast.AsyncFunctionDef)]
            asserting = [each for each in inner if any(_own(each, ast.Assert))]
            for each in asserting:
                _mark(each, [])
            _mark(node, [each.name for each in asserting])
    return tree


def _mark(function: Function, wanted: list[str]) -> None:
    """Have a function call `_ends` before each of its returns and after its last statement."""
    _Returns(function, wanted).generic_visit(function)
    function.body.append(_call(function.body[-1], wanted))


def _call(place: ast.stmt, wanted: list[str]) -> ast.stmt:
    arguments: list[ast.expr] = [ast.Constant(name) for name in wanted]
    call = ast.Expr(ast.Call(ast.Name(ENDS, ast.Load()), arguments, []))
    return ast.fix_missing_locations(ast.copy_location(call, place))


class _Returns(ast.NodeTransformer):
    def __init__(self, function: Function, wanted: list[str]) -> None:
        self._function = function
        self._wanted = wanted

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return node
        if isinstance(node, ast.Return):
            return [_call(node, self._wanted), node]
        return super().visit(node)


def _own(function: Function, kind: type[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function that are not those of a function in it."""
    todo: list[ast.AST] = [*function.body]
    while todo:
        node = todo.pop()
        if isinstance(node, kind):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
