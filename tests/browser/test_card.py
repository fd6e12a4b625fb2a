"""The checkpoint card in a real browser: make the folder, check it, reload the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.page import MINUTE, PANEL, Lab, menu, opened, save

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAME = "03-message-ir"


def cell_with(page: Page, start: str) -> Locator:
    """The first code cell whose text begins so, scrolled into sight."""
    page.wait_for_function(
        """([panel, start]) => {
            const box = document.querySelector(panel);
            const cells = [...box.querySelectorAll('.jp-CodeCell')];
            const text = cell => cell.querySelector('.cm-content')?.innerText ?? '';
            const found = cells.find(cell => text(cell).startsWith(start));
            if (found) {
                found.dataset.wanted = start;
                found.scrollIntoView({block: 'start'});
            } else {
                box.scrollTop += box.clientHeight / 2;
            }
            return Boolean(found);
        }""",
        arg=[PANEL, start],
        polling=200,
    )
    return page.locator(f"{PANEL} .jp-CodeCell[data-wanted='{start}']")


def run_cell(page: Page, cell: Locator) -> None:
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")


def pressed(page: Page, cell: Locator, name: str, until: str) -> str:
    """Press a button of the card; the text below the buttons once it says what is awaited."""
    cell.locator(f'button:text-is("{name}")').click()
    log = cell.locator('[role="log"]')
    log.filter(has_text=until).wait_for(timeout=MINUTE)
    return log.inner_text()


def test_the_card_makes_a_folder_and_checks_it(lab: Lab, page: Page, artifacts: Path) -> None:
    page.set_viewport_size({"width": 700, "height": 900})
    opened(page, lab.page_of(NAME))
    if page.locator(".jp-SidePanel, #jp-left-stack").first.is_visible():
        page.keyboard.press("Control+b")
    run_cell(page, cell_with(page, "from pi_course_kit import chapter"))
    card = cell_with(page, "ch.card()")
    run_cell(page, card)
    card.locator('button:text-is("Make the folder")').scroll_into_view_if_needed()
    page.screenshot(path=artifacts / "card-light.png")

    assert "no practice folder yet" in pressed(page, card, "Check it", "no practice folder yet")
    made = pressed(page, card, "Make the folder", "(done)")
    assert str(lab.workspace / NAME) in made
    assert (lab.workspace / NAME / "LEARNING.md").is_file()
    red = pressed(page, card, "Check it", "(red)")
    assert "pi_course/messages.py is missing" in red
    card.locator('[role="log"]').scroll_into_view_if_needed()
    page.screenshot(path=artifacts / "card-red-light.png")

    menu(page, "Settings", "Theme", "JupyterLab Dark")
    page.wait_for_selector('body[data-jp-theme-light="false"]', state="attached")
    pressed(page, card, "textof", "(done)")
    card.locator('[role="log"]').scroll_into_view_if_needed()
    page.screenshot(path=artifacts / "card-fault-dark.png")

    save(page)
    for way in ("reloaded", "without-its-kernel"):
        if way == "without-its-kernel":
            menu(page, "Kernel", "Shut Down Kernel")
            page.wait_for_function(
                "/No Kernel/.test(document.querySelector('.jp-Toolbar-kernelName').innerText)"
            )
        page.reload()
        page.wait_for_selector(f"{PANEL} .jp-Cell")
        page.wait_for_function(
            r"/\| Idle/.test(document.querySelector('#jp-main-statusbar').innerText)"
        )
        card = cell_with(page, "ch.card()")
        card.locator("text=the package after this chapter").wait_for()
        card.locator(".jp-OutputArea-output").last.scroll_into_view_if_needed()
        page.wait_for_timeout(1000)
        page.screenshot(path=artifacts / f"card-{way}.png")
        assert "Error displaying widget" not in card.inner_text()
    (outputs,) = [
        cell["outputs"]
        for cell in lab.saved(NAME)["cells"]
        if "".join(cell["source"]) == "ch.card()"
    ]
    assert {"text/plain", "text/html"} <= outputs[0]["data"].keys()
