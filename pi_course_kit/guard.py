"""The child of `check` and `watch`: python -P -m pi_course_kit.guard.

It reads a job from stdin, one line of JSON (which tests, which limits), collects those tests with
pytest, and then runs them once for each further line, each time in a fork of its own. The answer
to a run is one line on stdout; what happened in it stands in the record file that the line named.
Where there is no fork it takes one run, in this process, and its parent watches.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pytest

from pi_course_kit.audit import Audit
from pi_course_kit.limits import ForkCount, Limits
from pi_course_kit.source import PackageFinder
from pi_course_kit.witness import CANARY, Records, Witness

OFF = (
    "cacheprovider debugging doctest faulthandler junitxml legacypath pastebin setuponly setupplan "
    "stepwise subtests terminal threadexception unittest unraisableexception warnings"
).split()


class Finder(PackageFinder):
    """Writes down each file before it runs."""

    records: Records | None = None

    def ran(self, path: str, sha256: str) -> None:
        super().ran(path, sha256)
        if self.records is not None:
            self.records.write("loaded", path=path, sha256=sha256)


class Control:
    """The lines from and to the parent, moved away from stdin and stdout.

    Read byte-wise below any buffer, so that the supervisor can wait for the same descriptor.
    """

    def __init__(self) -> None:
        self.reader, self._writer = os.dup(0), os.dup(1)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        self._buffer = b""

    def read(self) -> dict[str, Any] | None:
        line = b""
        while not line:  # an empty one asks to stop a run that had ended by then
            while b"\n" not in self._buffer:
                data = os.read(self.reader, 65536)
                if not data:
                    return None
                self._buffer += data
            line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def waiting(self) -> bool:
        """Whether the parent has said something that was not read yet, or has gone."""
        return bool(self._buffer or select.select([self.reader], [], [], 0)[0])

    def write(self, answer: dict[str, Any]) -> None:
        os.write(self._writer, json.dumps(answer).encode() + b"\n")

    def close_writer(self) -> None:
        os.close(self._writer)


class Guard:
    """The pytest plugin that stays: what was collected, and the loop that takes runs."""

    def __init__(self, job: dict[str, Any], finder: Finder, control: Control) -> None:
        self._job = job
        self._finder = finder
        self._control = control
        self._forks = ForkCount()
        self.witness = Witness(self._forks)
        self._errors: list[str] = []
        self.ran = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._errors.append(f"{Path(report.nodeid).name}: {report.longreprtext[-2000:]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.ran = True
        _preload(("resource", *self._job["preload"]))
        self.witness.prepare(session.items)
        # Objects that stand in the permanent generation are not copied by a child's collector.
        gc.collect()
        gc.freeze()
        if self._job["fork"]:
            self._serve(session)
        elif (run := self._control.read()) is not None:
            self._run(session, run)
        return True

    def _serve(self, session: pytest.Session) -> None:
        from pi_course_kit.processes import Supervisor

        supervisor = Supervisor(self._control.reader, self._control.waiting)
        while (run := self._control.read()) is not None:
            self._forks.reset(0)
            limits, records = Limits(**run["limits"]), Path(run["records"])
            child = partial(self._run, session, run)
            answer = supervisor.run(child, limits, records, self._forks)
            with contextlib.suppress(BrokenPipeError):
                self._control.write(answer)
        # The parent has gone; if it was killed, nobody else tidies up.
        shutil.rmtree(self._job["home"], ignore_errors=True)

    def _run(self, session: pytest.Session, run: dict[str, Any]) -> None:
        """Run the tests on one folder and end this process."""
        if self._job["fork"]:
            self._control.close_writer()
        root = Path(run["root"])
        records = Records(Path(run["records"]))
        items = _select(session.items, run["select"])
        records.write(
            "collected",
            pid=os.getpid(),
            tests=[(item.path.name, item.name, _title(item)) for item in items],
            errors=self._errors,
        )
        _settle(root)
        # In front of pytest's own hook, which came later.
        sys.meta_path.remove(self._finder)
        sys.meta_path.insert(0, self._finder)
        self._finder.folder = root
        self._finder.records = records
        audit = Audit(
            self._job["solutions"],
            str(root),
            self._forks,
            lambda sentence: records.write("refused", sentence=sentence),
        )
        leave = os._exit
        audit.start()
        code = 0
        try:
            self.witness.run(items, records, root, Limits(**run["limits"]))
        except BaseException as error:  # only code that was patched gets here
            self.witness.crashed(error)
            code = 1
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        # Threads of the learner's that never end would keep a normal exit waiting.
        leave(code)


def _preload(names: Sequence[str]) -> None:
    """Import before the fork what each child would import by itself."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if "pydantic" in names and "pydantic" in sys.modules:
        from pydantic import BaseModel, TypeAdapter

        # pydantic imports most of itself when a first model is built.
        TypeAdapter(type("First", (BaseModel,), {"__annotations__": {"value": int}}))


def _select(items: Sequence[pytest.Item], names: Sequence[str] | None) -> list[pytest.Item]:
    wanted = [item for item in items if names is None or item.name in names]
    return [item for item in wanted if item.path.name != CANARY] + [
        item for item in items if item.path.name == CANARY
    ]


def _title(item: pytest.Item) -> str:
    function = getattr(item, "function", None)
    return (getattr(function, "__doc__", None) or item.name).strip().partition("\n")[0]


def _settle(root: Path) -> None:
    """Make `root` the place where learner code, and what it starts, runs."""
    os.chdir(root)
    for cached in root.glob("pi_course/**/__pycache__/*.pyc"):
        # A process that a test starts reads them, and they may be of an older text.
        with contextlib.suppress(OSError):
            cached.unlink()
    os.environ["PYTHONPATH"] = str(root)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    # By lines, so that what was printed is not lost when the process is killed.
    sys.stdout = sys.__stdout__ = _lines(1)
    sys.stderr = sys.__stderr__ = _lines(2)


def _lines(descriptor: int) -> TextIO:
    return open(
        descriptor,
        "w",
        buffering=1,
        encoding="utf-8",
        errors="backslashreplace",
        newline="\n",
        closefd=False,
    )


def main() -> int:
    control = Control()
    job = control.read()
    if job is None:
        return 2
    finder = Finder(None, job["brings"], job["owner"])
    sys.meta_path.insert(0, finder)
    # The course's own tests keep their rewritten .pyc; a test file from elsewhere may change
    # twice in a second.
    sys.dont_write_bytecode = not job["cache"]
    home = Path(job["home"])
    options = ["-c", str(home / "pytest.ini"), "--rootdir", str(home), "--noconftest"]
    options += ["--import-mode=importlib", "--capture=no", "--basetemp", str(home / "tmp")]
    options += [f"-pno:{name}" for name in OFF]
    if not any(b"caplog" in Path(test).read_bytes() for test in job["tests"]):
        options.append("-pno:logging")  # a tenth of each test's cost
    guard = Guard(job, finder, control)
    tests = [*job["tests"], str(Path(__file__).with_name(CANARY))]
    code = pytest.main([*options, *tests], plugins=[guard, guard.witness])
    return 0 if guard.ran else int(code) or 2


if __name__ == "__main__":
    sys.exit(main())
