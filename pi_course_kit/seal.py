"""Notices when learner code has changed pytest, the built-in names or the tests themselves."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

WATCHED = (
    "builtins",
    "pytest",
    # A run() that runs nothing would pass every assert inside a coroutine.
    "asyncio",
    "asyncio.runners",
    "asyncio.tasks",
    "_pytest.assertion.rewrite",
    "_pytest.assertion.util",
    "_pytest.nodes",
    "_pytest.outcomes",
    "_pytest.python",
    "_pytest.raises",
    "_pytest.reports",
    "_pytest.runner",
)

# Under a name of its own: learner code may have replaced the built-in one.
_isinstance = isinstance


class _Part(NamedTuple):
    label: str
    home: Mapping[str, Any]
    name: str
    value: Any
    code: CodeType | None


class Seal:
    """Keeps the identity of each function and class, and of each function's code."""

    def __init__(self, tests: Iterable[ModuleType]) -> None:
        watched = [
            module
            for name, module in list(sys.modules.items())
            if name in WATCHED or name.startswith("pluggy.")
        ]
        self._kept = [part for module in (*watched, *tests) for part in _parts(module)]
        self._builtins = dict(vars(builtins))

    def broken(self) -> list[str]:
        """The names that are no longer what they were."""
        return [
            label
            for label, home, name, value, code in self._kept
            if home.get(name) is not value or (code is not None and value.__code__ is not code)
        ]

    def mend(self) -> None:
        """Put the built-in names back, so that the report can be written."""
        for name, value in self._builtins.items():
            setattr(builtins, name, value)


def _parts(module: ModuleType) -> Iterator[_Part]:
    for name, value in vars(module).items():
        label = f"{module.__name__}.{name}"
        if callable(value):
            yield _part(label, vars(module), name, value)
        if _isinstance(value, type) and value.__module__ == module.__name__:
            for key, member in vars(value).items():
                if callable(member):
                    yield _part(f"{label}.{key}", vars(value), key, member)


def _part(label: str, home: Mapping[str, Any], name: str, value: Any) -> _Part:
    code = value.__code__ if _isinstance(value, FunctionType) else None
    return _Part(label, home, name, value, code)


def equal_to_everything(package: str) -> list[str]:
    """Classes defined below `package` whose instances pass every `assert actual == expected`."""
    found: list[str] = []
    todo: list[type[Any]] = [object]
    while todo:
        for cls in type.__subclasses__(todo.pop()):
            todo.append(cls)
            equal = vars(cls).get("__eq__")
            if cls.__module__.startswith(package) and _isinstance(equal, FunctionType):
                try:
                    make: Any = cls.__new__
                    if equal(make(cls), _Other()) is True:
                        found.append(cls.__qualname__)
                except Exception:  # it looks at attributes, so it does compare something
                    continue
    return found


class _Other:
    """Something that no learner's class has heard of."""
