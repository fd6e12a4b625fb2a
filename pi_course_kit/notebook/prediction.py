"""A guess, kept from the cell that stores it until the next cell has shown what came.

Then both stand side by side below that cell, and the reader says whether the guess was right. A
notebook without guesses, such as a committed one, shows nothing of this.
"""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pi_course_kit.notebook.build import widget_view
from pi_course_kit.notebook.shown import Shown, Table, Text, show
from pi_course_kit.notebook.view import in_kernel, shell
from pi_course_kit.workspace import Progress

LINES = 12  # of what came
NO_GUESS = (
    "No guess yet. Write it between the quotes and run this cell again; then run the next one."
)


def asks(choices: Sequence[str]) -> Shown:
    """What a prediction cell shows as long as nothing is guessed."""
    if not choices:
        return show(Text(NO_GUESS))
    listed = ", ".join(f"`{choice}`" for choice in choices)
    return show(Text(f"No guess yet. Choose one of: {listed}."), Text(NO_GUESS))


def side_by_side(guess: str, came: str, right: bool | None) -> Shown:
    lines = came.strip("\n").split("\n")
    more = [f"… {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    result = "\n".join([*lines[:LINES], *more]) or "what stands above"
    said = {
        True: "Marked as right.",
        False: "Marked as wrong: now you know what to look at.",
        None: "Were you right? Mark it with a button, or with `ch.guessed(True)` or "
        "`ch.guessed(False)` in a new cell.",
    }[right]
    return show(Table(("your guess", "what came"), [(guess, result)]), Text(said))


class Prediction:
    """One guess of a chapter; `number` is its place in the progress file."""

    def __init__(self, progress: Progress, slug: str, number: int, choices: Sequence[str]) -> None:
        self._progress = progress
        self._slug = slug
        self._number = number
        self._choices = choices
        self._buttons: Callable[[str], None] = _nothing

    @property
    def entry(self) -> dict[str, Any]:
        return dict(self._progress.chapter(self._slug)["predictions"][self._number])

    def await_next_cell(self) -> None:
        """Show the guess below the output of the next cell, if this is a notebook."""
        kernel = shell()
        if kernel is not None:
            _Listener(kernel, self.came)

    def came(self, text: str, value: object) -> Shown:
        """Keep what came; a choice that is equal to the value, or is not, marks itself."""
        facts: dict[str, Any] = {"result": text}
        if self._choices and self.entry["right"] is None:
            facts["right"] = self.entry["guess"] in (str(value), repr(value))
        self._progress.change_prediction(self._slug, self._number, **facts)
        entry = self.entry
        shown = side_by_side(entry["guess"], text, entry["right"])
        if in_kernel():
            _display()(shown)
            if entry["right"] is None:
                self._buttons = _ask(self.mark)
        return shown

    def mark(self, right: bool) -> Shown:
        self._progress.change_prediction(self._slug, self._number, right=right)
        said = "Marked as right." if right else "Marked as wrong."
        self._buttons(said)
        self._buttons = _nothing
        return show(Text(said))


def _nothing(said: str) -> None:
    """There are no buttons to put it in place of."""


class _Listener:
    """Hears what the next cell prints, and the value that it ends with."""

    def __init__(self, shell: Any, heard: Callable[[str, object], object]) -> None:
        self._shell = shell
        self._heard = heard
        self._printed = io.StringIO()
        self._stdout: Any = None
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def write(self, text: str) -> int:
        self._printed.write(text)
        return self._stdout.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)  # all else of stdout is as it was

    def _begin(self, info: object) -> None:
        self._stdout, sys.stdout = sys.stdout, self

    def _end(self, result: Any) -> None:
        if self._stdout is None:
            return  # the end of the cell with the guess
        sys.stdout = self._stdout
        self._shell.events.unregister("pre_run_cell", self._begin)
        self._shell.events.unregister("post_run_cell", self._end)
        error = result.error_before_exec or result.error_in_exec
        parts = [self._printed.getvalue().rstrip("\n")]
        if result.result is not None:
            parts.append(repr(result.result))
        if error is not None:
            parts.append(f"{type(error).__name__}: {error}")
        self._heard("\n".join(filter(None, parts)), result.result)


def _ask(mark: Callable[[bool], object]) -> Callable[[str], None]:
    """Two buttons; what is given back puts a text in their place."""
    try:
        widgets: Any = importlib.import_module("ipywidgets")
    except ImportError:
        return _nothing
    buttons: list[Any] = []
    for label, right in (("I was right", True), ("I was wrong", False)):
        button = widgets.Button(description=label)
        button.on_click(partial(_clicked, mark, right))
        buttons.append(button)
    box = widgets.HBox(buttons)
    handle = _display()(widget_view(box), raw=True, display_id=True)

    def close(said: str) -> None:
        handle.update({"text/plain": said}, raw=True)
        for widget in (*buttons, box):
            widget.close()

    return close


def _clicked(mark: Callable[[bool], object], right: bool, button: object) -> None:
    mark(right)


def cell_id() -> str | None:
    """The id of the cell that runs now, where the front end tells it."""
    kernel = shell()
    if kernel is None:
        return None
    metadata: object = kernel.get_parent().get("metadata", {}).get("cellId")
    return metadata if isinstance(metadata, str) else None


def _display() -> Any:
    return importlib.import_module("IPython.display").display
