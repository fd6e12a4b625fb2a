"""Notices when learner code has changed pytest, Python or the tests themselves.

What is compared is the identity of functions, classes and modules. It happens after every test,
before the outcome of that test is made up, so it is done in C and in bulk, without id(), which is
audited. The code of a function can't be swapped at all: the audit refuses that.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import is_, itemgetter
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

# A run() that runs nothing would pass every assert inside a coroutine; a dumps() that changes
# what it is given would write other records.
KIT = "pi_course_kit"
WATCHED = ("builtins", "pytest", "_pytest", "pluggy", "asyncio", "json", KIT)
# Python makes them when they are first asked for.
LAZY = ("__annotate", "__annotations", "__warningregistry__")

# Under names of their own: learner code may have replaced the built-in ones.
_isinstance, _all, _len, _repr = isinstance, all, len, repr
_map: Callable[..., Iterator[bool]] = map
_chain: Callable[[Iterable[Iterable[Any]]], Iterator[Any]] = chain.from_iterable
_gettrace, _getprofile = sys.gettrace, sys.getprofile


class _Part(NamedTuple):
    """The names of one module or class, and what stands under each."""

    label: str
    home: Mapping[str, Any]
    names: tuple[str, ...]
    take: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    kept: tuple[Any, ...]

    def changed(self) -> Iterator[str]:
        for name, value in zip(self.names, self.kept, strict=True):
            if self.home.get(name) is not value:
                yield f"{self.label}.{name}"


class Seal:
    """`tests` are the modules of the tests; of them every name counts, and each new one."""

    __slots__ = (
        "_builtins",
        "_constants",
        "_hooks",
        "_kept",
        "_parts",
        "_takes",
        "_tests",
        "_trace",
    )

    def __init__(self, tests: Iterable[ModuleType], hooks: Iterable[Any] = ()) -> None:
        tests = list(tests)
        watched = {id(module): module for module in _modules(tests)}
        table = [
            name
            for name, module in sys.modules.items()
            if id(module) in watched and not name.startswith(KIT)  # the audit takes those out
        ]
        self._parts = [_part("sys.modules", sys.modules, table)]
        for module in watched.values():
            self._parts.extend(_parts(module, whole=module in tests))
        self._tests = [(vars(module), frozenset(vars(module))) for module in tests]
        self._takes = [(part.take, part.home) for part in self._parts]
        self._kept = [value for part in self._parts for value in part.kept]
        self._constants = [(vars(module), _constants(module)) for module in tests]
        self._hooks = [(hook, _plugins(hook)) for hook in hooks]
        self._builtins = dict(vars(builtins))
        self._trace = _gettrace(), _getprofile()

    def broken(self) -> list[str]:
        """The names that are no longer what they were; cheap enough for after each test."""
        found: list[str] = []
        try:
            now: list[tuple[Any, ...]] = [take(home) for take, home in self._takes]
            whole = _all(_map(is_, _chain(now), self._kept))
        except KeyError:
            whole = False
        if not whole:
            found.extend(name for part in self._parts for name in part.changed())
        for home, names in self._tests:
            if _len(home) != _len(names):
                found.extend(
                    f"{home.get('__name__')}.{name}"
                    for name in home
                    if name not in names and not name.startswith(LAZY)
                )
        found.extend(
            "the plugins of pytest" for hook, kept in self._hooks if _plugins(hook) != kept
        )
        if _is_changed(_policy()):
            found.append("asyncio's event loop policy")
        if (_gettrace(), _getprofile()) != self._trace:
            found.append("sys.settrace")
        return found

    def emptied(self) -> list[str]:
        """Constants of the tests that no longer read as they did; for the end of a run."""
        return [
            f"{home['__name__']}.{name}"
            for home, values in self._constants
            for name, text in values.items()
            if _repr(home.get(name)) != text
        ]

    def mend(self) -> None:
        """Put the built-in names back, so that the report can be written."""
        for name, value in self._builtins.items():
            setattr(builtins, name, value)


def _modules(tests: Sequence[ModuleType]) -> list[ModuleType]:
    """Those in WATCHED, and what the tests use: a module, or the home of a function or class."""
    named = [module for name, module in sys.modules.items() if name.partition(".")[0] in WATCHED]
    for value in (value for module in tests for value in vars(module).values()):
        home = value if _isinstance(value, ModuleType) else None
        if home is None and callable(value):
            home = sys.modules.get(getattr(value, "__module__", None) or "")
        if home is not None and home is not sys:
            named.append(home)
    return [*named, *tests]


def _parts(module: ModuleType, *, whole: bool) -> Iterator[_Part]:
    home, label = vars(module), module.__name__
    # Libraries change private names of each other: typing_extensions those of typing.
    private = label.partition(".")[0] in WATCHED
    names = [
        name
        for name, value in home.items()
        if whole or (_counts(name, value) and (private or not name.startswith("_")))
    ]
    if names:
        yield _part(label, home, names)
    for name, value in list(home.items()):
        if _isinstance(value, type) and value.__module__ == label and value.__flags__ & HEAP:
            members = [key for key, member in vars(value).items() if _counts(key, member)]
            if members:
                yield _part(f"{label}.{name}", vars(value), members)


HEAP = 1 << 9  # a class made in Python; the others can't be changed


def _counts(name: str, value: object) -> bool:
    if name.startswith(LAZY):
        return False
    return callable(value) or _isinstance(value, (ModuleType, property, classmethod, staticmethod))


def _part(label: str, home: Mapping[str, Any], names: list[str]) -> _Part:
    # itemgetter of one name gives no tuple.
    take: Callable[[Mapping[str, Any]], tuple[Any, ...]] = itemgetter(*names, names[0])
    return _Part(label, home, (*names, names[0]), take, take(home))


def _constants(module: ModuleType) -> dict[str, str]:
    """What tests are measured by: their own lists and tables could be emptied in place."""
    return {
        name: repr(value)
        for name, value in vars(module).items()
        if type(value) in (list, dict, set) and not name.startswith("__")
    }


def _plugins(hook: Any) -> list[object]:
    return hook.get_hookimpls()


def _policy() -> object:
    """What makes the event loops; asyncio makes it when it is first asked for."""
    return vars(sys.modules.get("asyncio.events", sys)).get("_event_loop_policy")


def _is_changed(policy: object) -> bool:
    if policy is None:
        return False
    own = type(policy).__module__.partition(".")[0] != "asyncio"
    return own or any(map(callable, vars(policy).values()))


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
