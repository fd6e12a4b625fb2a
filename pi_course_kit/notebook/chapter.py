"""`chapter("03")`: the first line of every notebook."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pi_course_kit.notebook import kernel

if TYPE_CHECKING:
    from pi_course_kit.notebook.lesson import Chapter


def chapter(name: str, mine: str | os.PathLike[str] | None = None) -> Chapter:
    """Open a chapter in this kernel: `pi_course` is its finished package from now on.

    `mine` (or PI_COURSE_SOURCE) names a practice folder to run on instead, as strictly.
    One kernel has one source; another one needs a restart.
    """
    kernel.short_errors()
    kernel.require()
    from pi_course_kit import checkpoint
    from pi_course_kit.notebook.lesson import Chapter

    found = checkpoint.find(str(name))
    return Chapter(found, kernel.serve(found, mine))
