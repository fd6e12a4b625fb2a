"""The teaching kit around pi_course: checkpoints, practice folders, checks and notebooks.

It is a package of its own because a learner's half-finished `pi_course` shadows ours
and must never take the tools with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pi_course_kit.notebook.chapter import chapter

__all__ = ["__version__", "chapter"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line must not pay for the notebook's imports.
    if name == "chapter":
        from pi_course_kit.notebook.chapter import chapter

        return chapter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
