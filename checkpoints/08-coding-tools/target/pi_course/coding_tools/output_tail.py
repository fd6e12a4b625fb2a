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
        self.bytes += len(data)
        self._ends += data.count(b"\n")
        self._kept += data
        if self._file is not None:
            self._write(self._file, data)
        elif self.bytes > self._limits.bytes or self.lines > self._limits.lines:
            self._keep_all()
        if len(self._kept) > 2 * self._limits.bytes:
            del self._kept[: -self._limits.bytes]
        return self._decoder.decode(data)

    def _keep_all(self) -> None:
        """Begin the file. All that came so far is still in memory."""
        if self._file is None and not self._problem:
            try:
                self._file = self._folder.new_file()
            except OSError as error:
                self._problem = error.strerror or "no file could be made"
            else:
                self._write(self._file, self._kept)

    def _write(self, file: BinaryIO, data: bytes | bytearray) -> None:
        if not self._problem:
            try:
                file.write(data)
            except OSError as error:  # the disk is full; the command goes on
                self._problem = error.strerror or "it could not be written"

    def close(self) -> None:
        """Close the file, if there is one. What fails even then is remembered as the problem."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._problem = self._problem or error.strerror or "it could not be written"

    def finish(self, status: str) -> tuple[str, str]:
        """What fits into the limits, and the note that belongs to it. The file is closed.

        `status` is what else there is to say. It stands at the note's end, and counts as well.
        """
        data = self._kept.decode("utf-8", "replace").encode("utf-8")
        room = self._limits.bytes - _bytes(status)
        if self.bytes == len(self._kept) and len(data) <= room:
            if self.lines <= self._limits.lines - _lines(status):
                self.close()
                return data.decode("utf-8"), status
        self._keep_all()
        self.close()
        notes = [self._note(self.lines, inside=inside) for inside in (False, True)]
        room = max(LEAST_SHOWN, room - max(_bytes(note) for note in notes))
        lines, inside = self._last_lines(data, room, self._limits.lines - _lines(status) - 1)
        note = self._note(self.lines - len(lines) + 1, inside=inside)
        end = "\n" if data.endswith(b"\n") else ""
        return "\n".join(lines) + end, "\n".join(filter(None, [note, status]))

    def _last_lines(self, data: bytes, room: int, most: int) -> tuple[list[str], bool]:
        """The lines at the end that fit, and whether it is one line that begins inside."""
        cut = len(data) > room
        if cut:
            data = data[-room:]
            while data[0] & 0xC0 == 0x80:  # the rest of a character that was cut through
                data = data[1:]
        lines = data.decode("utf-8").removesuffix("\n").split("\n")
        if cut and len(lines) > 1:
            del lines[0]
            cut = False
        return lines[-most:], cut

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
