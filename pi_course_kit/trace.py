"""The child of `compare`: python -P -m pi_course_kit.trace.

It reads a job from stdin, one line of JSON, and runs one scenario on one package. Each value that
the scenario traces is a line of the record file, together with the way that the package's own
functions took to it. How the run ended is one line on stdout.

Where there is no fork the scenario runs in this very process, and the parent waits for its end.
"""

from __future__ import annotations
import __future__

import asyncio
import contextlib
import dis
import importlib
import json
import os
import re
import select
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NoReturn

from pi_course_kit import source
from pi_course_kit.display import shown
from pi_course_kit.limits import Alarm, ForkCount, Limits, Memory, TimeIsUp

FILE = "<scenario>"
NAME = "scenario"  # of the module that its code runs as
WAIT_SECONDS = 3.0  # that a scenario may wait without a value
CLOCK = 1_000.0  # time.time() of every scenario: it stands still, so that times are equal
MOST = 1000  # values of one scenario
STEPS = 4000  # of the way to one value, kept
LINES = 100  # that ran in one call, kept
LONG = 400  # characters of a value on the way; of a longer one a checksum stands for the rest
PRELOAD = re.compile(rb"^(?:from|import) (pydantic|httpx)\b", re.MULTILINE)

KINDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR

Place = tuple[str, int, str]  # file, line, qualified name of the function


class TooMuch(BaseException):
    """Not an Exception, so that learner code does not go on after it."""


class Way:
    """The steps through the package's own functions since the last traced value.

    Code of other packages, class bodies and functions without a name have no part in it. Of a
    chain of coroutines that await each other only the innermost yields and resumes.
    """

    def __init__(self, root: Path, given: Sequence[str] = ()) -> None:
        self._root = str(root) + os.sep
        home = re.escape(os.getcwd())
        self._home = re.compile(f"{home}/|{home}", re.IGNORECASE)  # in which the scenario works
        self._package = os.path.join(self._root, source.PACKAGE) + os.sep
        self._given_files = frozenset(given)
        self._raised: dict[FrameType, str] = {}
        self._ran: dict[FrameType, list[int]] = {}
        self._given: dict[FrameType, str] = {}
        self._held: dict[FrameType, dict[str, str]] = {}
        self._changes: dict[FrameType, list[tuple[int, str, str]]] = {}
        self._asleep: set[FrameType] = set()
        self._passing: set[FrameType] = set()  # those that only hand a yield on
        self._awaiting: FrameType | None = None  # who gets the yield that has just been made
        self._steps: list[dict[str, Any]] = []
        self._last: Place | None = None

    def start(self) -> None:
        sys.settrace(self._called)

    def stop(self) -> None:
        sys.settrace(None)

    def take(self) -> dict[str, Any]:
        """The way so far, which begins anew."""
        way = {"way": self._steps, "last": self._last}
        self._steps, self._last = [], None
        return way

    def place(self, frame: FrameType | None) -> Place | None:
        """The innermost frame of the package, from `frame` outwards."""
        places: list[Place] = []
        while frame is not None:
            if frame.f_code.co_filename.startswith(self._package):
                places.append(self._place(frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return self._innermost(places)

    def raised_at(self, traceback: TracebackType | None) -> Place | None:
        places: list[Place] = []
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename.startswith(self._package):
                places.insert(0, self._place(code, traceback.tb_lineno))
            traceback = traceback.tb_next
        return self._innermost(places)

    def _innermost(self, places: Sequence[Place]) -> Place | None:
        """The first of the learner's own; of files that were given only if there is no other."""
        own = [place for place in places if place[0] not in self._given_files]
        return next(iter([*own, *places]), None)

    def short(self, text: str) -> str:
        """Without the folders of this run, which are others each time."""
        text = text.replace(self._root, "")
        return self._home.sub(lambda found: "" if found[0].endswith("/") else ".", text)

    def _text(self, value: object) -> str:
        text = self.short(shown(value))
        if len(text) <= LONG:
            return text
        return f"{text[:LONG]} {zlib.crc32(text.encode('utf-8', 'replace'))}"

    def _place(self, code: CodeType, line: int) -> Place:
        file = code.co_filename.removeprefix(self._root).replace(os.sep, "/")
        return file, line, code.co_qualname

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        # A class body or a module is code too, but nothing that somebody calls.
        if not code.co_filename.startswith(self._package) or not code.co_flags & CO_OPTIMIZED:
            return None
        if frame in self._passing:
            self._passing.remove(frame)
        elif frame in self._asleep:
            self._asleep.remove(frame)
            self._step("resume", frame)
        else:
            if len(self._steps) < STEPS:
                values = map(frame.f_locals.get, code.co_varnames[: code.co_argcount])
                self._given[frame] = self._text(tuple(values))
            self._step("enter", frame, back=self.place(frame.f_back))
        return self._inside

    def _inside(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self._last = self._place(frame.f_code, frame.f_lineno)
            self._look(frame)
            self._ran.setdefault(frame, []).append(frame.f_lineno)
        elif event == "exception":
            self._raised[frame] = self._text(arg[1])
        elif event == "return":
            self._look(frame)
            raised = self._raised.pop(frame, "")
            operation = _operation(frame)
            if operation == "YIELD_VALUE":
                if self._awaiting is frame:
                    self._passing.add(frame)
                else:
                    self._asleep.add(frame)
                    made = frame.f_code.co_flags & CO_GENERATOR
                    self._step("yield", frame, self._text(arg) if made else "")
                self._awaiting = frame.f_back
                return self._inside
            if operation.startswith("RETURN"):
                self._step("return", frame, self._text(arg))
            else:
                self._step("raise", frame, raised)
            for kept in (self._ran, self._given, self._held, self._changes):
                kept.pop(frame, None)
        self._awaiting = None
        return self._inside

    def _look(self, frame: FrameType) -> None:
        """Note which local names the line before has changed."""
        ran = self._ran.get(frame, [])
        if len(ran) > LINES or len(self._steps) >= STEPS:
            return
        held = {name: self._text(value) for name, value in frame.f_locals.items()}
        before = self._held.get(frame, held)
        self._held[frame] = held
        for name, value in held.items():
            if before.get(name) != value:
                change = (len(ran) - 1, name, value)
                self._changes.setdefault(frame, []).append(change)

    def _step(
        self, kind: str, frame: FrameType, value: str = "", back: Place | None = None
    ) -> None:
        if len(self._steps) >= STEPS or "<" in frame.f_code.co_qualname:
            return
        step: dict[str, Any] = {"kind": kind, "value": value, "back": back}
        step["at"] = self._place(frame.f_code, frame.f_lineno)
        step["given"] = self._given.get(frame, "")
        step["code"] = frame.f_code.co_flags & KINDS
        if kind in ("return", "raise", "yield"):
            step["ran"] = self._ran.get(frame, [])[:LINES]
            step["names"] = list(self._held.get(frame, {}))
            step["changes"] = list(self._changes.get(frame, []))
        self._steps.append(step)


def _operation(frame: FrameType) -> str:
    """The instruction that has left the frame; Python 3.13 has gone one further after a yield."""
    code, at = frame.f_code.co_code, frame.f_lasti
    name = dis.opname[code[at]]
    return dis.opname[code[at - 2]] if name == "RESUME" else name


class Recorder:
    """The `trace` of a scenario, and the file that its values go to."""

    def __init__(self, path: Path, way: Way, alive: Callable[[], None]) -> None:
        self._file = path.open("a", encoding="utf-8", newline="\n")
        self._way = way
        self._alive = alive
        self.count = 0

    def __call__(self, value: object) -> None:
        self._way.stop()
        self.count += 1
        if self.count > MOST:
            raise TooMuch
        error = value if isinstance(value, BaseException) else None
        self.write("value", shown(value), sys._getframe(1).f_lineno, error)  # pyright: ignore[reportPrivateUsage]
        self._alive()
        self._way.start()

    def write(
        self,
        kind: str,
        value: str,
        line: int = 0,
        error: BaseException | None = None,
        at: Place | None = None,
    ) -> None:
        if error is not None:
            at = self._way.raised_at(error.__traceback__)
        entry = {"kind": kind, "value": self._way.short(value), "line": line, "at": at}
        json.dump(entry | self._way.take(), self._file)
        self._file.write("\n")
        self._file.flush()


def play(job: Mapping[str, Any]) -> None:
    """Run the scenario; whatever happens to it becomes the last entry."""
    root, limits = Path(job["root"]), Limits(**job["limits"])
    _preload(root)
    source.serve(root, job["brings"], job["owner"])
    time.time = lambda: CLOCK
    way = Way(root, job["given"])
    rang: list[Place | None] = []

    def where(frame: FrameType | None) -> str:
        rang.append(way.place(frame))
        return ""

    module = sys.modules[NAME] = ModuleType(NAME)  # where pydantic looks for the names of types
    memory = Memory(limits.memory_bytes)
    alarm = Alarm(where)
    trace = Recorder(Path(job["records"]), way, lambda: alarm.put_off(limits.test_seconds))
    try:
        with alarm.ring_after(limits.test_seconds):
            # A function from a notebook may name types in its annotations that are not here.
            flags = __future__.annotations.compiler_flag
            exec(compile(job["code"], FILE, "exec", flags, dont_inherit=True), vars(module))
            asyncio.run(_limited(vars(module)[job["name"]], trace, way))
        if alarm.struck:  # and swallowed
            raise TimeIsUp
        trace.write("end", "")
    except TimeIsUp:
        way.stop()
        trace.write("hangs", "", at=rang[0] if rang else None)
    except TooMuch:
        trace.write("floods", "")
    except BaseException as error:
        way.stop()
        memory.lift()
        trace.write("raises", shown(error), _scenario_line(error), error)


async def _limited(scenario: Callable[..., Any], trace: Recorder, way: Way) -> None:
    task = asyncio.ensure_future(scenario(trace))
    way.start()
    count = -1
    while not task.done() and count != trace.count:
        count = trace.count
        await asyncio.wait({task}, timeout=WAIT_SECONDS)
    way.stop()
    if not task.done():
        trace.write("waits", "")
        _leave()  # what waits for ever may not end when it is cancelled, either
    task.result()


def _leave() -> NoReturn:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(0)


def _scenario_line(error: BaseException) -> int:
    line, traceback = 0, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _preload(root: Path) -> None:
    """Import what takes long and is nobody's work before the clock starts and steps are noted."""
    files = (root / source.PACKAGE).rglob("*.py")
    found = {name for file in files for name in PRELOAD.findall(file.read_bytes())}
    for name in sorted(found):
        with contextlib.suppress(ImportError):
            importlib.import_module(name.decode())


def _watched(job: Mapping[str, Any]) -> dict[str, Any]:
    """Play in a fork, which may do to itself what it likes."""
    from pi_course_kit.processes import Supervisor

    def child() -> None:
        play(job)
        _leave()

    supervisor = Supervisor(0, lambda: bool(select.select([0], [], [], 0)[0]))
    limits, forks = Limits(**job["limits"]), ForkCount()
    forks.reset(limits.forks)
    return supervisor.run(child, limits, Path(job["records"]), forks)


def main() -> int:
    line = b""
    while not line.endswith(b"\n"):  # below any buffer: the supervisor waits for this descriptor
        data = os.read(0, 65536)
        if not data:
            return 2
        line += data
    job = json.loads(line)
    if job["fork"]:
        os.write(1, json.dumps(_watched(job)).encode())
    else:
        play(job)
    return 0


if __name__ == "__main__":
    sys.exit(main())
