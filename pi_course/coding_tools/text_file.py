"""A file that may be anything: opened without waiting, and refused by what is found in it."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from pi_course.coding_tools.refusal import ToolRefused

BOM = b"\xef\xbb\xbf"
HEAD_BYTES = 4096

# A pipe would keep open() waiting for ever. A link is followed when the path is checked; one that
# has taken the file's place since then is not followed.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)

_KINDS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; OSError for what is none."""
    descriptor = os.open(path, _FLAGS)
    try:
        must_be_file(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def must_be_file(mode: int) -> None:
    """OSError for the mode of anything but a file: EISDIR for a folder, ENXIO for the rest."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))


def decode(data: bytes, name: str, *, head: bytes | None = None) -> str:
    """UTF-8 text, or ToolRefused that says what was found. `head` is the file's beginning."""
    start = data if head is None else head
    if b"\0" in start or b"\0" in data:
        raise ToolRefused(f"{name}: {_kind(start)}, and not UTF-8 text: it holds NUL bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x}"
        raise ToolRefused(f"{name}: {_kind(start)}, and not UTF-8 text: {found}") from None


def _kind(head: bytes) -> str:
    """What the beginning of a file that is no text says about it."""
    for beginning, kind in _KINDS:
        if head.startswith(beginning):
            return f"it is {kind}"
    return "it is binary" if b"\0" in head else "it has another encoding"
