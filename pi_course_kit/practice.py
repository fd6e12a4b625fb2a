"""Make a practice folder, and find the one a command is run in.

The folder appears under its name only when it is whole: it is made beside and renamed.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pi_course_kit import __version__, checkpoint, insertion, learning, snapshot, symbols
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.data import checkout
from pi_course_kit.errors import CourseError
from pi_course_kit.workspace import progress_for, workspace

MARKER = ".pi-course.json"

PYPROJECT = """\
[tool.pytest.ini_options]
pythonpath = ["."]
testpaths = ["tests"]
addopts = "--import-mode=importlib -p no:cacheprovider"

[tool.basedpyright]
typeCheckingMode = "strict"
pythonVersion = "3.11"
include = ["pi_course"]
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A new practice folder: the files in it, and those kept from the learner's earlier one.

    `before` is the folder of this chapter that the progress file knew until now.
    """

    folder: Path
    files: tuple[str, ...]
    kept: tuple[str, ...]
    before: Path | None


def practice_folder(path: Path | None = None) -> Path:
    """The practice folder at `path`, or the nearest one around the current folder."""
    start = Path.cwd() if path is None else path.absolute()
    around = (start, *start.parents) if path is None else (start,)
    for folder in around:
        if (folder / MARKER).is_file():
            return folder
    if not start.is_dir():
        what = "is a file, not a practice folder" if start.exists() else "does not exist"
        raise CourseError(f"{start} {what}. Make one with `pi-course practice 01`.")
    raise CourseError(
        f"{start} is not a practice folder (it has no {MARKER}). "
        "Make one with `pi-course practice 01`, or name one: `pi-course check DIR`."
    )


def chapter_of(folder: Path) -> Checkpoint:
    """The chapter a practice folder belongs to; CourseError for a marker we can't trust."""
    path = folder / MARKER
    try:
        marker: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CourseError(
            f"{path} can't be read ({error}). It holds one line of JSON that `practice` wrote: "
            "make a new folder and copy your pi_course/ into it."
        ) from error
    fields = cast(dict[str, object], marker if isinstance(marker, dict) else {})
    kit, name = fields.get("kit"), fields.get("chapter")
    if not isinstance(kit, str) or not isinstance(name, str):
        raise CourseError(
            f"{path} lacks its kit or chapter. "
            "Make a new folder with `pi-course practice` and copy your pi_course/ into it."
        )
    if _version(kit) > _version(__version__):
        raise CourseError(
            f"{folder} was made by pi-course {kit}; this is {__version__}. "
            "Update pi-course; the folder was not touched."
        )
    chapter = checkpoint.find(name)
    _refuse_other(folder, chapter, fields.get("target"))
    return chapter


def _refuse_other(folder: Path, chapter: Checkpoint, target: object) -> None:
    """A folder of another chapter would be green in this one: it holds our code of it."""
    if target == snapshot.target_digest(chapter.number):
        return
    for other in checkpoint.folders():
        number = int(other.name[:2])
        if number != chapter.number and target == snapshot.target_digest(number):
            raise CourseError(
                f"{folder / MARKER} says chapter {chapter.nn}, but the folder was made for "
                f"{other.name[:2]}. Put the chapter back, or make a new folder."
            )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in text.split("."))


def create(chapter: Checkpoint, place: Path | None = None, source: Path | None = None) -> Made:
    """Write practice(N) to `place` (default: the workspace), starting from `source` if given."""
    folder = _free_place(chapter, place or workspace() / chapter.id, default=place is None)
    contents = {
        path: file.read_bytes() for path, file in snapshot.practice_files(chapter.number).items()
    }
    kept, notes = _keep(chapter, contents, source) if source is not None else ((), "")
    contents["LEARNING.md"] = learning.text(chapter, notes).encode()
    contents["pyproject.toml"] = PYPROJECT.encode()
    contents[MARKER] = _marker(chapter, source).encode()
    made: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        made.chmod(0o755)
        for path, data in contents.items():
            file = made / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        made.rename(folder)
    except OSError as error:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        raise CourseError(
            f"{folder} can't be written: {error.strerror or error}. "
            f"Nothing was left there; name another place: `pi-course practice {chapter.nn} DIR`."
        ) from error
    progress = progress_for(folder)
    known = progress.chapter(chapter.id).get("folder")
    progress.record_started(chapter.id, folder)
    before = Path(known) if known and Path(known) != folder and Path(known).is_dir() else None
    return Made(folder, tuple(sorted(contents)), kept, before)


def _marker(chapter: Checkpoint, source: Path | None) -> str:
    return (
        json.dumps(
            {
                "kit": __version__,
                "chapter": chapter.id,
                "parent": snapshot.parent_digest(chapter.number),
                "target": snapshot.target_digest(chapter.number),
                "from": source.name if source else None,
            }
        )
        + "\n"
    )


def _free_place(chapter: Checkpoint, place: Path, *, default: bool) -> Path:
    """Refuse every place where something could be lost; create nothing."""
    folder = place.absolute()
    other = f"name another place: `pi-course practice {chapter.nn} DIR`"
    if folder.is_symlink():
        raise CourseError(f"{folder} is a symbolic link. A practice folder is a real one: {other}.")
    resolved = folder.resolve()
    if resolved in (Path.home().resolve(), Path(resolved.anchor)):
        raise CourseError(f"{folder} is your home or the root of the disk; {other}.")
    root = checkout()
    if root is not None and resolved.is_relative_to(root.resolve()):
        raise CourseError(
            f"{folder} lies inside the course's checkout, where your code would mix with ours; "
            f"{other}."
        )
    if folder.exists():
        work = f"go on there (`pi-course check {folder}`) or " if default else ""
        raise CourseError(f"{folder} exists already and was not touched; {work}{other}.")
    around = next(path for path in folder.parents if path.exists())
    if not around.is_dir():
        raise CourseError(f"{folder} can't be written: {around} is a file; {other}.")
    return folder


def _keep(
    chapter: Checkpoint, contents: dict[str, bytes], source: Path
) -> tuple[tuple[str, ...], str]:
    """Put the learner's own files into `contents`; returns their paths and what differs."""
    source = practice_folder(source)
    earlier = chapter_of(source)
    if earlier.number >= chapter.number:
        raise CourseError(
            f"{source} is chapter {earlier.nn}; --from takes a folder of a chapter before "
            f"{chapter.nn}."
        )
    _require_green(source, earlier)
    notes: list[str] = []
    kept: list[str] = []
    given = {path for path in chapter.given if ":" not in path}
    for file in sorted((source / "pi_course").rglob("*.py")):
        path = file.relative_to(source).as_posix()
        if path in given:
            continue
        data = file.read_bytes()
        if path in contents and path in chapter.files and chapter.starters:
            data, note = _append_starters(chapter, path, data, contents[path])
            notes.append(note)
        contents[path] = data
        kept.append(path)
    return tuple(kept), "\n".join(note for note in notes if note)


def _require_green(source: Path, earlier: Checkpoint) -> None:
    """The learner's own tests so far must hold, the chapter's and those before it."""
    from pi_course_kit import runner  # pytest's side; only --from needs it

    tests = list(snapshot.test_files(earlier.number).values())
    run = runner.run_tests(source, earlier.number, tests=tests)
    if run.green:
        return
    red = [f"{test.id} of {test.file}" for test in run.tests if test.outcome != "passed"]
    why = f"{red[0]} is red" if red else run.sentence or run.error or "no test ran"
    raise CourseError(
        f"{source} is not green up to chapter {earlier.nn}, so nothing was made: "
        f"{why.rstrip('.')}. Mend it there, or leave out --from."
    )


def _append_starters(
    chapter: Checkpoint, path: str, mine: bytes, parent: bytes
) -> tuple[bytes, str]:
    """The learner's file plus the starters of names it lacks; a note for what can't be added."""
    owners = symbols.owners(chapter, path)
    source, starter = mine.decode(), parent.decode()
    there = set(symbols.names(source))
    changed = [name for name in owners if name in there]
    for lab in chapter.labs:
        given = symbols.given(chapter, path)
        source = insertion.add(source, starter, owners, lab.id, cut=True, given=given).source
    if not changed:
        return source.encode(), ""
    return source.encode(), learning.difference(chapter, path, mine.decode(), starter, changed)
