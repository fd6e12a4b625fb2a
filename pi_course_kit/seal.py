"""Notices when learner code has changed pytest, the built-in names or the tests themselves."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

WATCHED = (
    "builtins",
    "pytest",
    "_pytest.assertion.rewrite",
    "_pytest.assertion.util",
    "_pytest.nodes",
    "_pytest.outcomes",
    "_pytest.python",
    "_pytest.raises",
    "_pytest.reports",
    "_pytest.runner",
)

# Under names of our own: learner code may have replaced the built-in ones.
_isinstance, _callable = isinstance, callable


class Seal:
    """Keeps the identity of each function and class, and of each function's code."""

    def __init__(self, tests: Iterable[ModuleType]) -> None:
        watched = [
            module
            for name, module in list(sys.modules.items())
            if name in WATCHED or name.startswith("pluggy.")
        ]
        self._modules = (*watched, *tests)
        self._kept = dict(self._parts())
        self._builtins = dict(vars(builtins))

    def broken(self) -> list[str]:
        """The names that are no longer what they were."""
        now = dict(self._parts())
        return [name for name, part in self._kept.items() if now.get(name) is not part]

    def mend(self) -> None:
        """Put the built-in names back, so that the report can be written."""
        for name, value in self._builtins.items():
            setattr(builtins, name, value)

    def _parts(self) -> Iterator[tuple[str, object]]:
        for module in self._modules:
            for name, value in list(vars(module).items()):
                yield from _parts(f"{module.__name__}.{name}", value)
                if _isinstance(value, type) and value.__module__ == module.__name__:
                    for key, member in list(vars(value).items()):
                        yield from _parts(f"{module.__name__}.{name}.{key}", member)


def _parts(name: str, value: Any) -> Iterator[tuple[str, object]]:
    if _callable(value):
        yield name, value
    if _isinstance(value, FunctionType):
        yield f"{name}()", value.__code__
