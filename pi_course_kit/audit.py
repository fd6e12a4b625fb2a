"""Watches a run from inside the interpreter: what it opens and imports, and how often it forks.

An audit hook can't be taken out again, and sees a file however it is reached: by import, through
sys.path or importlib, or read as text. Learner code that takes the course's own solution is
refused, and the refusal is recorded, so that catching the exception does not help.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pi_course_kit.limits import ForkCount

KIT = "pi_course_kit"
ALONE = "it must stand on its own, without the course's kit"


class KitRefused(ImportError):
    """Learner code reached for the course's own files, or for a mock."""


class Audit:
    """`solutions` are folders nobody may read from, `allowed` the one under test."""

    def __init__(
        self,
        solutions: Sequence[str],
        allowed: str,
        forks: ForkCount,
        refused: Callable[[str], None],
    ) -> None:
        self._solutions = tuple(os.path.realpath(path) + os.sep for path in solutions)
        self._allowed = os.path.realpath(allowed) + os.sep
        self._forks = forks
        self._refused = refused

    def start(self) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == KIT]:
            # Found there, `import pi_course_kit` would not be audited.
            del sys.modules[name]
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if self._is_solution(args[0]):
                self._refuse(f"reads the course's own {_tail(args[0])}: {ALONE}")
        elif event == "import":
            if args[0].split(".")[0] == KIT:
                self._refuse(f"imports {args[0]}: {ALONE}")
            elif args[0] == "unittest.mock":
                self._refuse("imports unittest.mock: a mock can be equal to whatever is expected")
        elif event in ("os.fork", "os.forkpty"):
            self._forks.add()

    def _is_solution(self, path: Any) -> bool:
        if isinstance(path, int):
            return False
        try:
            real = os.path.realpath(os.fsdecode(path))
        except (TypeError, ValueError, OSError):
            return False
        return real.startswith(self._solutions) and not real.startswith(self._allowed)

    def _refuse(self, what: str) -> None:
        sentence = f"your code {what}"
        self._refused(sentence)
        raise KitRefused(sentence)


def _tail(path: str | bytes | os.PathLike[str]) -> str:
    parts = os.fsdecode(path).replace("\\", "/").split("/")
    return "/".join(parts[-2:])
