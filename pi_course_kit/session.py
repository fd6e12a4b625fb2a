"""The guard as its parent sees it: a child that was told which tests, and runs them when asked."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pi_course_kit import data, source
from pi_course_kit.errors import CourseError
from pi_course_kit.limits import Limits
from pi_course_kit.records import read_records
from pi_course_kit.results import RunResult
from pi_course_kit.verdict import Key, Verdict

# Of the PYTHON* variables those that say where packages are; the others change how code runs.
KEPT = {"PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONPYCACHEPREFIX", "PYTHONUTF8"}
SECRET = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD")
# The guard is this very kit, whatever else is installed; its `__main__` is these lines alone.
GUARD = """\
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location(
    "pi_course_kit", {kit!r} + "/__init__.py", submodule_search_locations=[{kit!r}]
)
sys.modules["pi_course_kit"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["pi_course_kit"])
from pi_course_kit.guard import main
code = main()
sys.exit(code)
"""
CAN_FORK = sys.platform != "win32"


def child_environment(**added: str) -> dict[str, str]:
    """What a process that runs learner code inherits: no key, and nothing that bends Python."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if (not name.startswith(("PYTHON", "PYTEST")) or name in KEPT)
        and not name.upper().endswith(SECRET)
    }
    # Few arenas, else each thread reserves address space that the memory limit counts.
    return passed | {"MALLOC_ARENA_MAX": "2"} | added


class Session:
    """A guard that has collected `tests`, for runs on one folder after another.

    Use it as a context manager: leaving it ends the guard and everything that a run started.
    `fork=False` is what systems without fork get: each run is a new interpreter.
    """

    def __init__(
        self,
        tests: Sequence[Path],
        *,
        owner: str = "your folder",
        preload: Sequence[str] = (),
        limits: Limits | None = None,
        fork: bool = CAN_FORK,
    ) -> None:
        for test in tests:
            if not test.is_file():
                raise CourseError(
                    f"The course's test {test} is missing, so nothing can be checked. "
                    "Install pi-course again."
                )
        self.limits = limits or Limits()
        self._fork = fork
        self._folder = tempfile.TemporaryDirectory(prefix="pi-course-", ignore_cleanup_errors=True)
        self.home = Path(self._folder.name).resolve()
        (self.home / "pytest.ini").write_text("[pytest]\n", encoding="utf-8", newline="\n")
        self._job = self._describe([test.resolve() for test in tests], owner, list(preload))
        self._count = 0
        self._busy = False
        self._child: subprocess.Popen[bytes] | None = self._start() if fork else None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the guard, and with it what a run has started."""
        if self._child is not None:
            _end(self._child, idle=not self._busy)
            self._child = None
        self._folder.cleanup()

    def run(
        self,
        root: Path,
        *,
        select: Sequence[str] | None = None,
        pinned: Sequence[Key] | None = None,
        labs: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> RunResult:
        """Run the tests (those named in `select`) on the package in `root`.

        `pinned` (file, id) must each have run once for the result to be green.
        """
        self._count += 1
        records = self.home / f"records-{self._count}.jsonl"
        records.touch()
        limits = limits or self.limits
        key = secrets.token_bytes(16)
        run = {
            "root": str(root.resolve()),
            "select": select and list(select),
            "records": str(records),
            "key": key.hex(),
            "limits": limits.to_json(),
        }
        answer = self._ask(run, limits) if self._fork else self._run_alone(run, records, limits)
        if not records.exists():
            answer["why"] = "deleted"
        verdict = Verdict(read_records(records, key), answer, limits)
        records.unlink(missing_ok=True)
        return verdict.result(pinned, labs or {})

    def stop(self) -> None:
        """End the run that another thread waits for; its result says that it was stopped."""
        child = self._child
        if child is not None and child.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ValueError):  # it has ended meanwhile
                child.stdin.write(b"\n")
                child.stdin.flush()

    def _describe(self, tests: list[Path], owner: str, preload: list[str]) -> dict[str, Any]:
        checkpoints = data.data_dir("checkpoints").resolve()
        ours = [str(folder / "target") for folder in checkpoints.iterdir() if folder.is_dir()]
        ours += [str(test.parents[2] / "target") for test in tests]
        newest = max((test.name[5:7] for test in tests), default="")
        later = {
            module: chapter
            for module, chapter in source.brought_by(checkpoints).items()
            if chapter > f"chapter {newest}"
        }
        return {
            "tests": [str(test) for test in tests],
            "home": str(self.home),
            "owner": owner,
            "brings": later,
            "solutions": [*ours, str(data.PACKAGE.parent / source.PACKAGE)],
            "kept": [str(data.PACKAGE), str(checkpoints), str(self.home), *map(_course, tests)],
            "programs": _programs(checkpoints, newest, tests),
            "cache": all(test.is_relative_to(checkpoints) for test in tests),
            "preload": preload,
            "fork": self._fork,
        }

    def _start(self, output: int | None = None) -> subprocess.Popen[bytes]:
        """`output` takes what the child prints, where it watches over itself no run."""
        log = self.home / "guard.log"
        try:
            with log.open("ab") as errors:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-c", GUARD.format(kit=str(data.PACKAGE))],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if output is None else output,
                    stderr=errors if output is None else output,
                    cwd=self.home,
                    env=child_environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
                    start_new_session=CAN_FORK,
                )
        except OSError as error:
            raise CourseError(
                f"Python can't be started for the tests ({sys.executable}: {error.strerror}). "
                "Install pi-course in a working environment again."
            ) from error
        self._send(child, self._job)
        return child

    def _send(self, child: subprocess.Popen[bytes], line: Mapping[str, Any]) -> None:
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(line).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            self._fail()

    def _fail(self) -> NoReturn:
        log = (self.home / "guard.log").read_text("utf-8", "replace").strip()[-2000:]
        raise CourseError(
            f"The process for the tests ended before it ran any:\n{log}\n"
            "Is pytest installed in this environment? `pi-course doctor` looks."
        )

    def _ask(self, run: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
        """Have the guard run in a fork; its supervisor answers, whatever happens in there."""
        if self._child is None or self._child.poll() is not None:
            # Learner code killed it in the run before.
            self._child = self._start()
        child = self._child
        assert child.stdout is not None
        self._busy = True
        self._send(child, run)
        # Twice the run's own limit: then the supervisor itself must be gone.
        limit = time.monotonic() + 2 * limits.total_seconds
        line = b""
        while not line.endswith(b"\n"):
            wait = limit - time.monotonic()
            if wait <= 0 or not select.select([child.stdout], [], [], wait)[0]:
                break
            data = os.read(child.stdout.fileno(), 65536)
            if not data:
                break
            line += data
        if line.endswith(b"\n"):
            self._busy = False
            return json.loads(line)
        _end(child, idle=False)
        self._child = None
        collected = next(iter(read_records(Path(run["records"]), bytes.fromhex(run["key"]))), None)
        if collected is None:
            self._fail()
        with contextlib.suppress(ProcessLookupError, PermissionError, KeyError):
            os.killpg(collected["pid"], signal.SIGKILL)
        return {"status": child.returncode, "why": None, "left": 0, "printed": ""}

    def _run_alone(self, run: Mapping[str, Any], records: Path, limits: Limits) -> dict[str, Any]:
        """A new interpreter for one run, watched from here: the way without fork."""
        printed = self.home / "printed"
        with printed.open("w+b") as output:
            child = self._start(output.fileno())
            try:
                self._send(child, run)
                why = _watch(child, printed, records, limits)
            finally:
                if CAN_FORK:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)
                _end(child, idle=True)
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - limits.tail_bytes))
            text = output.read().decode("utf-8", "replace")
        return {"status": child.returncode if why is None else -9, "why": why, "printed": text}


def _programs(checkpoints: Path, newest: str, tests: Sequence[Path]) -> bool:
    """Whether the code or a test of a chapter up to this one starts programs."""
    folders = [folder for folder in checkpoints.iterdir() if folder.name[:2] <= newest]
    folders += [test.parents[2] for test in tests]
    files = [file for folder in folders for file in (folder / "target").rglob("*.py")]
    return any(b"subprocess" in file.read_bytes() for file in (*files, *tests))


def _course(test: Path) -> str:
    """The folder of a test that nobody writes to: the chapter's, when it lies in one."""
    return str(test.parents[1] if test.parent.name == "tests" else test.parent)


def _watch(
    child: subprocess.Popen[bytes], printed: Path, records: Path, limits: Limits
) -> str | None:
    began = heard = time.monotonic()
    length = 0
    while child.poll() is None:
        now = time.monotonic()
        if (grown := records.stat().st_size) != length:
            length, heard = grown, now
        if length and now - heard > limits.test_seconds + limits.grace_seconds:
            return "time"
        if now - began > limits.total_seconds:
            return "total"
        if printed.stat().st_size > limits.output_bytes:
            return "output"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.02)
    return None


def _end(child: subprocess.Popen[bytes], *, idle: bool) -> None:
    """An idle guard is alone and may be killed; a busy one sees its stdin end and cleans up."""
    if idle:
        child.kill()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    try:
        child.wait(timeout=None if idle else 5)
    except subprocess.TimeoutExpired:
        if CAN_FORK:
            os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()
