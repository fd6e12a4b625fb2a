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
        if not given:
            raise ToolRefused("path is empty: name a file, such as README.md")
        if "\0" in given:
            raise ToolRefused(f"{given!r}: no path holds a NUL character")
        return self.root / os.path.expanduser(given)

    def spelled(self, given: str) -> str:
        """The path, its last name as the disk has it where only one neighbour looks like that.

        Screenshots are named with odd spaces and curly quotes. A model can't see that and writes
        the plain name. For read and edit, which take a file that is there: a write to such a name
        would replace another file.
        """
        path = self.to_read(given)
        if os.path.lexists(path) or path.name != Path(given).name:
            return given
        found = spelled_on_disk(path, plain)
        return given if found == path else str(Path(given).parent / found.name)

    def to_write(self, given: str) -> Path:
        return self._real(given, (self.root,))

    def to_read(self, given: str) -> Path:
        return self._real(given, (self.root, *self._readable))

    def _real(self, given: str, roots: Iterable[Path]) -> Path:
        """The path with all links followed, also those that lead to nothing yet."""
        path = self._inside(given, self.locate(given), roots)
        if os.path.lexists(path):
            return path
        return self._inside(given, spelled_on_disk(path, canonical), roots)

    def _inside(self, given: str, path: Path, roots: Iterable[Path]) -> Path:
        must_be_there(self.root)
        real = Path(os.path.realpath(path))
        if self._contained and not any(real.is_relative_to(root) for root in roots):
            raise ToolRefused(f"{given}: it leads out of the workspace, where files are off limits")
        return real


def must_be_there(root: Path) -> None:
    """A workspace that has gone is not made again, and a link in its place may lead anywhere."""
    if not root.is_dir() or os.path.realpath(root) != str(root):
        raise ToolRefused("the workspace folder is not there any more: nothing was done")


def spelled_on_disk(path: Path, form: Callable[[str], str]) -> Path:
    """The one neighbour whose name has the same form as that of `path`, or `path` itself.

    Some systems take accents apart, so even the same letters may be spelled differently. A link is
    never taken: the file that it leads to has another name, and so its changes another queue.
    """
    try:
        names = os.listdir(path.parent)
    except OSError:
        return path  # whoever opens it gets the reason
    alike = [name for name in names if form(name) == form(path.name)]
    if len(alike) != 1 or os.path.islink(path.parent / alike[0]):
        return path
    return path.parent / alike[0]
