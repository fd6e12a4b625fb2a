"""`live(stream)`: watch a model stream as it comes, then keep one settled picture of it.

While it runs, three panes show the characters, the events and the growing partial, drawn at
most 15 times a second whatever the stream's rate: the newest state wins. The widget is shown
without any other form and is emptied at the end, so that a saved notebook holds only the
finished timeline, which is the same on every run.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterable, AsyncIterator
from html import escape
from typing import Any, cast

from pi_course_kit.errors import CourseError
from pi_course_kit.notebook.shown import Shown
from pi_course_kit.notebook.timeline import Timeline, delta, field, kind

FRAME = 1 / 15  # seconds between two drawings
RECENT = 12  # events in the pane of a running view
BRIEF = 24  # characters of a delta in that pane
WIDGET = "application/vnd.jupyter.widget-view+json"


async def live(stream: AsyncIterable[Any], *, pace: float = 0) -> Any:
    """Show the stream while it runs and return its final value.

    `pace` waits that many seconds before each event, for a stream that would be over before one
    can look; PI_COURSE_PACE overrides it. The Stop button leaves the stream early.
    """
    if not hasattr(stream, "__aiter__"):
        raise CourseError(
            f"live() takes a stream to iterate with `async for`, not {type(stream).__name__}. "
            "Did you forget to call the function that makes it?"
        )
    timeline = Timeline()
    picture = _picture(timeline)
    try:
        stopped = await _follow(stream, timeline, picture, _pace(pace))
    except asyncio.CancelledError:
        timeline.ending = "aborted by an interrupt"
        raise
    except Exception as error:
        timeline.ending = f"it raised {type(error).__name__}: {error}"
        raise
    finally:
        picture.close()
        _display(timeline.shown())
    if stopped or not hasattr(stream, "result"):
        return timeline.result()
    return await cast(Any, stream).result()


async def _follow(
    stream: AsyncIterable[Any], timeline: Timeline, picture: Picture, pace: float
) -> bool:
    """Feed events to the picture until the stream or the reader ends it; True if the reader did."""
    iterator = aiter(stream)
    stop = asyncio.ensure_future(picture.stop.wait())
    try:
        while True:
            if pace:
                await asyncio.wait({stop}, timeout=pace)
            step = asyncio.ensure_future(_next(iterator))
            try:
                await asyncio.wait({step, stop}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not step.done():
                    step.cancel()
                    await asyncio.wait({step})  # a generator that still runs can't be closed
            if stop.done():
                timeline.ending = "aborted with the Stop button"
                return True
            event = step.result()
            if event is _END:
                return False
            timeline.add(event)
            picture.changed()
    finally:
        stop.cancel()
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


_END = object()


async def _next(iterator: AsyncIterator[Any]) -> Any:
    # StopAsyncIteration can't travel through a task, so the end is a value.
    return await anext(iterator, _END)


def _pace(pace: float) -> float:
    try:
        return float(os.environ.get("PI_COURSE_PACE", pace))
    except ValueError:
        return pace


class Picture:
    """Nothing to look at while the stream runs: no kernel, or no widgets."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()

    def changed(self) -> None: ...

    def close(self) -> None: ...


class WidgetPicture(Picture):
    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._timeline = timeline
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.TimerHandle | None = None
        self._drawn = float("-inf")
        widgets: Any = importlib.import_module("ipywidgets")
        self._html = widgets.HTML()
        self._button = widgets.Button(description="Stop", tooltip="Leave the stream here")
        # A click may arrive on another thread: ipykernel runs comms in a subshell if it has one.
        self._button.on_click(self._stopped)
        self._box = widgets.VBox([self._button, self._html])
        view = {"version_major": 2, "version_minor": 0, "model_id": self._box.model_id}
        self._handle = _ipython_display()({WIDGET: view}, raw=True, display_id=True)

    def _stopped(self, button: object) -> None:
        self._loop.call_soon_threadsafe(self.stop.set)

    def changed(self) -> None:
        if self._waiting is None:
            left = self._drawn + FRAME - self._loop.time()
            self._waiting = self._loop.call_later(max(0, left), self._draw)

    def _draw(self) -> None:
        self._waiting = None
        self._drawn = self._loop.time()
        self._html.value = panes(self._timeline)

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        # Closing alone is not enough: JupyterLab would save the dead view and report it on reload.
        self._handle.update({"text/plain": ""}, raw=True)
        for widget in (self._html, self._button, self._box):
            widget.close()


def _picture(timeline: Timeline) -> Picture:
    if not in_kernel():
        return Picture()
    try:
        return WidgetPicture(timeline)
    except ImportError:
        print("The live view needs ipywidgets; without it you get the finished timeline only.")
        return Picture()


def in_kernel() -> bool:
    # Whoever runs in a kernel has IPython loaded; importing it here would cost a plain script.
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _ipython_display() -> Any:
    return importlib.import_module("IPython.display").display


def _display(shown: Shown) -> None:
    if in_kernel():
        _ipython_display()(shown)
    else:
        print(shown)


def panes(timeline: Timeline) -> str:
    """The running view: fixed sizes, so that the page below does not jump."""
    count = len(timeline.events)
    first = max(0, count - RECENT)
    events = [f"{n:>4}  {_brief(timeline.events[n - 1])}" for n in range(first + 1, count + 1)]
    parts = (
        ("What a reader sees", timeline.characters(count)),
        (f"Events so far: {count}", "\n".join(events)),
        ("The partial message", timeline.partial(count)),
    )
    return (
        '<div style="display:flex;gap:1em;flex-wrap:wrap">'
        + "".join(_pane(title, text) for title, text in parts)
        + "</div>"
    )


def _brief(event: object) -> str:
    """Type, content index and the beginning of the delta, on one line."""
    index = field(event, "content_index")
    piece = delta(event)
    short = piece if len(piece) <= BRIEF else piece[:BRIEF] + "…"
    parts = [kind(event), "" if index is None else str(index), repr(short) if short else ""]
    return "  ".join(part for part in parts if part)


def _pane(title: str, text: str) -> str:
    box = "flex:1 1 14em;min-width:14em"
    pre = "height:15em;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere"
    return (
        f'<div style="{box}"><strong>{title}</strong><pre style="{pre}">{escape(text)}</pre></div>'
    )
