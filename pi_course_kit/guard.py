"""The child of `check` and `watch`; the session starts it.

It reads a job from stdin, one line of JSON (which tests, which limits), collects those tests with
pytest, and then runs them once for each further line, each time in a fork of its own. The answer
to a run is one line on stdout; what happened in it stands in the record file that the line named.
Where there is no fork it takes one run, in this process, and its parent watches.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import select
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import pytest

from pi_course_kit.asserts import TestFinder
from pi_course_kit.audit import Audit, Places, real_folder
from pi_course_kit.limits import ForkCount, Limits
from pi_course_kit.reach import reached
from pi_course_kit.records import recorder
from pi_course_kit.source import MOST_BYTES, PACKAGE, PackageFinder
from pi_course_kit.witness import CANARY, Witness

OFF = (
    "cacheprovider debugging doctest faulthandler junitxml legacypath pastebin setuponly setupplan "
    "stepwise subtests terminal threadexception unittest unraisableexception warnings"
).split()


class Finder(PackageFinder):
    """Looks at each file and writes it down before it runs."""

    looked: Callable[[str, bytes, str], None] | None = None

    def ran(self, path: str, data: bytes) -> None:
        super().ran(path, data)
        if self.looked is not None:
            short = self.short(path)
            self.looked(short, data, self.loaded[short])


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

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        files = [Path(test) for test in (*self._job["tests"], _canary())]
        self._tests = TestFinder(files, session.config)
        sys.meta_path.insert(0, self._tests)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._errors.append(f"{Path(report.nodeid).name}: {report.longreprtext[-2000:]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.ran = True
        self._tests.forget()
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
        write, forked = recorder(Path(run["records"]), bytes.fromhex(run.pop("key")))
        items = _select(session.items, run["select"])
        write(
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
        audit = Audit(
            self._places(root),
            self._forks,
            lambda file: self._finder.short(file) in self._finder.loaded,
            lambda sentence: write("refused", sentence=sentence),
            programs=self._job["programs"],
        )

        before, began = _code(root), time.time()

        def looked(path: str, data: bytes, sha256: str) -> None:
            write("loaded", path=path, sha256=sha256)
            if _is_written(root / path, before.get(path), sha256, began):
                audit.refuse(f"runs {path}, which was written after the tests began: check again")
            if what := reached(data, path):
                audit.refuse(what)

        self._finder.looked = looked
        leave = os._exit
        audit.start()
        code = 0
        try:
            self.witness.run(items, write, forked, root, Limits(**run["limits"]))
        except BaseException as error:  # only code that was patched gets here
            write("crashed", error=f"{type(error).__name__}: {error}", broken=self.witness.mended())
            code = 1
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        # Threads of the learner's that never end would keep a normal exit waiting.
        leave(code)

    def _places(self, root: Path) -> Places:
        libraries = [
            os.path.dirname(os.__file__),
            os.path.dirname(os.path.dirname(pytest.__file__)),
        ]
        libraries += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        tests = [os.path.dirname(test) for test in (*self._job["tests"], _canary())]
        return Places(
            solutions=tuple(map(real_folder, self._job["solutions"])),
            kept=tuple(map(real_folder, [*self._job["kept"], *libraries])),
            folder=real_folder(root),
            scratch=real_folder(Path(self._job["home"], "tmp")),
            tests=tuple(os.path.join(path, "") for path in tests),
            trusted=tuple(os.path.join(path, "") for path in libraries),
        )


def _canary() -> str:
    return str(Path(__file__).with_name(CANARY))


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
    sys.breakpointhook = _no_debugger


class NoDebugger(Exception):
    """Learner code called breakpoint()."""


def _no_debugger(*_args: object, **_kwargs: object) -> None:
    raise NoDebugger


def _code(root: Path) -> dict[str, str]:
    """Each file of the package with its hash: what runs must be what was there."""
    found: dict[str, str] = {}
    for file in (root / PACKAGE).rglob("*.py"):
        with contextlib.suppress(OSError):
            if file.is_file() and file.stat().st_size <= MOST_BYTES:
                text = file.read_bytes()
                found[file.relative_to(root).as_posix()] = hashlib.sha256(text).hexdigest()
    return found


def _is_written(file: Path, before: str | None, now: str, began: float) -> bool:
    """Whether a file is another one than when the run began."""
    if before is not None:
        return before != now
    try:
        return file.stat().st_ctime > began  # else it lies behind a link to a folder
    except OSError:
        return True


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
    tests = [*job["tests"], _canary()]
    code = pytest.main([*options, *tests], plugins=[guard, guard.witness])
    return 0 if guard.ran else int(code) or 2
