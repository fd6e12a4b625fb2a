"""The kernel that a notebook runs in: is it fit, and where does its `pi_course` come from.

This module is imported before the kernel's Python is known to be new enough, so it keeps to
what older ones can read.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi_course_kit.errors import CourseError

if TYPE_CHECKING:
    from pi_course_kit.checkpoint import Checkpoint
    from pi_course_kit.source import PackageFinder

NEEDED = (3, 11)


def require(version: tuple[int, int] | None = None, package: str = "pydantic") -> None:
    """Refuse a kernel that can't run the chapters, in one sentence."""
    have = version or sys.version_info[:2]
    if have < NEEDED:
        raise CourseError(
            f"This kernel runs Python {have[0]}.{have[1]}; the course needs 3.11 or newer. "
            "Choose the kernel of the course's environment, or start with `pi-course lab`."
        )
    if importlib.util.find_spec(package) is None:
        raise CourseError(
            f"This kernel's Python has no {package}, so it is not the course's environment. "
            "Choose its kernel, or start with `pi-course lab`."
        )


def serve(checkpoint: Checkpoint, mine: str | os.PathLike[str] | None) -> PackageFinder:
    """Let `pi_course` mean the chapter's snapshot, or the learner's folder, in this kernel.

    Programs that the kernel starts get the same folder through PYTHONPATH.
    """
    from pi_course_kit import snapshot, source
    from pi_course_kit.data import data_dir

    chosen = mine or os.environ.get("PI_COURSE_SOURCE")
    if chosen:
        folder, owner = _own_folder(Path(chosen)), "your folder"
    else:
        folder, owner = snapshot.cached_snapshot(checkpoint.number), f"chapter {checkpoint.nn}"
    before = source.served()
    if before is not None and before.folder != folder:
        raise CourseError(
            f"This kernel already runs on {before.owner}, and objects of two sources do not mix. "
            f"Restart the kernel (menu Kernel, Restart) to run on {owner}."
        )
    finder = source.serve(folder, source.brought_by(data_dir("checkpoints")), owner)
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [path for path in others if path and path != str(folder)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *kept])
    return finder


def _own_folder(folder: Path) -> Path:
    folder = folder.expanduser().resolve()
    if not (folder / "pi_course").is_dir():
        raise CourseError(
            f"There is no pi_course/ in {folder}. Name a practice folder: "
            "`pi-course practice 03` makes one and prints where."
        )
    return folder


def short_errors() -> None:
    """Let the kernel show a CourseError as its sentence: the kit's own frames teach nothing."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        shell.set_custom_exc((CourseError,), _one_line)


def _one_line(
    shell: Any, kind: type[Exception], error: Exception, *_: object, **__: object
) -> None:
    shell._showtraceback(kind, error, [f"{kind.__name__}: {error}"])
