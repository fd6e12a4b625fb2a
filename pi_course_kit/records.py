"""The record file of a run: lines of JSON, each signed with the run's key and its own number.

A line that was added, changed, moved or left out no longer fits its signature. The key comes with
the run and is kept in one closure: no attribute of anything leads to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from json import encoder
from pathlib import Path
from typing import Any, Protocol

Record = Mapping[str, Any]
FORGED = "forged"


class Write(Protocol):
    def __call__(self, kind: str, /, **facts: Any) -> None: ...


def recorder(path: Path, key: bytes) -> tuple[Write, Callable[[], bool]]:
    """What appends a record, and what says whether this process is a fork, which stays silent."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    owner, number, lock = os.getpid(), 0, threading.RLock()
    # Bound here, and the encoder in C, so that learner code which patches a module changes nothing.
    put, getpid, dumps, signed = os.write, os.getpid, _dumps(), _sign

    def forked() -> bool:
        return getpid() != owner

    def write(kind: str, /, **facts: Any) -> None:
        nonlocal number
        if not forked():
            with lock:
                line = dumps({"kind": kind, **facts})
                put(file, signed(line, number, key) + b" " + line + b"\n")
                number += 1

    return write, forked


def read_records(path: Path, key: bytes) -> list[Record]:
    """The whole lines of a record file; a line that a kill cut short is left out.

    What `recorder` did not write is a record of kind "forged".
    """
    records: list[Record] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1] if path.exists() else ()):
        signature, _, text = line.partition(b" ")
        mine = signature == _sign(text, number, key)
        records.append(json.loads(text) if mine else {"kind": FORGED})
    return records


def _dumps() -> Callable[[object], bytes]:
    make: Any = getattr(encoder, "c_make_encoder", None)
    if make is None:  # a Python without the accelerator
        plain = json.JSONEncoder().encode
        return lambda value: plain(value).encode()
    text = encoder.encode_basestring_ascii
    chunks: Any = make(None, None, text, None, ": ", ", ", False, False, True)
    return lambda value: "".join(chunks(value, 0)).encode()


def _sign(
    text: bytes,
    number: int,
    key: bytes,
    blake: Callable[..., Any] = hashlib.blake2b,
) -> bytes:
    return blake(b"%d %b" % (number, text), key=key, digest_size=16).hexdigest().encode()
