"""Where the course's own files lie: in the checkout, else inside the installed wheel."""

from __future__ import annotations

import os
from pathlib import Path

from pi_course_kit.errors import CourseError

PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The checkout this kit runs from, or None for an installed wheel."""
    root = PACKAGE.parent
    if (root / "pyproject.toml").is_file() and (root / "checkpoints").is_dir():
        return root
    return None


def data_dir(kind: str) -> Path:
    """The folder of `checkpoints` or `notebooks`.

    The checkout comes first: an editable install leaves a stale copy of the data behind.
    PI_COURSE_DATA names another course's folder; `verify --self-test` plants its faults in one.
    """
    chosen = os.environ.get("PI_COURSE_DATA")
    folder = (Path(chosen) if chosen else checkout() or PACKAGE / "_data") / kind
    if not folder.is_dir():
        raise CourseError(
            f"The course's {kind} are not at {folder}. "
            "Was the checkout moved or the install cut short? Install pi-course again."
        )
    return folder
