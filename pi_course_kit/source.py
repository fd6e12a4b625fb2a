"""Where `pi_course` comes from: one folder, and nowhere else.

A finder in front of all others answers every import below `pi_course` from that folder or
refuses it by name. Otherwise a module that is missing there would be found in an installed
pi-course, and a learner would be told that they are done.

Code is compiled from the file's bytes each time. Python takes a .pyc for fresh when second
and size agree, so two quick edits of equal size would run the old code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from pi_course_kit.errors import CourseError

PACKAGE = "pi_course"
MOST_BYTES = 1_000_000  # of one file; parsing a huge one takes longer than a check may


class PackageFinder(MetaPathFinder):
    """Serves `pi_course` from `folder/pi_course`; `loaded` is path -> sha256 of what ran.

    A folder of None refuses every import: the guard collects the tests in this state.
    """

    def __init__(self, folder: Path | None, brings: Mapping[str, str], owner: str) -> None:
        self.folder = folder
        self.brings = brings
        self.owner = owner
        self.loaded: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PACKAGE and not fullname.startswith(PACKAGE + "."):
            return None
        if self.folder is None:
            raise ModuleNotFoundError(
                f"{fullname} is imported at the top of a test file; import it inside the tests.",
                name=fullname,
            )
        stem = self.folder.joinpath(*fullname.split("."))
        if (init := stem / "__init__.py").is_file():
            self._refuse_link(init)
            return importlib.util.spec_from_file_location(
                fullname,
                init,
                loader=_Loader(fullname, str(init), self),
                submodule_search_locations=[str(stem)],
            )
        if fullname != PACKAGE and (file := stem.with_name(stem.name + ".py")).is_file():
            self._refuse_link(file)
            return importlib.util.spec_from_file_location(
                fullname, file, loader=_Loader(fullname, str(file), self)
            )
        raise ModuleNotFoundError(self._refusal(fullname, stem), name=fullname)

    def _refuse_link(self, file: Path) -> None:
        """A link that leaves the folder would bring another's code in under this one's name."""
        assert self.folder is not None
        if not file.resolve().is_relative_to(self.folder.resolve()):
            raise ModuleNotFoundError(
                f"{self.short(str(file))} is a link that leads out of {self.owner}: "
                "put the file itself there.",
                name=PACKAGE,
            )

    def _refusal(self, fullname: str, stem: Path) -> str:
        if stem.is_dir():
            init = f"{fullname.replace('.', '/')}/__init__.py"
            return f"{init} is missing in {self.owner}: without it Python takes no package there."
        if fullname == PACKAGE:
            return f"There is no pi_course/ in {self.owner} ({self.folder})."
        chapter = self.brings.get(fullname)
        origin = f"; {chapter} brings it." if chapter else "."
        return f"{fullname} is not in {self.owner}{origin}"

    def ran(self, path: str, data: bytes) -> None:
        """Called with each file and its bytes right before its code runs."""
        self.loaded[self.short(path)] = hashlib.sha256(data).hexdigest()

    def short(self, path: str) -> str:
        """A file's path as the learner names it: "pi_course/messages.py"."""
        if self.folder is not None and Path(path).is_relative_to(self.folder):
            return Path(path).relative_to(self.folder).as_posix()
        return path


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, finder: PackageFinder) -> None:
        super().__init__(fullname, path)
        self._finder = finder

    def get_code(self, fullname: str) -> CodeType:
        # The inherited one would look for a .pyc first.
        data = self.get_data(self.path)
        if len(data) > MOST_BYTES:
            size = f"{len(data) / 1e6:.0f} MB"
            raise ImportError(
                f"{self._finder.short(self.path)} has {size}: no chapter's file has 1."
            )
        self._finder.ran(self.path, data)
        return compile(data, self.path, "exec", dont_inherit=True)


def serve(folder: Path, brings: Mapping[str, str], owner: str) -> PackageFinder:
    """Let `import pi_course` mean `folder/pi_course` from now on, in this process.

    `brings` is module -> chapter, for the text of a refusal; `owner` names the folder there
    ("your folder", "chapter 03"). A process can have one source: objects of two of them would
    not be comparable.
    """
    finder = served()
    if finder is not None and finder.folder == folder:
        return finder
    if finder is not None or PACKAGE in sys.modules:
        there = finder.folder if finder else getattr(sys.modules[PACKAGE], "__file__", None)
        raise CourseError(
            f"pi_course was already imported from {there}, so {folder} can't be served in this "
            "process. Restart the kernel (or Python) and choose the source first."
        )
    finder = PackageFinder(folder, brings, owner)
    sys.meta_path.insert(0, finder)
    return finder


def served() -> PackageFinder | None:
    """The finder of this process, if there is one."""
    for finder in sys.meta_path:
        if isinstance(finder, PackageFinder):
            return finder
    return None


def brought_by(checkpoints: Path) -> dict[str, str]:
    """module -> the chapter whose target brings it first, read from the folders' names."""
    found: dict[str, str] = {}
    for folder in sorted(p for p in checkpoints.iterdir() if p.name[:2].isdigit()):
        target = folder / "target"
        for file in sorted((target / PACKAGE).rglob("*.py")):
            parts = file.relative_to(target).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            found.setdefault(".".join(parts), f"chapter {folder.name[:2]}")
    return found
