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
    raise NotImplementedError("Lab 8.1: open_file()")


def must_be_file(mode: int) -> None:
    """OSError for the mode of anything but a file: EISDIR for a folder, ENXIO for the rest."""
    raise NotImplementedError("Lab 8.1: must_be_file()")


def decode(data: bytes, name: str, *, head: bytes | None = None) -> str:
    """UTF-8 text, or ToolRefused that says what was found. `head` is the file's beginning."""
    raise NotImplementedError("Lab 8.1: decode()")


def _kind(head: bytes) -> str:
    """What the beginning of a file that is no text says about it."""
    raise NotImplementedError("Lab 8.1: _kind()")
