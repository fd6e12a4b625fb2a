"""A learner's first minutes in a real browser: `pi-course lab`, Run All, save, reload."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pi_course_kit import checkpoint
from pi_course_kit.data import data_dir
from tests.browser.page import PANEL, Lab, opened, read_through, run_all, save

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("number", ["00", "03", "05"])
def test_a_notebook_runs_from_top_to_bottom(
    lab: Lab, page: Page, artifacts: Path, hosts: set[str], number: str
) -> None:
    name = checkpoint.find(number).id
    committed = json.loads((data_dir("notebooks") / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in committed["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in lab.saved(name)["cells"]), "a guess is spoiled"

    opened(page, lab.page_of(name))
    assert not page.locator(".jp-toast-message").count(), "a toast about news or updates"
    saw_live = run_all(page, len(cells))
    assert saw_live == any("ch.live(" in "".join(cell["source"]) for cell in cells)
    save(page)

    text = read_through(page, artifacts, name)
    assert "Traceback" not in text and "Error displaying widget" not in text
    ran = [cell for cell in lab.saved(name)["cells"] if cell["cell_type"] == "code"]
    kinds = [output["output_type"] for cell in ran for output in cell["outputs"]]
    assert "error" not in kinds
    shown = [_texts(cell) for cell in ran]
    assert shown == [_texts(cell) for cell in cells], "not what is committed"

    page.reload()
    page.wait_for_selector(f"{PANEL} .jp-Cell")
    text = read_through(page, artifacts, f"{name}-reloaded")
    assert "Error displaying widget" not in text and "model not found" not in text
    assert hosts == {urllib.parse.urlsplit(lab.url).netloc}, "a request to another host"


def _texts(cell: dict[str, Any]) -> list[str]:
    """The text forms of a cell's outputs, without the emptied place of a live view."""
    found: list[str] = []
    for output in cell["outputs"]:
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        if joined := "".join(text):
            found.append(joined)
    return found
