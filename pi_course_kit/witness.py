"""Runs the collected tests once, in the process that learner code may ruin, and writes it down.

The records are lines of JSON, each written at once: whatever happens next, what was said stays.
Only a file that ends in an "end" record, with the canary failed, can be green.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

import pytest

from pi_course_kit.asserts import NOT_RUN, ended
from pi_course_kit.explain import Explainer, function_of, show, show_pair
from pi_course_kit.limits import Alarm, ForkCount, Limits, Memory, TimeIsUp
from pi_course_kit.records import Write
from pi_course_kit.seal import Seal, equal_to_everything

CANARY = "canary.py"
# Where pytest asks its plugins what happens in a test.
HOOKS = (
    "runtest_protocol runtest_setup runtest_call runtest_teardown pyfunc_call runtest_makereport "
    "runtest_logreport"
).split()


class Witness:
    """The pytest plugin that puts limits around each test and explains its outcome.

    It is made and registered before the fork, and told what to witness after it.
    """

    # No method can be covered by an attribute of the same name.
    __slots__ = (
        "__weakref__",
        "_alarm",
        "_changed",
        "_codes",
        "_compared",
        "_explainer",
        "_facts",
        "_forks",
        "_limits",
        "_memory",
        "_objects",
        "_phases",
        "_seal",
        "_seconds",
        "_trees",
    )

    def __init__(self, forks: ForkCount) -> None:
        self._forks = forks
        self._alarm = Alarm(self._place)
        self._trees: dict[str, ast.AST] = {}
        self._compared: tuple[str, ...] = ()
        self._phases: list[tuple[str, str]] = []
        self._facts: dict[str, Any] = {}
        self._seal = Seal(())
        self._changed: list[str] = []
        self._objects: dict[str, object] = {}
        self._codes: dict[str, CodeType] = {}
        self._memory: Memory | None = None

    def prepare(self, items: Sequence[pytest.Item]) -> None:
        """What can be done before the fork."""
        modules = {item.getparent(pytest.Module) for item in items}
        hooks = [
            getattr(item.config.hook, f"pytest_{name}") for item in items[:1] for name in HOOKS
        ]
        self._seal = Seal((module.obj for module in modules if module is not None), hooks)
        for item in items:
            self._objects[item.nodeid] = function = getattr(item, "obj", None)
            self._codes[item.nodeid] = cast(Any, function).__code__
            _ = item.location  # cached: computed here, and not in each child
            # pytest's report of a failure is never shown, and formatting it costs more than a test.
            item.repr_failure = _one_line  # pyright: ignore[reportAttributeAccessIssue]

    def run(
        self,
        items: Sequence[pytest.Item],
        write: Write,
        forked: Callable[[], bool],
        root: Path,
        limits: Limits,
    ) -> None:
        """Run `items`, the canary last, and write the end.

        What decides is held by this call alone: of an object that pytest holds it could be taken.
        """
        seal, was_ended, codes = self._seal, ended, dict(self._codes)
        self._limits = limits
        self._explainer = Explainer(root)
        exit_now = os._exit
        began = time.monotonic()
        failed = False
        self._seconds = limits.test_seconds
        self._memory = Memory(self._limits.memory_bytes)
        for item, following in zip(items, [*items[1:], None], strict=True):
            canary = item.path.name == CANARY
            age = time.monotonic() - began
            if failed and not canary:
                if age > limits.red_seconds:
                    write("stopped", why="late")
                    return
                rest = limits.red_seconds + limits.grace_seconds - age
                self._seconds = min(limits.test_seconds, max(rest, 1.0))
            write("start", id=item.name, file=item.path.name)
            self._compared, self._phases, self._facts = (), [], {}
            self._forks.reset(self._limits.forks)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if forked():
                exit_now(0)
            outcome, unasked = self._outcome(), was_ended(codes[item.nodeid])
            if outcome == "passed" and unasked:
                outcome, self._facts = "failed", {"type": "AssertionError", "message": unasked}
                if unasked == NOT_RUN:
                    self._changed.append(f"the run of {item.name}")
            if self._changed:
                write("changed", names=self._changed[:3])
                self._changed = []
            failed = failed or (outcome != "passed" and not canary)
            write(
                "canary" if canary else "result",
                id=item.name,
                file=item.path.name,
                outcome=outcome,
                **self._facts,
            )
            if self._alarm.struck:
                write("stopped", why="time", id=item.name)
                return
        broken = [*seal.broken(), *seal.emptied()]
        write("end", broken=broken, equal=[] if failed else _equal(self._alarm))

    def mended(self) -> list[str]:
        """What is broken, with Python's own names put back: pytest or this class went wrong."""
        broken = self._seal.broken()
        self._seal.mend()
        return broken

    def _outcome(self) -> str:
        if self._alarm.struck:
            self._facts |= {"message": self._time_is_up(), "where": self._alarm.place or None}
            return "failed"
        if self._phases == [("setup", "passed"), ("call", "passed"), ("teardown", "passed")]:
            return "passed"
        return "failed" if ("call", "failed") in self._phases else "error"

    def _time_is_up(self) -> str:
        place = f"; it was at {self._alarm.place}" if self._alarm.place else ""
        return f"did not end within {self._seconds:.2g} s{place}"

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        try:
            with self._alarm.ring_after(self._seconds):
                return (yield)
        except BaseException as error:
            if self._memory is not None and isinstance(error, MemoryError):
                self._memory.lift()
            with self._alarm.ring_after(1.0):
                self._facts = self._explain(pyfuncitem, error)
            # As itself, an Exit or KeyboardInterrupt of learner code would end the session.
            raise pytest.fail.Exception(self._facts["message"], pytrace=False) from None
        finally:
            # Here, before the outcome is made up, by means that may have been changed.
            self._look(pyfuncitem)

    def _look(self, item: pytest.Function) -> None:
        self._changed.extend(self._seal.broken())
        if item.obj is not self._objects.get(item.nodeid):
            self._changed.append(f"the function of {item.name}")

    def _explain(self, item: pytest.Function, error: BaseException) -> dict[str, Any]:
        file = str(item.path)
        try:
            if file not in self._trees:
                self._trees[file] = ast.parse(item.path.read_bytes())
            test = function_of(self._trees[file], item.originalname)
            return self._explainer.explain(error, test, file, self._compared)
        except TimeIsUp:
            return {"type": "TimeIsUp", "message": self._time_is_up()}
        except Exception as worse:
            text = (
                f"{type(error).__name__} (it can't be explained: {type(worse).__name__}: {worse})"
            )
            return {"type": type(error).__name__, "message": text}

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        if op in ("==", "is"):
            self._compared = (op, *show_pair(left, right))
        else:
            self._compared = (op, show(left)[:300], show(right)[:300])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._phases.append((report.when, report.outcome))
        if report.when != "call" and not report.passed:
            last = report.longreprtext.strip().rpartition("\n")[2]
            self._facts = {"message": f"{report.when} of the test failed: {last}"}

    def _place(self, frame: FrameType | None) -> str:
        """The learner's line that runs, or the one that a coroutine waits at."""
        return self._waiting() or self._explainer.place_of(frame)

    def _waiting(self) -> str:
        asyncio = sys.modules.get("asyncio")
        try:
            if asyncio is None or asyncio.current_task() is not None:
                return ""
            tasks = asyncio.all_tasks()
        except RuntimeError:  # no loop runs
            return ""
        places = [self._explainer.place_of(task.get_stack()[-1]) for task in tasks]
        return next((place for place in places if place), "")


def _equal(alarm: Alarm) -> list[str]:
    with contextlib.suppress(TimeIsUp), alarm.ring_after(1.0):
        return equal_to_everything("pi_course")
    return []


def _one_line(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    return excinfo.exconly(tryshort=True)
