"""Snapshots: what the learner's package looks like after chapter N.

checkpoints/NN/target holds only the files that chapter NN adds or changes. snapshot(N) is the
newest version of each path in targets 0..N; practice(N) is snapshot(N-1) with parent(N) on top.
A snapshot is a mapping from the path in the practice folder to the file that it comes from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pi_course_kit import checkpoint
from pi_course_kit.errors import CourseError

Files = Mapping[str, Path]


@cache
def snapshot_files(number: int) -> Files:
    """The package after chapter `number`: "pi_course/messages.py" -> its file in the course."""
    files: dict[str, Path] = {}
    for folder in checkpoint.folders():
        if int(folder.name[:2]) > number:
            break
        files |= _tree(folder / "target")
        for path in _deletions(folder):
            files.pop(path, None)
    return MappingProxyType(dict(sorted(files.items())))


@cache
def test_files(number: int) -> Files:
    """The focused tests of chapters 0..number: "tests/test_03_message_ir.py" -> file."""
    files: dict[str, Path] = {}
    for folder in checkpoint.folders():
        if int(folder.name[:2]) <= number:
            files |= {
                path: file for path, file in _tree(folder / "parent").items() if _is_test(path)
            }
    return MappingProxyType(files)


def practice_files(number: int) -> Files:
    """snapshot(N-1) + parent(N) + the tests so far; an observed chapter starts at its target."""
    chapter = checkpoint.find(str(number))
    if chapter.mode == "observe":
        package = dict(snapshot_files(number))
    else:
        package = dict(snapshot_files(number - 1))
        for path in chapter.deletions:
            package.pop(path, None)
        package |= {p: f for p, f in _tree(chapter.folder / "parent").items() if not _is_test(p)}
    return MappingProxyType(dict(sorted({**package, **test_files(number)}.items())))


def digest(files: Files) -> str:
    """sha256 over sorted paths and bytes; each is preceded by its length, so nothing can slide."""
    total = hashlib.sha256()
    for path, file in sorted(files.items()):
        for part in (path.encode(), file.read_bytes()):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()


def target_digest(number: int) -> str:
    return digest(snapshot_files(number))


def parent_digest(number: int) -> str:
    """The target digest of the chapter before; chapter 00 starts from nothing."""
    return digest(snapshot_files(number - 1))


def write(files: Files, folder: Path) -> None:
    """Copy the bytes of `files` below `folder`."""
    for path, file in files.items():
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())


def cached_snapshot(number: int) -> Path:
    """A folder that holds snapshot(number) as pi_course/, in the user's cache.

    Its name is the digest, so a folder is right or absent: it is made beside and renamed.
    """
    files = snapshot_files(number)
    name = digest(files)[:16]
    home = _cache_home()
    folder = home / name
    if folder.is_dir() and digest(_tree(folder))[:16] == name:
        return folder
    try:
        home.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=home))
        write(files, made)
        try:
            made.rename(folder)
        except OSError:
            # Another process was first; its folder has the same bytes.
            shutil.rmtree(made, ignore_errors=True)
            if not folder.is_dir():
                raise
    except OSError as error:
        raise CourseError(
            f"The cache folder {home} can't be written: {error.strerror or error}. "
            "Free it, or set PI_COURSE_CACHE to a folder that can."
        ) from error
    return folder


def _cache_home() -> Path:
    if chosen := os.environ.get("PI_COURSE_CACHE"):
        return Path(chosen).absolute()
    import platformdirs  # here, since only notebooks and checks of snapshots need it

    return platformdirs.user_cache_path("pi-course") / "snapshots"


def _tree(folder: Path) -> dict[str, Path]:
    found = {
        file.relative_to(folder).as_posix(): file
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    return dict(sorted(found.items()))


def _is_test(path: str) -> bool:
    return path.startswith("tests/")


def _deletions(folder: Path) -> tuple[str, ...]:
    # Parsing every checkpoint.toml would be most of the cost of `practice`.
    manifest = folder / "checkpoint.toml"
    if manifest.is_file() and "\ndeletions" in manifest.read_text(encoding="utf-8"):
        return checkpoint.find(folder.name).deletions
    return ()
