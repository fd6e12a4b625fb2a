"""Which file a path means, and whether it lies in the workspace.

This is a guardrail against a model's mistakes, and no sandbox. Between the check and the moment
when the file is opened, another process can put a link into the place of a folder. And whoever
may run commands needs no file tool to reach any file.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from pi_course.coding_tools.lookalikes import canonical, plain
from pi_course.coding_tools.refusal import ToolRefused


class Workspace:
    """The folder at which paths start. `readable` are folders outside that read may look into."""

    def __init__(
        self, root: Path, *, contained: bool = True, readable: Iterable[Path] = ()
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._contained = contained
        self._readable = tuple(Path(os.path.realpath(folder)) for folder in readable)

    def locate(self, given: str) -> Path:
        """The place that a path names, links and `..` as they are. Nothing is checked yet."""
        raise NotImplementedError("Lab 8.2: Workspace.locate()")

    def spelled(self, given: str) -> str:
        """The path, its last name as the disk has it where only one neighbour looks like that.

        Screenshots are named with odd spaces and curly quotes. A model can't see that and writes
        the plain name. For read and edit, which take a file that is there: a write to such a name
        would replace another file.
        """
        raise NotImplementedError("Lab 8.2: Workspace.spelled()")

    def to_write(self, given: str) -> Path:
        raise NotImplementedError("Lab 8.2: Workspace.to_write()")

    def to_read(self, given: str) -> Path:
        raise NotImplementedError("Lab 8.2: Workspace.to_read()")

    def _real(self, given: str, roots: Iterable[Path]) -> Path:
        """The path with all links followed, also those that lead to nothing yet."""
        raise NotImplementedError("Lab 8.2: Workspace._real()")

    def _inside(self, given: str, path: Path, roots: Iterable[Path]) -> Path:
        raise NotImplementedError("Lab 8.2: Workspace._inside()")


def must_be_there(root: Path) -> None:
    """A workspace that has gone is not made again, and a link in its place may lead anywhere."""
    raise NotImplementedError("Lab 8.2: must_be_there()")


def spelled_on_disk(path: Path, form: Callable[[str], str]) -> Path:
    """The one neighbour whose name has the same form as that of `path`, or `path` itself.

    Some systems take accents apart, so even the same letters may be spelled differently. A link is
    never taken: the file that it leads to has another name, and so its changes another queue.
    """
    raise NotImplementedError("Lab 8.2: spelled_on_disk()")
