"""The card's buttons: the commands of the terminal, started from a cell.

A button starts the same `pi-course` as a terminal would, in a process of its own, and shows what
it prints. Only buttons: whatever else one can change in a widget hangs while a cell awaits. They
are an output of their own below the card, whose text stays when they are gone.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path
from threading import Thread
from typing import Any

from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.notebook.build import widget_view
from pi_course_kit.notebook.view import in_kernel, shell
from pi_course_kit.workspace import progress_for

SECONDS = 180  # then a command is given up
MOST = 60_000  # characters shown of what one prints
WITHOUT = "The card's buttons need ipywidgets; the commands above do the same in a terminal."
# 80 columns of 12 pixels fit into a window of 700. The widths let a longer line scroll inside.
PRE = (
    "max-height:30em;overflow:auto;white-space:pre;font-size:12px;line-height:1.35;"
    "width:0;min-width:100%;box-sizing:border-box;"
    "margin:4px 0 0;padding:4px;border:1px solid var(--jp-border-color1,#888)"
)
HEAD = "Or here, with the same commands (after a restart, run this cell again):"
DONE = {0: "done", 1: "red", 2: "it could not run"}


def show_after_cell(checkpoint: Checkpoint) -> None:
    """Put the buttons below the card, which is this cell's value; nowhere outside a kernel."""
    if not in_kernel():
        return
    events: Any = shell().events

    def show(result: object) -> None:
        events.unregister("post_run_cell", show)
        try:
            box = Buttons(checkpoint).box
        except ImportError:
            print(WITHOUT)
            return
        # No other form: a saved notebook then holds the card alone.
        importlib.import_module("IPython.display").display(widget_view(box), raw=True)

    events.register("post_run_cell", show)


class Buttons:
    """Rows of buttons, and below them what the last command printed."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._widgets: Any = importlib.import_module("ipywidgets")
        self._buttons: list[Any] = []
        self._thread: Thread | None = None
        chapter = checkpoint
        rows = [
            self._row(
                "Practice",
                [
                    ("Make the folder", lambda: ["practice", chapter.nn]),
                    ("Check it", lambda: self._on_folder("check")),
                    *(
                        [("Compare it", lambda: self._on_folder("compare"))]
                        if chapter.scenarios
                        else []
                    ),
                ],
            ),
            self._row(
                "Next hint",
                [(f"Lab {lab.id}", partial(self._hint, lab.id)) for lab in chapter.labs],
            ),
            self._row(
                "Break a copy",
                [(fault.id, partial(_fault, chapter.nn, fault.id)) for fault in chapter.faults],
            ),
        ]
        self._shown = self._widgets.HTML()
        self.box = self._widgets.VBox([self._widgets.HTML(HEAD), *rows, self._shown])

    def _row(self, label: str, made: Sequence[tuple[str, Callable[[], list[str]]]]) -> Any:
        layout = self._widgets.Layout
        buttons: list[Any] = []
        for name, arguments in made:
            button = self._widgets.Button(
                description=name, tooltip=f"{label}: {name}", layout=layout(width="auto")
            )
            button.on_click(partial(self._clicked, arguments))
            buttons.append(button)
        self._buttons += buttons
        words = self._widgets.HTML(f"<strong>{label}</strong>", layout=layout(width="8em"))
        row = self._widgets.HBox(buttons, layout=layout(flex_flow="row wrap", flex="1 1 auto"))
        return self._widgets.HBox([words, row])

    def _folder(self) -> Path | None:
        kept = progress_for().chapter(self._checkpoint.id).get("folder")
        return Path(kept) if kept and Path(kept).is_dir() else None

    def _on_folder(self, command: str) -> list[str]:
        folder = self._folder()
        return [command, str(folder)] if folder else []

    def _hint(self, lab: str) -> list[str]:
        folder = self._folder()
        return ["hint", lab, *(["--dir", str(folder)] if folder else [])]

    def _clicked(self, arguments: Callable[[], list[str]], button: object) -> None:
        """On whatever thread the front end's message comes; the command must not hold it up."""
        command = arguments()
        if not command:
            self._show("", "There is no practice folder yet: press Make the folder first.")
            return
        for each in self._buttons:
            each.disabled = True
        self._show(_line(command), "running …")
        self._thread = Thread(target=self._run, args=(command,), daemon=True)
        self._thread.start()

    def _run(self, command: Sequence[str]) -> None:
        try:
            code, printed = run(command)
            self._show(f"{_line(command)}   ({DONE.get(code, f'exit code {code}')})", printed)
        finally:
            for each in self._buttons:
                each.disabled = False

    def _show(self, line: str, text: str) -> None:
        head = f"<strong>{escape(line)}</strong>" if line else ""
        if len(text) > MOST:
            text = text[:MOST] + "\n… more: run it in a terminal"
        printed = f'<pre style="{PRE}">{escape(text)}</pre>'
        self._shown.value = f'<div role="log" aria-live="polite">{head}{printed}</div>'


def _fault(chapter: str, fault: str) -> list[str]:
    return ["fault", chapter, fault]


def _line(command: Sequence[str]) -> str:
    """The command as one would type it; a folder by its name."""
    words = [Path(word).name if os.sep in word else word for word in command]
    return "pi-course " + " ".join(words)


def run(command: Sequence[str]) -> tuple[int, str]:
    """Run `pi-course` as in a terminal of 80 columns: exit code, and what it printed."""
    environment = os.environ | {
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pi_course_kit.cli", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return 2, f"It was still running after {SECONDS} s and was stopped."
    except OSError as error:
        return 2, f"It could not be started: {error}."
    return done.returncode, done.stdout.strip("\n")
