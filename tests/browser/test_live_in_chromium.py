"""The live view in a real browser: it moves while the stream runs, and goes back in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pi_course_kit import checkpoint
from pi_course_kit.notebook.build import WIDGET
from tests.browser.page import PANEL, Lab, menu, opened, run_all, save

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = """
import asyncio
from pathlib import Path
from pi_course_kit import chapter
ch = chapter("03")
from pi_course.messages import Done, Start, TextDelta, ToolCall, ToolCallDelta, ToolCallEnd
from pi_course.messages import assistant_message, text
from pi_course.partial import Draft

READ = ToolCall(id="call_1", name="read", arguments={"path": "README.md"})

def reply():
    draft = Draft(assistant_message([]))
    yield Start(draft.partial())
    said = draft.open(text(""))
    for piece in ("I will read ", "README.md", " first."):
        draft.append(said, piece)
        yield TextDelta(said, piece, draft.partial())
    wanted = draft.open(ToolCall(id="call_1", name="read", arguments={}))
    for piece in ('{"pa', 'th": "READ', 'ME.md"}'):
        draft.append(wanted, piece)
        yield ToolCallDelta(wanted, piece, draft.partial())
    draft.replace(wanted, READ)
    yield ToolCallEnd(wanted, READ, draft.partial())
    content = draft.partial().read().content
    yield Done("toolUse", assistant_message(content, "toolUse"))

async def gated(name):
    for number, event in enumerate(reply(), 1):
        while not Path(f"{name}-{number}").exists():
            await asyncio.sleep(0.02)
        yield event
"""


def notebook(lab: Lab, name: str, *cells: str) -> str:
    made = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "source": source.strip(),
                "outputs": [],
                "execution_count": None,
            }
            for number, source in enumerate(cells)
        ],
    }
    path = lab.workspace / "notebooks" / f"{name}.ipynb"
    path.write_text(json.dumps(made), encoding="utf-8")
    return lab.page_of(name)


VIEW = ".pi-live"
READER, EVENTS, KNOWN = (f"{VIEW} .pi-live-pane:nth-child({n}) .pi-live-body" for n in (1, 2, 3))


def let(lab: Lab, name: str, upto: int) -> None:
    for number in range(1, upto + 1):
        (lab.workspace / "notebooks" / f"{name}-{number}").touch()


def run(page: Page) -> None:
    menu(page, "Run", "Run All Cells")


def shows(page: Page, words: str) -> None:
    """Wait until the line beside the slider says this."""
    page.wait_for_selector(f'.pi-live-where:text-is("{words}")')


def drag(page: Page, count: int) -> None:
    page.locator(".pi-live-slider").fill(str(count))


def picture(page: Page, artifacts: Path, name: str) -> None:
    page.locator(VIEW).scroll_into_view_if_needed()
    page.screenshot(path=artifacts / f"{name}.png")


def contrasts(page: Page) -> dict[str, float]:
    """The lowest contrast of each class of text in the view, as WCAG counts it."""
    return page.evaluate(
        """view => {
            const brush = document.createElement('canvas').getContext('2d');
            const rgba = colours => {
                brush.clearRect(0, 0, 1, 1);
                for (const colour of colours) {
                    brush.fillStyle = colour;
                    brush.fillRect(0, 0, 1, 1);
                }
                return [...brush.getImageData(0, 0, 1, 1).data];
            };
            const light = ([r, g, b]) => [r, g, b].reduce((sum, value, n) => {
                const part = value / 255;
                const linear = part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
                return sum + linear * [0.2126, 0.7152, 0.0722][n];
            }, 0);
            const found = {};
            for (const element of document.querySelector(view).querySelectorAll('*')) {
                const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
                if (!own || !element.offsetParent) continue;
                const below = ['white'];
                for (let at = element; at; at = at.parentElement) {
                    below.splice(1, 0, getComputedStyle(at).backgroundColor);
                }
                const back = light(rgba(below));
                const fore = light(rgba([...below, getComputedStyle(element).color]));
                const ratio = (Math.max(back, fore) + 0.05) / (Math.min(back, fore) + 0.05);
                const name = element.className || element.localName;
                found[name] = Math.min(found[name] ?? 99, Math.round(ratio * 10) / 10);
            }
            return found;
        }""",
        VIEW,
    )


def test_back_in_time_while_it_runs_and_after_the_kernel_is_gone(
    lab: Lab, page: Page, artifacts: Path
) -> None:
    opened(page, notebook(lab, "gate", SETUP, 'final = await ch.live(gated("gate"))'))
    menu(page, "View", "Collapse All Code")
    run(page)
    shows(page, "before event 1")

    let(lab, "gate", 3)
    shows(page, "event 3 of 3")
    assert page.inner_text(READER) == "I will read README.md"
    picture(page, artifacts, "live-running-text")
    let(lab, "gate", 6)
    shows(page, "event 6 of 6")
    assert page.inner_text(".pi-live-state") == "Running"
    assert 'raw arguments, as they come\n{"path": "READ' in page.inner_text(KNOWN)
    assert 'readable so far\n{\n "path": "READ"\n}' in page.inner_text(KNOWN)
    picture(page, artifacts, "live-running-call")

    drag(page, 2)
    shows(page, "event 2 of 6")
    assert page.inner_text(READER) == "I will read "
    assert "tool call" not in page.inner_text(KNOWN)
    let(lab, "gate", 7)
    shows(page, "event 2 of 7")
    page.click('.pi-live button:text-is("Newest")')
    shows(page, "event 7 of 7")
    let(lab, "gate", 9)
    shows(page, "event 9 of 9")
    page.wait_for_selector('.pi-live-state:text-is("Finished")')
    page.wait_for_selector(".jp-RenderedHTML > .pi-live")
    picture(page, artifacts, "live-finished")

    menu(page, "Kernel", "Shut Down Kernel")
    page.wait_for_function(
        "/No Kernel/.test(document.querySelector('#jp-main-statusbar').innerText)"
    )
    drag(page, 6)
    shows(page, "event 6 of 9")
    assert 'readable so far\n{\n "path": "READ"\n}' in page.inner_text(KNOWN)
    page.focus('.pi-live button:text-is("Back")')
    for label in ("Play", "Forward", "Newest"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == label
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "range"
    page.keyboard.press("ArrowLeft")
    shows(page, "event 5 of 9")
    page.keyboard.press("ArrowRight")
    shows(page, "event 6 of 9")
    page.focus(EVENTS)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    shows(page, "event 4 of 9")
    page.keyboard.press("ArrowRight")
    shows(page, "event 5 of 9")
    page.locator(".pi-live-row", has_text="README.md").first.click()
    shows(page, "event 3 of 9")
    picture(page, artifacts, "live-back")
    page.click('.pi-live button:text-is("Play")')
    page.wait_for_selector('.pi-live button:text-is("Pause")')
    shows(page, "event 5 of 9")
    shows(page, "event 9 of 9")
    page.wait_for_selector('.pi-live button:text-is("Play")')

    drag(page, 6)
    assert min(contrasts(page).values()) >= 4.5, contrasts(page)
    menu(page, "Settings", "Theme", "JupyterLab Dark")
    page.wait_for_selector('body[data-jp-theme-light="false"]', state="attached")
    page.wait_for_timeout(500)
    picture(page, artifacts, "live-dark")
    assert min(contrasts(page).values()) >= 4.5, contrasts(page)
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_timeout(500)
    picture(page, artifacts, "live-dark-700")

    menu(page, "Settings", "Theme", "JupyterLab Light")
    page.wait_for_selector('body[data-jp-theme-light="true"]', state="attached")
    page.wait_for_timeout(500)
    picture(page, artifacts, "live-light-700")
    assert min(contrasts(page).values()) >= 4.5, contrasts(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    save(page)
    saved = lab.saved("gate")
    assert not any(kept["state"] for kept in saved["metadata"].get("widgets", {}).values())
    assert WIDGET not in json.dumps(saved["cells"])
    page.reload()
    page.wait_for_selector(".pi-live-form")
    text = page.inner_text(PANEL)
    assert "9 events; the last is done (toolUse)." in text
    assert "rror displaying widget" not in text and "model not found" not in text
    assert page.locator(VIEW).count() == 0


ENDLESS = """
async def endless():
    while True:
        yield {"type": "text_delta", "delta": "tick "}
        await asyncio.sleep(0.02)
"""


@pytest.mark.parametrize("way", ["stop", "interrupt"])
def test_a_stream_that_is_left_says_aborted(
    lab: Lab, page: Page, artifacts: Path, way: str
) -> None:
    name = f"endless-{way}"
    opened(page, notebook(lab, name, SETUP + ENDLESS, "await ch.live(endless())"))
    menu(page, "View", "Collapse All Code")
    run(page)
    page.wait_for_function("+document.querySelector('.pi-live-slider')?.max > 5")
    if way == "stop":
        page.click('.pi-live button:text-is("Stop")')
    else:
        menu(page, "Kernel", "Interrupt Kernel")
    page.wait_for_selector('.pi-live-state:text-is("Aborted")')
    page.wait_for_selector(".jp-RenderedHTML > .pi-live")
    drag(page, 2)
    page.wait_for_function("/^event 2 of/.test(document.querySelector('.pi-live-where').innerText)")
    assert page.inner_text(READER) == "tick tick "
    assert not page.is_visible('.pi-live button:text-is("Stop")')
    picture(page, artifacts, f"live-{name}")
    save(page)
    outputs = lab.saved(name)["cells"][1]["outputs"]
    texts = ["".join(output.get("data", {}).get("text/plain", "")) for output in outputs]
    (text,) = [text for text in texts if " events; " in text]
    assert "; aborted " in text.split("\n")[0]


def test_a_cell_that_runs_again_shows_its_new_view(lab: Lab, page: Page) -> None:
    code = """
async def one_more():
    async for event in gated("again"):
        yield event
count = globals().get("count", 0) + 1
final = await ch.live([gated("again"), one_more()][count > 1])
print("run", count, "is over")
"""
    let(lab, "again", 9)
    opened(page, notebook(lab, "again", SETUP, code, "# the last"))
    for count in (1, 2, 3):
        run(page)
        page.wait_for_selector(f'.jp-OutputArea :text("run {count} is over")')
        page.wait_for_selector(".jp-RenderedHTML > .pi-live")
        drag(page, count)
        shows(page, f"event {count} of 9")
        assert page.locator(VIEW).count() == 1


LANES = """
from types import SimpleNamespace
wire, chunks = [], []

async def events():
    for piece in ("I will ", "read it."):
        wire.append(f'data: {{"content": "{piece}"}}'.encode())
        chunks.append(SimpleNamespace(type="text", delta=piece))
        yield {"type": "text_delta", "delta": piece}

_ = await ch.live(events(), lanes={"wire": wire, "chunk": chunks})
"""


def test_lanes_below_the_events_are_told_apart(lab: Lab, page: Page, artifacts: Path) -> None:
    opened(page, notebook(lab, "lanes", SETUP, LANES))
    run(page)
    shows(page, "row 6 of 6")
    # The text itself, not as laid out: the view may just be moving to its place in the page.
    lanes = page.locator(".pi-live-lane").all_text_contents()
    assert lanes == ["wire", "chunk", "event"] * 2
    drag(page, 5)
    shows(page, "row 5 of 6")
    assert page.inner_text(READER) == "I will "
    picture(page, artifacts, "live-lanes")


MANY = """
async def many():
    for number in range(50_000):
        yield {"type": "text_delta", "delta": f"{number % 10}"}

len(await ch.live(many()))
"""


def test_fifty_thousand_deltas_draw_only_what_is_in_sight(
    lab: Lab, page: Page, artifacts: Path
) -> None:
    opened(page, notebook(lab, "many", SETUP, MANY))
    menu(page, "View", "Collapse All Code")
    run(page)
    shows(page, "event 50000 of 50000")
    for count in (1, 255, 256, 257, 25_000, 49_999):
        drag(page, count)
        shows(page, f"event {count} of 50000")
        text = page.inner_text(READER)
        if count > 4000:
            assert text.startswith(f"{count - 4000} characters before this\n")
            text = text.partition("\n")[2]
        assert text == "".join(str(n % 10) for n in range(max(0, count - 4000), count))
        assert page.locator(".pi-live-row").count() < 40
        assert page.inner_text('.pi-live-row[data-when="now"]').split()[-1] == str((count - 1) % 10)
    picture(page, artifacts, "live-many")


@pytest.mark.parametrize("number", ["02", "03"])
def test_a_chapter_moves_while_it_runs(lab: Lab, page: Page, artifacts: Path, number: str) -> None:
    name = checkpoint.find(number).id
    opened(page, lab.page_of(name))
    cells = [cell for cell in lab.saved(name)["cells"] if cell["cell_type"] == "code"]
    # Every change of a running view is written down: its place in the page and what it shows.
    page.evaluate(
        """() => {
            window.samples = [];
            new MutationObserver(() => {
                for (const view of document.querySelectorAll('.pi-live[data-state=running]')) {
                    const where = view.querySelector('.pi-live-where').textContent;
                    const panes = [...view.querySelectorAll('.pi-live-body')];
                    const sample = [where, panes[0].textContent].join(': ');
                    if (!window.samples.includes(sample)) window.samples.push(sample);
                }
            }).observe(document.body, {subtree: true, childList: true, characterData: true});
        }"""
    )
    run_all(page, len(cells))
    samples = page.evaluate("window.samples")
    assert len(samples) >= 2, samples
    texts = [sample.partition(": ")[2] for sample in samples]
    assert len(set(texts)) >= 2, samples
    page.wait_for_function("document.querySelector('.jp-RenderedHTML > .pi-live')")
    assert page.locator(".pi-live").count() == sum(
        "ch.live(" in "".join(cell["source"]) for cell in cells
    )
    page.locator(VIEW).first.scroll_into_view_if_needed()
    page.locator(".pi-live-slider").first.fill("2")
    page.wait_for_timeout(300)
    page.screenshot(path=artifacts / f"live-chapter-{number}.png")
