"""The chapter object of a notebook: each method shows one part of the chapter in a cell."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi_course_kit import checkpoint as checkpoints
from pi_course_kit import snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import card
from pi_course_kit.notebook.shown import Code, Items, Pre, Shown, Table, Text, show
from pi_course_kit.source import PackageFinder
from pi_course_kit.workspace import progress_for

if TYPE_CHECKING:
    from pi_course_kit.notebook.prediction import Prediction
    from pi_course_kit.notebook.view import Lanes


class Chapter:
    """What `chapter("03")` gives. Its methods return values that a cell shows."""

    def __init__(self, checkpoint: Checkpoint, finder: PackageFinder) -> None:
        self.checkpoint = checkpoint
        self._finder = finder
        self._prediction: Prediction | None = None

    def __repr__(self) -> str:
        return repr(self._opening())

    def _repr_html_(self) -> str:
        return self._opening()._repr_html_()  # pyright: ignore[reportPrivateUsage]

    def _opening(self) -> Shown:
        digest = snapshot.target_digest(self.checkpoint.number)[: card.SHORT]
        own = self._finder.owner == "your folder"
        source = "your own folder" if own else f"this chapter's target, {digest}"
        return card.opening(self.checkpoint, source)

    def card(self) -> Shown:
        """The checkpoint: files, digests, labs with their commands; below it they are buttons."""
        from pi_course_kit.notebook.card_buttons import show_after_cell

        show_after_cell(self.checkpoint)
        return card.card(self.checkpoint, progress_for().state(self.checkpoint.id))

    def lab(self, name: str) -> Shown:
        """One lab: what to write, its tests, and the commands."""
        return card.lab(self.checkpoint, name)

    def goals(self) -> Shown:
        return show(Items(self.checkpoint.goals))

    def terms(self) -> Shown:
        """The words that this chapter brings, a sentence each; those of earlier ones folded."""
        before = [
            checkpoints.find(folder.name)
            for folder in checkpoints.folders()
            if int(folder.name[:2]) < self.checkpoint.number
        ]
        return card.terms(self.checkpoint, before)

    def predict(self, guess: str, *, choices: Sequence[str] = ()) -> Shown:
        """Store your guess before the next cell shows what happens, and beside it then."""
        from pi_course_kit.notebook import prediction

        if not isinstance(guess, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CourseError(
                f"ch.predict() takes your guess as a text, and got {guess!r}. "
                'Write it between quotes: ch.predict("I expect …").'
            )
        guess = guess.strip()
        if not guess:
            return prediction.asks(choices)
        if choices and guess not in choices:
            raise CourseError(f"{guess!r} is none of the choices: {', '.join(choices)}.")
        progress = progress_for()
        slug = self.checkpoint.id
        number = progress.record_prediction(slug, guess, cell=prediction.cell_id())
        self._prediction = prediction.Prediction(progress, slug, number, choices)
        self._prediction.await_next_cell()
        first = self._prediction.entry
        if first["result"] is not None:
            return show(
                Text(f"You have seen what came, and your guess before that stays: {first['guess']}")
            )
        return show(Text(f"Your guess: {guess}"), Text("It is stored. Now run the next cell."))

    def guessed(self, right: bool) -> Shown:
        """Mark your last guess as right or wrong; `pi-course status` keeps count."""
        if self._prediction is None:
            raise CourseError("There is no guess to mark yet: ch.predict() stores one.")
        return self._prediction.mark(bool(right))

    async def compare(self, scenario: str | Callable[..., object] | None = None) -> Shown:
        """Run a scenario on the reference and on your files; where do they part?

        `scenario` is a name from checkpoint.toml (default: all of them), or your own
        `async def name(trace):` that calls trace(value) and imports what it needs inside.
        """
        from pi_course_kit.notebook.compare import compare_in_cell

        return await compare_in_cell(self.checkpoint, self._own_folder(), scenario)

    def _own_folder(self) -> Path | None:
        """The folder that this kernel runs on, else the practice folder, if there is one."""
        if self._finder.owner == "your folder":
            return self._finder.folder
        folder = progress_for().chapter(self.checkpoint.id).get("folder")
        return Path(folder) if folder and (Path(folder) / "pi_course").is_dir() else None

    async def live(
        self, stream: AsyncIterable[Any], *, pace: float = 0, lanes: Lanes | None = None
    ) -> Any:
        """Watch a stream while it runs; returns its final value."""
        from pi_course_kit.notebook.view import live

        return await live(stream, pace=pace, lanes=lanes)

    def fault(self, name: str) -> Shown:
        """Break a copy on purpose, run the focused test, take the fault out, run it again."""
        from pi_course_kit.faults import run_fault

        return card.fault(run_fault(self.checkpoint, name))

    def test(self, name: str) -> Shown:
        """The text of one focused test."""
        path = snapshot.test_files(self.checkpoint.number)[f"tests/{self.checkpoint.test_name}"]
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return show(Pre(ast.get_source_segment(source, node) or ""))
        raise CourseError(f"tests/{self.checkpoint.test_name} has no test {name!r}.")

    def types(self, code: str) -> Shown:
        """What the type checker says about this code, with the chapter's pi_course beside it."""
        from pi_course_kit.faults import snapshot_copy
        from pi_course_kit.typecheck import type_check

        with snapshot_copy(self.checkpoint.number) as root:
            path = root / "snippet.py"
            path.write_text(code, encoding="utf-8", newline="\n")
            found = card.telling(type_check([path], root))
        if not found:
            return show(Text("The type checker finds nothing wrong."))
        rows = [(str(error.line), error.message, Code(error.rule)) for error in found]
        return show(Table(("line", "what the type checker says", "rule"), rows))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> Shown:
        """Rows that a cell has computed; what is neither text nor a number is shown as its repr."""
        for row in rows:
            if len(row) != len(head):
                raise CourseError(f"A row of {len(row)} cells under a head of {len(head)}: {row}")
        return show(Table(tuple(head), [tuple(map(_cell, row)) for row in rows]))

    def accept(self) -> Shown:
        """The acceptance questions; each answer is folded under its own."""
        from pi_course_kit.acceptance import evidence

        return card.questions(self.checkpoint, evidence(self.checkpoint))

    def pi(self) -> Shown:
        """What real Pi does in the same place."""
        return card.real_pi(self.checkpoint)

    def next(self) -> Shown:
        """What the next chapter adds."""
        return card.following(self.checkpoint, checkpoints.following(self.checkpoint))


def _cell(value: object) -> str:
    return str(value) if isinstance(value, str | int) else Code(repr(value))
