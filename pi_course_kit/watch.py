"""Checks a practice folder each time its package changes, from a guard that stays warm.

What counts is the content: a digest of the package decides whether there is something new, so a
touched file starts nothing, and a slow look every second finds what no event told of (network
folders, containers, a full event queue).
"""

from __future__ import annotations

import hashlib
import queue
import re
import threading
from pathlib import Path

from pi_course_kit import snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.errors import CourseError
from pi_course_kit.results import CheckResult
from pi_course_kit.runner import Checker
from pi_course_kit.verdict import STOPPED

QUIET_MS = 5  # an editor's several writes are one save
POLL_SECONDS = 0.1
LOOK_SECONDS = 1.0


class Watch:
    """`events` gives each result, or the CourseError that ended the watching."""

    def __init__(self, folder: Path, chapter: Checkpoint, *, poll: bool = False) -> None:
        self.events: queue.SimpleQueue[CheckResult | CourseError] = queue.SimpleQueue()
        self._folder = folder
        self._look_every = POLL_SECONDS if poll else LOOK_SECONDS
        self._poll = poll
        self._checker = Checker(chapter, preload=modules_of(chapter))
        self._checked: str = ""
        self._again = False
        self._busy = False
        self._closed = threading.Event()
        self._wake = threading.Event()
        self._wake.set()
        self._threads = [threading.Thread(target=self._check_for_ever, daemon=True)]
        if not poll:
            self._threads.append(threading.Thread(target=self._listen, daemon=True))

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._wake.set()
        if self._busy:
            self._checker.session.stop()
        for thread in self._threads:
            thread.join(timeout=5)
        self._checker.session.close()

    def rerun(self) -> None:
        self._again = True
        self._wake.set()

    def _listen(self) -> None:
        try:
            import watchfiles

            for _ in watchfiles.watch(
                self._folder,
                watch_filter=lambda _, path: path.endswith(".py"),
                debounce=10 * QUIET_MS,
                step=QUIET_MS,
                stop_event=self._closed,
                raise_interrupt=False,
            ):
                if self._busy and package_digest(self._folder) != self._checked:
                    self._checker.session.stop()
                self._wake.set()
        except (ImportError, OSError):
            # No events here (a limit of the system, say): look often instead.
            self._look_every = POLL_SECONDS

    def _check_for_ever(self) -> None:
        try:
            while True:
                self._wake.wait(self._look_every)
                self._wake.clear()
                if self._closed.is_set():
                    return
                self._check_once()
        except (CourseError, OSError) as error:
            if not self._closed.is_set():
                self.events.put(CourseError(str(error)))

    def _check_once(self) -> None:
        if not self._folder.is_dir():
            raise CourseError(f"{self._folder} is gone, so there is nothing to watch any more.")
        digest = package_digest(self._folder)
        if digest == self._checked and not self._again:
            return
        self._again, self._checked, self._busy = False, digest, True
        result = self._checker.check(self._folder)
        self._busy = False
        if result.sentence == STOPPED:
            self._checked = ""
            self._wake.set()
        else:
            self.events.put(result)


def package_digest(folder: Path) -> str:
    """A hash over the names and bytes of the package's files."""
    total = hashlib.sha256()
    for file in sorted((folder / "pi_course").rglob("*.py")):
        try:
            data = file.read_bytes()
        except OSError:  # being replaced just now; another event follows
            continue
        total.update(f"{file}\0{len(data)}\0".encode() + data)
    return total.hexdigest()


def modules_of(chapter: Checkpoint) -> list[str]:
    """What the chapter's finished package imports from elsewhere: worth importing before a run."""
    found: set[str] = set()
    for file in snapshot.snapshot_files(chapter.number).values():
        text = file.read_text(encoding="utf-8")
        found.update(re.findall(r"^(?:from|import) ([a-z_][\w.]*)", text, re.MULTILINE))
    return sorted(name for name in found if name.split(".")[0] not in ("pi_course", "__future__"))
