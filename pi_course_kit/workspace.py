"""The learner's workspace: one folder with notebooks, practice folders and the progress file.

Progress is evidence: the hashes of the files that were green, never a mark set by hand. A file
that changed since puts the mark out.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from pi_course_kit import __version__
from pi_course_kit.data import checkout, data_dir
from pi_course_kit.errors import CourseError

PROGRESS = "progress.json"
State = Literal["new", "started", "green", "accepted"]


def workspace(start: Path | None = None) -> Path:
    """The workspace that `start` lies in, else the default one (it need not exist yet)."""
    if chosen := os.environ.get("PI_COURSE_WORKSPACE"):
        return Path(chosen).absolute()
    if start is not None:
        for folder in (start, *start.parents):
            if (folder / PROGRESS).is_file():
                return folder
    root = checkout()
    return root.parent / "pi-practice" if root else Path.cwd() / "pi-practice"


def progress_for(folder: Path | None = None) -> Progress:
    return Progress(workspace(folder))


def file_hashes(folder: Path, files: tuple[str, ...]) -> dict[str, str]:
    """path -> sha256 of the files that exist."""
    return {
        file: hashlib.sha256((folder / file).read_bytes()).hexdigest()
        for file in files
        if (folder / file).is_file()
    }


class Progress:
    """progress.json of one workspace; each record reads, changes and replaces it at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / PROGRESS

    def read(self) -> dict[str, Any]:
        """slug -> what is known of the chapter; {} before the first record."""
        try:
            data: object = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise CourseError(
                f"The progress file {self.path} can't be read ({error}). "
                "Move it away to start a new one; your practice folders are not touched."
            ) from error
        whole = cast(dict[str, Any], data if isinstance(data, dict) else {})
        if whole.get("version", 1) != 1:
            raise CourseError(
                f"The progress file {self.path} was written by a newer pi-course. "
                "Update pi-course; the file was not touched."
            )
        chapters: object = whole.get("chapters")
        if not isinstance(chapters, dict) or not all(map(_sound, chapters.values())):  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            raise CourseError(
                f"The progress file {self.path} holds something that pi-course did not write. "
                "Move it away to start a new one; your practice folders are not touched."
            )
        return cast(dict[str, Any], chapters)

    def chapter(self, slug: str) -> dict[str, Any]:
        return dict(self.read().get(slug, {}))

    def record(self, slug: str, **facts: Any) -> None:
        """Merge facts into the chapter's entry and replace the file atomically."""
        chapters = self.read()
        chapters[slug] = {**chapters.get(slug, {}), **facts}
        text = json.dumps({"version": 1, "chapters": chapters}, indent=2, ensure_ascii=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{PROGRESS}-", dir=self.path.parent)
            try:
                with open(handle, "w", encoding="utf-8", newline="\n") as file:
                    file.write(text + "\n")
                os.replace(name, self.path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise CourseError(
                f"The progress file {self.path} can't be written: {error.strerror or error}. "
                "Free the folder, or set PI_COURSE_WORKSPACE to one that can be written."
            ) from error

    def record_started(self, slug: str, folder: Path) -> None:
        """A new folder begins at the first rung again."""
        self.record(slug, folder=str(folder), hints={})

    def record_check(self, slug: str, folder: Path, files: Mapping[str, str], green: bool) -> None:
        """Keep the hashes of green files; a red check keeps the folder only."""
        facts: dict[str, Any] = {"folder": str(folder)}
        if green:
            facts["green"] = {"folder": str(folder), "files": dict(files), "kit": __version__}
        self.record(slug, **facts)

    def record_hint(self, slug: str, lab: str, level: int) -> None:
        hints = dict(self.chapter(slug).get("hints", {}))
        hints[lab] = max(level, int(hints.get(lab, 0)))
        self.record(slug, hints=hints)

    def hint_level(self, slug: str, lab: str) -> int:
        return int(self.chapter(slug).get("hints", {}).get(lab, 0))

    def record_prediction(
        self, slug: str, guess: str, result: str | None = None, cell: str | None = None
    ) -> int:
        """Keep a guess and give its place. The first of a cell stays once its result was seen."""
        predictions = list(self.chapter(slug).get("predictions", []))
        made = {"guess": guess, "result": result, "right": None, "cell": cell}
        for number, known in enumerate(predictions):
            if cell is not None and known.get("cell") == cell:
                if known["result"] is None:
                    predictions[number] = made
                    self.record(slug, predictions=predictions)
                return number
        self.record(slug, predictions=[*predictions, made])
        return len(predictions)

    def change_prediction(self, slug: str, number: int, **facts: Any) -> None:
        """Add what came, or whether the guess was right."""
        predictions = list(self.chapter(slug)["predictions"])
        predictions[number] = {**predictions[number], **facts}
        self.record(slug, predictions=predictions)

    def record_gave_up(self, slug: str) -> None:
        self.record(slug, gave_up=True)

    def record_answers(self, slug: str, answers: list[dict[str, Any]]) -> None:
        """Keep the answers to a chapter's questions that were given so far."""
        self.record(slug, answers=answers)

    def answers(self, slug: str) -> list[dict[str, Any]]:
        return list(self.chapter(slug).get("answers", []))

    def record_accepted(self, slug: str) -> None:
        """Close the chapter on its green files and the answers given; the next time asks anew."""
        entry = self.chapter(slug)
        accepted = {"files": entry["green"]["files"], "answers": entry.get("answers", [])}
        self.record(slug, accepted=accepted, answers=[])

    def state(self, slug: str) -> State:
        entry = self.chapter(slug)
        green = entry.get("green")
        if green and green["files"] and self._unchanged(green["folder"], green["files"]):
            accepted = entry.get("accepted")
            same = accepted is not None and accepted["files"] == green["files"]
            return "accepted" if same else "green"
        return "started" if "folder" in entry else "new"

    def _unchanged(self, folder: str, files: Mapping[str, str]) -> bool:
        return file_hashes(Path(folder), tuple(files)) == dict(files)


def _sound(entry: object) -> bool:
    """Whether a chapter's entry has the shape that the methods of Progress rely on."""
    if not isinstance(entry, dict):
        return False
    fields = cast(dict[str, Any], entry)
    shapes = {"folder": str, "hints": dict, "predictions": list, "answers": list}
    shapes |= {"green": dict, "accepted": dict}
    if not all(isinstance(fields[name], kind) for name, kind in shapes.items() if name in fields):
        return False
    if not all(
        isinstance(answer, dict) and "ask" in answer for answer in fields.get("answers", [])
    ):
        return False
    evidence = [fields[name] for name in ("green", "accepted") if name in fields]
    guesses = cast(list[Any], fields.get("predictions", []))
    if not all(isinstance(item, dict) and "guess" in item for item in guesses):
        return False
    return all(isinstance(item.get("files"), dict) for item in evidence) and (
        "green" not in fields or isinstance(fields["green"].get("folder"), str)
    )


def lay_out_notebooks(folder: Path) -> list[Path]:
    """Copy the course's notebooks into the workspace; returns those that were written.

    A copy that the learner changed is never replaced: a newer version is put beside it. Copies
    have no outputs, so that nobody reads what comes before guessing and running it.
    """
    home = folder / "notebooks"
    record = home / ".copied.json"
    written: list[Path] = []
    try:
        home.mkdir(parents=True, exist_ok=True)
        copied: dict[str, str] = (
            json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
        )
        for source in sorted(data_dir("notebooks").glob("*.ipynb")):
            data = without_outputs(source.read_text(encoding="utf-8")).encode()
            new = hashlib.sha256(data).hexdigest()
            copy = home / source.name
            if copied.get(source.name) == new and copy.exists():
                continue
            if copy.exists() and hashlib.sha256(copy.read_bytes()).hexdigest() not in (
                copied.get(source.name),
                new,
            ):
                copy = home / f"{source.stem}-{new[:8]}.ipynb"
            if not copy.exists() or copy.read_bytes() != data:
                copy.write_bytes(data)
                written.append(copy)
            copied[source.name] = new
        record.write_text(json.dumps(copied, indent=2) + "\n", encoding="utf-8", newline="\n")
    except (OSError, ValueError) as error:
        raise CourseError(
            f"The notebooks can't be copied to {home}: {error}. "
            "Free the folder, or set PI_COURSE_WORKSPACE to one that can be written."
        ) from error
    return written


def without_outputs(text: str) -> str:
    """A notebook as it was before its first run."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
