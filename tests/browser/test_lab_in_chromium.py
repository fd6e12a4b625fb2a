"""A learner's first minutes in a real browser: `pi-course lab`, Run All, save, reload.

It needs Playwright and a Chromium of the system. Without them it is skipped, or fails when
PI_COURSE_REQUIRE_BROWSER=1. Screenshots go to PI_COURSE_ARTIFACTS, else to pytest's folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pi_course_kit import checkpoint
from pi_course_kit.data import data_dir

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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


def chromium() -> str:
    chosen = os.environ.get("PI_COURSE_CHROMIUM")
    found = chosen or next(filter(None, map(shutil.which, CHROMIUM)), None)
    lacks = None if found else "no Chromium was found (on Debian: apt install chromium)"
    try:
        import playwright  # noqa: F401  only whether it is there
    except ImportError:
        lacks = "Playwright is not installed (pip install -e '.[dev]')"
    if lacks is None:
        return found or ""
    if os.environ.get("PI_COURSE_REQUIRE_BROWSER") == "1":
        pytest.fail(f"The browser test must run, but {lacks}.")
    pytest.skip(f"The browser test needs a browser: {lacks}.")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab]:
    home = tmp_path_factory.mktemp("lab")
    chromium()
    dropped = ("DISPLAY", "WAYLAND_DISPLAY", "PI_COURSE_SOURCE", "PI_COURSE_PACE", "PYTHONPATH")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env |= {
        "PI_COURSE_WORKSPACE": str(home / "workspace"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "IPYTHONDIR": str(home / "ipython"),
        **{f"JUPYTER_{kind}_DIR": str(home / kind) for kind in ("CONFIG", "DATA", "RUNTIME")},
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "pi_course_kit.cli", "lab", "--no-browser", "00"],
        env=env,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert process.stdout is not None
    said: list[str] = []
    try:
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                yield Lab(found[0], home / "workspace")
                break
        else:
            pytest.fail("pi-course lab printed no address: " + "".join(said))
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def hosts() -> set[str]:
    return set()


@pytest.fixture
def page(tmp_path: Path, hosts: set[str]) -> Generator[Page]:
    executable = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=executable,
            headless=True,
            args=FLAGS,
            viewport={"width": 1280, "height": 900},
        )
        context.on("request", lambda request: hosts.add(urllib.parse.urlsplit(request.url).netloc))
        context.set_default_timeout(MINUTE)
        yield context.new_page()
        context.close()


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
                const there = document.body.textContent.includes('Events so far');
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


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = os.environ.get("PI_COURSE_ARTIFACTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("number", ["00", "03"])
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
