"""Watches a run from inside the interpreter: what it opens, starts and imports, and how it forks.

An audit hook can't be taken out again, and sees a file however it is reached: by import, through
sys.path or importlib, or read as text. Learner code that takes the course's own solution, or that
reaches for what judges it, is refused, and the refusal is recorded, so that catching the
exception does not help.
"""

from __future__ import annotations

import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from pi_course_kit.limits import ForkCount
from pi_course_kit.reach import FRAMES, NEEDLESS

KIT = "pi_course_kit"
ALONE = "it must stand on its own, without the course's kit"
MOST = 20  # refusals that are written down

READS = frozenset(("open", "os.listdir", "os.scandir", "os.chdir", "os.link", "os.symlink"))
WRITES = frozenset(
    "os.remove os.rename os.rmdir os.mkdir os.truncate os.chmod os.chown os.utime os.link "
    "os.symlink shutil.rmtree".split()
)
PROGRAMS = frozenset(
    "subprocess.Popen os.system os.exec os.posix_spawn os.spawn os.startfile".split()
)
# Asked for by learner code itself. A library may: dataclasses runs code, typing looks at frames.
OWN = frozenset(
    "sys._getframe object.__getattr__ object.__setattr__ exec "
    "code.__new__ function.__new__ marshal.loads marshal.load".split()
)
# Asked for by anybody: a library would do it only because learner code told it to.
NOBODY = frozenset(
    "gc.get_objects gc.get_referrers gc.get_referents sys._current_frames sys.addaudithook "
    "sys._current_exceptions".split()
)
SEEN = FRAMES | {"sys._getframe"}
# What they start is not watched.
IMPORTS = frozenset(("multiprocessing", "_posixsubprocess", "_interpqueues"))
INTERPRETERS = frozenset(("_interpreters", "_xxsubinterpreters"))  # asyncio brings one along
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class KitRefused(ImportError):
    """Learner code reached for the course's own files, for a mock, or for the check itself."""


@dataclass(frozen=True, slots=True)
class Places:
    """Folders by what learner code may do there; all real paths that end in a separator.

    `solutions` nobody reads, `kept` nobody writes, `folder` is the one under test and `scratch`
    what tests write to. `tests` are the course's own; code below `trusted` is no learner's either.
    """

    solutions: tuple[str, ...]
    kept: tuple[str, ...]
    folder: str
    scratch: str
    tests: tuple[str, ...]
    trusted: tuple[str, ...]


def real_folder(path: str | os.PathLike[str]) -> str:
    return os.path.join(os.path.realpath(path), "")


class Audit:
    """`programs` says whether code or tests of the course so far start any."""

    __slots__ = ("_checked", "_count", "_forks", "_inside", "_places", "_programs", "_refused")

    def __init__(
        self,
        places: Places,
        forks: ForkCount,
        checked: Callable[[str], bool],
        refused: Callable[[str], None],
        *,
        programs: bool,
    ) -> None:
        self._places = places
        self._forks = forks
        self._checked = checked
        self._refused = refused
        self._programs = programs
        self._count = 0
        self._inside: set[int] = set()  # threads in which this class itself looks at a frame

    def start(self) -> None:
        for name in [*sys.modules]:
            if name.split(".")[0] in (KIT, *INTERPRETERS):
                # Found there, its import would not be audited.
                del sys.modules[name]
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in OWN:
            self._own(event, args)
        elif event in READS or event in WRITES:
            self._path(event, args)
        elif event == "import":
            self._import(args[0])
        elif event in PROGRAMS:
            self._program(args)
        elif event in ("os.fork", "os.forkpty"):
            self._forks.add()
        elif event in NOBODY:
            if not self._caller(2).startswith(self._places.tests):
                self.refuse(f"uses {event}: {NEEDLESS}")
        elif event.startswith("ctypes.") and self._is_learners(self._caller(2)):
            self.refuse(f"uses {event}: {NEEDLESS}")

    def refuse(self, what: str) -> None:
        """Write a refusal down and raise it; `what` ends a sentence that begins "your code"."""
        sentence = f"your code {what}"
        self._count += 1
        if self._count <= MOST:
            self._refused(sentence)
        raise KitRefused(sentence)

    # What code asks of the interpreter

    def _own(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "object.__getattr__":
            if args[1] not in FRAMES:  # inspect reads how a function is marked, and much more
                return
            event = args[1]
        elif event == "object.__setattr__":
            if args[1] != "__code__":
                return
            event = "__code__"
        elif event == "sys._getframe" and get_ident() in self._inside:
            return
        elif event == "exec":
            file = args[0].co_filename
            if file[:1] != "<" and self._is_learners(file) and not self._checked(file):
                self.refuse(f"runs {_tail(file)} past the import system: {NEEDLESS}")
        caller = self._caller(3)
        # Whoever was told to; but types.coroutine() swaps the code of what it marks.
        if event == "__code__" and caller != types.__file__:
            self.refuse(f"changes the code of a function: {NEEDLESS}")
        # inspect looks at a frame only for whoever asked it to.
        if self._is_learners(caller) or (event in SEEN and caller == inspect.__file__):
            self.refuse(f"uses {event}: {NEEDLESS}")

    def _caller(self, depth: int) -> str:
        """The file of the code that is `depth` calls up from here."""
        me = get_ident()
        self._inside.add(me)
        try:
            frame = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
            return frame.f_code.co_filename
        except ValueError:  # a thread that starts in C
            return "<frozen thread>"
        finally:
            self._inside.discard(me)

    def _importer(self) -> str:
        """The file of the code that imports; between it and us may stand Python's own."""
        depth = 4
        while (file := self._caller(depth)).startswith("<frozen importlib"):
            depth += 1
        return file

    def _is_learners(self, file: str) -> bool:
        if file.startswith(self._places.folder):
            return True
        return not file.startswith((*self._places.tests, *self._places.trusted, "<frozen "))

    def _import(self, name: str) -> None:
        root = name.partition(".")[0]
        if root == KIT:
            self.refuse(f"imports {name}: {ALONE}")
        elif name == "unittest.mock":
            self.refuse("imports unittest.mock: a mock can be equal to whatever is expected")
        elif root in IMPORTS and not self._programs:
            self.refuse(f"imports {root}: {NEEDLESS}")
        elif root in INTERPRETERS and self._is_learners(self._importer()):
            self.refuse(f"imports {root}: {NEEDLESS}")

    # Files and programs

    def _path(self, event: str, args: tuple[Any, ...]) -> None:
        writes = event in WRITES
        if event == "open":
            writes = bool(args[2] & WRITING)
            paths = args[:1]
        else:
            # The first two may be paths; what follows is a number (mode, dir_fd).
            paths = args[:2] if event in ("os.link", "os.symlink", "os.rename") else args[:1]
        for path in paths:
            real = _real(path)
            if real is None or real.startswith(self._places.folder):
                continue
            if self._is_solution(real):
                self.refuse(f"reads the course's own {_tail(path)}: {ALONE}")
            if writes and self._is_kept(real) and not self._is_cached(real):
                self.refuse(f"writes to {_tail(path)}, which belongs to the course")
            # os.open() alone, which says no mode, opens folders.
            if event == "open" and args[1] is None and self._leads_to_course(real):
                name = _tail(real) or "/"
                self.refuse(f"opens the folder {name}, which leads to the course's own: {ALONE}")

    def _is_solution(self, real: str) -> bool:
        if os.path.join(real, "").startswith(self._places.solutions):
            return True
        # Any other copy: an installed one, a snapshot in the cache, another practice folder.
        head, found, _ = real.partition(f"{os.sep}pi_course{os.sep}")
        package = os.path.join(head, "pi_course", "__init__.py")
        return bool(found) and real.endswith((".py", ".pyc")) and os.path.isfile(package)

    def _is_kept(self, real: str) -> bool:
        folder = os.path.join(real, "")
        return folder.startswith(self._places.kept) and not folder.startswith(self._places.scratch)

    def _is_cached(self, real: str) -> bool:
        """Whether it is Python that keeps a library's bytecode when it imports it."""
        importing = self._caller(4).startswith("<frozen importlib")
        return importing and real.startswith(self._places.trusted) and "__pycache__" in real

    def _leads_to_course(self, real: str) -> bool:
        """A folder from which the course can be reached by names that are not looked at."""
        closed = (*self._places.solutions, *self._places.kept)
        above = any(path.startswith(os.path.join(real, "")) for path in closed)
        return above or (self._is_kept(real) and os.path.isdir(real))

    def _program(self, args: tuple[Any, ...]) -> None:
        words = list(_words(args))
        if not self._programs:
            name = os.path.basename(words[0]) if words else "one"
            self.refuse(f"starts a program ({name[:40]}): no chapter up to this one needs any")
        for word in words:
            if KIT in word or "pi-course" in os.path.basename(word):
                self.refuse(f"starts {_tail(word)[:40]}: {ALONE}")
            if any(path[:-1] in word for path in self._places.solutions):
                self.refuse(f"hands the course's own files to a program: {ALONE}")


def _real(path: Any) -> str | None:
    if isinstance(path, int):
        return None
    try:
        return os.path.realpath(os.fsdecode(path))
    except (TypeError, ValueError, OSError):
        return None


def _words(value: Any) -> Iterator[str]:
    """All texts in the arguments of a program, the environment aside."""
    if isinstance(value, (str, bytes, os.PathLike)):
        yield os.fsdecode(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, (list, tuple)):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _words(item)


def _tail(path: str | bytes | os.PathLike[str]) -> str:
    parts = os.fsdecode(path).replace("\\", "/").split("/")
    return "/".join(parts[-2:])
