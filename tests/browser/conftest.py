"""A JupyterLab of its own and a page of Chromium, for the browser tests.

They need Playwright and a Chromium of the system. Without them they are skipped, or fail when
PI_COURSE_REQUIRE_BROWSER=1. Screenshots go to PI_COURSE_ARTIFACTS, else to pytest's folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.page import MINUTE, Lab

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

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

        def asked(request: Request) -> None:
            # What a page keeps for itself (blob:, data:) has no host.
            if host := urllib.parse.urlsplit(request.url).netloc:
                hosts.add(host)

        context.on("request", asked)
        context.set_default_timeout(MINUTE)
        yield context.new_page()
        context.close()


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = os.environ.get("PI_COURSE_ARTIFACTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
