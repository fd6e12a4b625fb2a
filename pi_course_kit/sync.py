"""Keep what is derived equal to what it comes from: pi_course/, starters, generated pages.

A fix in an old layer is carried into later versions of the same file by a three-way merge,
so that it is made once and never copied by hand.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from pi_course_kit import checkpoint, pages, snapshot, symbols
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.data import checkout
from pi_course_kit.errors import CourseError


def sync(*, check: bool) -> list[str]:
    """Write (or only name) each derived file that differs from its source."""
    root = _root()
    wanted = expected(root)
    stale = [
        path for path, data in wanted.items() if not path.is_file() or path.read_bytes() != data
    ]
    there = {p for p in (root / "pi_course").rglob("*.py")}
    extra = sorted(path for path in there if path not in wanted)
    if not check:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[path])
        for path in extra:
            path.unlink()
    return [path.relative_to(root).as_posix() for path in (*stale, *extra)]


def expected(root: Path) -> dict[Path, bytes]:
    """Every derived file of the checkout with the bytes that it should have."""
    chapters = checkpoint.checkpoints()
    last = snapshot.snapshot_files(chapters[-1].number)
    files = {root / path: file.read_bytes() for path, file in last.items()}
    for chapter in chapters:
        files |= starters(chapter)
    readme = root / "README.md"
    files[readme] = pages.readme(readme.read_text(encoding="utf-8"), chapters).encode()
    files[root / "docs/glossary.md"] = pages.glossary(chapters).encode()
    files[root / "docs/errors.md"] = pages.error_tree(last).encode()
    return files


def starters(chapter: Checkpoint) -> dict[Path, bytes]:
    """The chapter's parent files: given ones whole, teaching files cut if it has starters."""
    parent = chapter.folder / "parent"
    target = snapshot.snapshot_files(chapter.number)
    files = {parent / path: target[path].read_bytes() for path in chapter.given if ":" not in path}
    if chapter.starters and chapter.mode == "rebuild":
        for path in chapter.files:
            source = target[path].read_text(encoding="utf-8")
            cut = symbols.starter(source, symbols.owners(chapter, path))
            files[parent / path] = cut.encode()
    return files


def carry(chapter: Checkpoint, path: str, base: str) -> list[str]:
    """Merge the change since `base` in the chapter's version of `path` into later versions."""
    root = _root()
    fixed = chapter.folder / "target" / path
    if not fixed.is_file():
        raise CourseError(f"Chapter {chapter.nn} has no version of {path} of its own.")
    old = _at(root, base, fixed)
    merged: list[str] = []
    for later in checkpoint.checkpoints():
        version = later.folder / "target" / path
        if later.number <= chapter.number or not version.is_file():
            continue
        with tempfile.TemporaryDirectory() as folder:
            before = Path(folder) / "before"
            before.write_bytes(old)
            # The next version merges against what this one was before the fix reached it.
            old_version = version.read_bytes()
            done = subprocess.run(
                ["git", "merge-file", "-p", "-q", str(version), str(before), str(fixed)],
                capture_output=True,
            )
        if done.returncode != 0:
            raise CourseError(
                f"{version.relative_to(root)}: the fix conflicts with chapter {later.nn}'s change. "
                f"Merge it by hand there, then carry on from chapter {later.nn}; "
                f"merged so far: {', '.join(merged) or 'none'}."
            )
        version.write_bytes(done.stdout)
        old, fixed = old_version, version
        merged.append(later.nn)
    return merged


def _at(root: Path, base: str, file: Path) -> bytes:
    name = file.relative_to(root).as_posix()
    done = subprocess.run(["git", "show", f"{base}:{name}"], capture_output=True, cwd=root)
    if done.returncode != 0:
        raise CourseError(f"git has no {name} at {base!r}. Name the revision before your fix.")
    return done.stdout


def _root() -> Path:
    root = checkout()
    if root is None:
        raise CourseError("This is an installed pi-course. Run the dev commands in a checkout.")
    return root
