"""`live(stream)`: watch a model stream as it comes, then go back in time through it.

While it runs, the page gets what is new at most 30 times a second, whatever the stream's rate.
What stays in the notebook is the finished timeline, which is the same on every run.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any, cast

from pi_course_kit.errors import CourseError
from pi_course_kit.notebook.timeline import Timeline

FRAME = 1 / 30  # seconds between two messages to the page

Lanes = Mapping[str, Sequence[object]]


async def live(stream: AsyncIterable[Any], *, pace: float = 0, lanes: Lanes | None = None) -> Any:
    """Show the stream while it runs and return its final value.

    `pace` waits that many seconds before each event, for a stream that would be over before one
    can look; PI_COURSE_PACE overrides it. The Stop button leaves the stream early.

    `lanes` shows what passes below the events, in that order: {"wire": pieces, "chunk": chunks},
    each a list that grows while the stream runs.
    """
    if not hasattr(stream, "__aiter__"):
        raise CourseError(
            f"live() takes a stream to iterate with `async for`, not {type(stream).__name__}. "
            "Did you forget to call the function that makes it?"
        )
    timeline = Timeline()
    picture = _picture(timeline)
    reader = asyncio.ensure_future(
        _read(aiter(stream), timeline, picture, _pace(pace), _Lanes(lanes or {}, timeline))
    )
    stop = asyncio.ensure_future(picture.stop.wait())
    stopped = False
    try:
        await asyncio.wait({reader, stop}, return_when=asyncio.FIRST_COMPLETED)
        stopped = not reader.done()
        if stopped:
            timeline.ending = "aborted with the Stop button"
        else:
            reader.result()
    except (asyncio.CancelledError, KeyboardInterrupt):
        timeline.ending = "aborted by an interrupt"
        raise
    except Exception as error:
        timeline.ending = f"it raised {type(error).__name__}: {error}"
        raise
    finally:
        stop.cancel()
        reader.cancel()
        try:
            # So that the stream is closed, and its last words are said.
            await asyncio.gather(reader, return_exceptions=True)
        finally:
            picture.settle()
    if stopped or not hasattr(stream, "result"):
        return timeline.result()
    return await cast(Any, stream).result()


async def _read(
    iterator: AsyncIterator[Any], timeline: Timeline, picture: Picture, pace: float, lanes: _Lanes
) -> None:
    drawn = time.monotonic()
    try:
        while True:
            if pace:
                await asyncio.sleep(pace)
            try:
                event = await anext(iterator)
            except StopAsyncIteration:
                lanes.look()
                return
            lanes.look()
            timeline.add(event)
            picture.changed()
            if (now := time.monotonic()) >= drawn + FRAME:
                drawn = now
                # A stream that never waits would keep the page, and the Stop button, waiting.
                await asyncio.sleep(0)
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


class _Lanes:
    """Lists that somebody else fills; `look` takes over what is new in them."""

    def __init__(self, lanes: Lanes, timeline: Timeline) -> None:
        self._lanes = lanes
        self._seen = dict.fromkeys(lanes, 0)
        self._timeline = timeline

    def look(self) -> None:
        for name, items in self._lanes.items():
            for item in items[self._seen[name] :]:
                self._timeline.note(name, item)
            self._seen[name] = len(items)


def _pace(pace: float) -> float:
    try:
        return float(os.environ.get("PI_COURSE_PACE", pace))
    except ValueError:
        return pace


class Picture:
    """What shows a timeline. This one has no page: it prints the finished timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self.stop = asyncio.Event()
        self.timeline = timeline

    def changed(self) -> None:
        """There is a new entry. Called for each, so it must be cheap."""

    def settle(self) -> None:
        """The stream is over: leave what stays in the notebook."""
        shown = self.timeline.shown()
        if in_kernel():
            importlib.import_module("IPython.display").display(shown)
        else:
            print(shown)


def _picture(timeline: Timeline) -> Picture:
    if not in_kernel():
        return Picture(timeline)
    try:
        # Imported here: a plain script has no use for it and must not pay for it.
        from pi_course_kit.notebook.live_widget import WidgetPicture
    except ImportError:
        print("The live view needs anywidget; without it you get the finished timeline only.")
        return Picture(timeline)
    return WidgetPicture(timeline)


def shell() -> Any:
    """IPython's shell in a kernel; None elsewhere."""
    # Whoever runs in a kernel has IPython loaded; importing it here would cost a plain script.
    ipython = sys.modules.get("IPython")
    found: Any = ipython.get_ipython() if ipython is not None else None
    return found if hasattr(found, "kernel") else None


def in_kernel() -> bool:
    return shell() is not None
