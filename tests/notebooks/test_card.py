"""The card's buttons: they start the terminal's commands and show what these print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_course_kit import checkpoint
from pi_course_kit.notebook import build as builder
from pi_course_kit.notebook import card_buttons
from pi_course_kit.notebook.card_buttons import Buttons, run


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path / "space"))
    return tmp_path / "space"


def buttons_of(card: Buttons) -> dict[str, Any]:
    """Every button by its words."""
    rows = [row.children[1].children for row in card.box.children[1:-1]]
    return {button.description: button for row in rows for button in row}


def pressed(card: Buttons, name: str) -> str:
    """What the card shows after the command of a button has ended."""
    buttons_of(card)[name].click()
    thread = card._thread  # pyright: ignore[reportPrivateUsage]
    if thread is not None:
        thread.join(120)
        assert not thread.is_alive()
    assert not any(button.disabled for button in buttons_of(card).values())
    return card.box.children[-1].value


def test_there_is_a_button_for_each_thing_one_can_do() -> None:
    names = list(buttons_of(Buttons(checkpoint.find("03"))))
    assert names[:3] == ["Make the folder", "Check it", "Compare it"]
    assert names[3:6] == ["Lab 3.1", "Lab 3.2", "Lab 3.3"]
    assert names[6:] == [fault.id for fault in checkpoint.find("03").faults]


def test_the_buttons_do_what_the_commands_do(space: Path) -> None:
    card = Buttons(checkpoint.find("02"))
    assert "There is no practice folder yet" in pressed(card, "Check it")
    assert "Made" in pressed(card, "Make the folder")
    folder = space / "02-event-stream"
    assert (folder / "LEARNING.md").is_file()

    red = pressed(card, "Check it")
    assert "pi-course check 02-event-stream   (red)" in red
    assert "pi_course/event_stream.py is missing" in red
    assert "differs" in pressed(card, "Compare it")
    assert "Rung 1 of 4" in pressed(card, "Lab 2.1")
    assert "Rung 2 of 4" in pressed(card, "Lab 2.1")
    progress = json.loads((space / "progress.json").read_text(encoding="utf-8"))
    assert progress["chapters"]["02-event-stream"]["hints"] == {"2.1": 2}
    assert "Restored:" in pressed(card, "end-wakes-nobody")


def test_what_is_printed_is_shown_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(command: object) -> tuple[int, str]:
        return 0, "<script>" + "x" * 70_000

    monkeypatch.setattr(card_buttons, "run", answer)
    shown = pressed(Buttons(checkpoint.find("01")), "Make the folder")
    assert "&lt;script&gt;" in shown and "<script>" not in shown
    assert len(shown) < 61_000 and "more: run it in a terminal" in shown


def test_a_command_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_buttons, "SECONDS", 0.01)
    assert run(["list"]) == (2, "It was still running after 0.01 s and was stopped.")


def built(folder: Path, *lines: str) -> list[dict[str, Any]]:
    """The raw outputs of one cell."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "00-01",
        "metadata": {},
        "source": "\n".join(lines),
        "execution_count": None,
        "outputs": [],
    }
    path = folder / "00-planted.ipynb"
    notebook: dict[str, Any] = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8", newline="\n")
    (raw,) = builder.code_cells(builder.build(path, raw=True))
    return raw["outputs"]


CARD = ("from pi_course_kit import chapter", "chapter('00').card()")


def test_the_buttons_are_an_output_of_their_own_below_the_text(tmp_path: Path) -> None:
    text, buttons = built(tmp_path, *CARD)
    assert set(text["data"]) == {"text/plain", "text/html"}
    assert text["data"]["text/plain"].startswith("Checkpoint 00")
    assert set(buttons["data"]) == {builder.WIDGET}


def test_without_widgets_there_is_the_text_and_a_sentence(tmp_path: Path) -> None:
    lines = ("import sys", "sys.modules['ipywidgets'] = None", *CARD)
    text, said = built(tmp_path, *lines)
    assert text["data"]["text/plain"].startswith("Checkpoint 00")
    assert said["text"] == card_buttons.WITHOUT + "\n"
