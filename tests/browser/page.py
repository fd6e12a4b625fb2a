"""JupyterLab in a browser, as a learner drives it: menus, the panel of a notebook, saving."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer"
MINUTE = 60_000  # milliseconds


@dataclass(frozen=True)
class Lab:
    url: str
    workspace: Path

    def page_of(self, name: str) -> str:
        there = urllib.parse.quote(f"notebooks/{name}.ipynb")
        return re.sub(r"notebooks/[^?]*", there, self.url) + "&reset"

    def saved(self, name: str) -> dict[str, Any]:
        path = self.workspace / "notebooks" / f"{name}.ipynb"
        return json.loads(path.read_text(encoding="utf-8"))


def menu(page: Page, *path: str) -> None:
    page.click(f'.lm-MenuBar-itemLabel:text-is("{path[0]}")')
    for label in path[1:]:
        page.click(f'.lm-Menu-itemLabel:text-is("{label}")')


def opened(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_selector(f"{PANEL} .jp-Cell")
    # The notebook's own indicator says idle before there is a kernel; the status bar does not.
    page.wait_for_function(
        r"/\| Idle/.test(document.querySelector('#jp-main-statusbar').innerText)"
    )


def run_all(page: Page, count: int) -> bool:
    """Run every cell and wait for the last; True if a live view was there on the way.

    textContent, since innerText leaves out what is scrolled out of sight.
    """
    menu(page, "Edit", "Clear Outputs of All Cells")
    menu(page, "Run", "Run All Cells")
    page.evaluate(
        """() => {
            window.sawLive = false;
            new MutationObserver(() => {
                const there = document.querySelector('.pi-live');
                if (there) window.sawLive = true;
            }).observe(document.body, {subtree: true, childList: true, characterData: true});
        }"""
    )
    page.wait_for_function(
        """([panel, count]) => {
            const box = document.querySelector(panel);
            box.scrollTop = box.scrollHeight;
            const prompts = [...box.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];
            const status = document.querySelector('#jp-main-statusbar').innerText;
            return prompts.length > 0 && prompts.at(-1).innerText.trim() === `[${count}]:`
                && /\\| Idle/.test(status);
        }""",
        arg=[PANEL, count],
        timeout=2 * MINUTE,
    )
    return bool(page.evaluate("window.sawLive"))


def save(page: Page) -> None:
    menu(page, "File", "Save Notebook")
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden)")
    page.wait_for_function("!document.querySelector('.lm-TabBar-tab.jp-mod-dirty')")


def read_through(page: Page, artifacts: Path, name: str) -> str:
    """Scroll from top to bottom with a screenshot of each part; all text that was visible."""
    page.evaluate("panel => { document.querySelector(panel).scrollTop = 0 }", PANEL)
    seen: list[str] = []
    for number in range(60):
        page.wait_for_timeout(250)
        page.screenshot(path=artifacts / f"{name}-{number:02d}.png")
        seen.append(page.inner_text(PANEL))
        at_end = page.evaluate(
            """panel => {
                const box = document.querySelector(panel), before = box.scrollTop;
                box.scrollTop = before + box.clientHeight - 60;
                return box.scrollTop <= before;
            }""",
            PANEL,
        )
        if at_end:
            return "\n".join(seen)
    raise AssertionError(f"{name} does not end")
