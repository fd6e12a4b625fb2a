"""The end of an output in memory, which is what a model needs; all of it in a file, if it is long.

A failing build says why in its last lines. Memory stays small, however much comes.
"""

import codecs
import os
import secrets
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

from pi_course.coding_tools.limits import Limits

LEAST_SHOWN = 4  # bytes: one character at least, whatever a note may take


class OutputFolder:
    """Where whole outputs lie. It is made with the first one, and goes with the tools."""

    def __init__(self) -> None:
        self.path = Path(os.path.realpath(tempfile.gettempdir())) / f"pi-{secrets.token_hex(8)}"
        self._count = 0

    def new_file(self) -> BinaryIO:
        if not self._count:
            self.path.mkdir(mode=0o700)
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._count += 1
        return open(self.path / f"{self._count}.txt", "xb")


class OutputTail:
    def __init__(self, limits: Limits, folder: OutputFolder) -> None:
        self.bytes = 0
        self._limits = limits
        self._folder = folder
        self._ends = 0  # line ends so far
        self._kept = bytearray()
        self._file: BinaryIO | None = None
        self._problem = ""  # why the file is not whole
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def path(self) -> Path | None:
        """Where the whole output is. A file that holds only a part of it is not it."""
        return None if self._file is None or self._problem else Path(self._file.name)

    @property
    def lines(self) -> int:
        """A last line counts without a line end, too; an empty one does not."""
        return self._ends + bool(self._kept and not self._kept.endswith(b"\n"))

    def take(self, data: bytes) -> str:
        """Keep a piece, and return it as text: a character that two pieces share comes whole."""
        raise NotImplementedError("Lab 8.5: OutputTail.take()")

    def _keep_all(self) -> None:
        """Begin the file. All that came so far is still in memory."""
        raise NotImplementedError("Lab 8.5: OutputTail._keep_all()")

    def _write(self, file: BinaryIO, data: bytes | bytearray) -> None:
        raise NotImplementedError("Lab 8.5: OutputTail._write()")

    def close(self) -> None:
        """Close the file, if there is one. What fails even then is remembered as the problem."""
        raise NotImplementedError("Lab 8.5: OutputTail.close()")

    def finish(self, status: str) -> tuple[str, str]:
        """What fits into the limits, and the note that belongs to it. The file is closed.

        `status` is what else there is to say. It stands at the note's end, and counts as well.
        """
        raise NotImplementedError("Lab 8.5: OutputTail.finish()")

    def _last_lines(self, data: bytes, room: int, most: int) -> tuple[list[str], bool]:
        """The lines at the end that fit, and whether it is one line that begins inside."""
        raise NotImplementedError("Lab 8.5: OutputTail._last_lines()")

    def _note(self, first: int, *, inside: bool) -> str:
        lines = f"The end of line {first}" if inside else f"Lines {first}-{self.lines}"
        if self._problem:
            whole = f"The whole output could not be kept: {self._problem}"
        else:
            whole = f"The whole output is in {self.path}"
        return f"[{lines} of {self.lines}. {whole}]"


def _bytes(note: str) -> int:
    """How many a note takes, with the line end that sets it off."""
    return len(note.encode("utf-8")) + 1 if note else 0


def _lines(note: str) -> int:
    return note.count("\n") + 1 if note else 0
