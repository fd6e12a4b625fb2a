"""The live view in a page: it hands the timeline to live.js, which does all the rest.

The page keeps the entries itself, so going back in time needs no kernel. It asks for what it does
not have; without a page nobody asks and nothing is sent. When it has all of them, the widget is
taken out of the output again and lives on in the page only. So what JupyterLab saves is the text
form, and a reload never finds a widget without its model.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from importlib import resources
from typing import Any

import anywidget
import traitlets

from pi_course_kit.notebook.build import widget_view
from pi_course_kit.notebook.timeline import Timeline
from pi_course_kit.notebook.view import FRAME, Picture

BATCH = 5000  # entries in one message
_FILES = resources.files("pi_course_kit.notebook")


class LiveWidget(anywidget.AnyWidget):
    _esm = (_FILES / "live.js").read_text(encoding="utf-8")
    _css = (_FILES / "live.css").read_text(encoding="utf-8")
    # Set once, at the end, when no page has asked yet: it may come when the kernel is busy.
    # As JSON, since ipywidgets looks into each value of a dict.
    whole = traitlets.Unicode().tag(sync=True)


class WidgetPicture(Picture):
    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self._loop = asyncio.get_running_loop()
        self._sent: int | None = None  # entries that the page has; None until it asks
        self._drawn = float("-inf")
        self._waiting: asyncio.TimerHandle | None = None
        self._settled = False
        self._display: Any = importlib.import_module("IPython.display").display
        self._widget: Any = LiveWidget()
        self._widget.on_msg(self._heard)
        # Only this form: a text form that changes later is not what nbval compares.
        self._view = widget_view(self._widget)
        self._place = self._display(self._view, raw=True, display_id=True)

    def _heard(self, widget: object, content: dict[str, Any], buffers: object) -> None:
        # May be another thread: ipykernel runs comms in a subshell if it has one.
        self._loop.call_soon_threadsafe(self._answer, content)

    def _answer(self, content: dict[str, Any]) -> None:
        match content:
            case {"stop": True}:
                self.stop.set()
            case {"have": int(count)}:
                self._sent = count
                self._send()
            case {"kept": True} if self._settled:
                self._place.update(self._form, raw=True)
                self._widget.layout.close()
                self._widget.close()
            case _:
                pass

    def changed(self) -> None:
        if self._waiting is None and self._sent is not None:
            left = self._drawn + FRAME - self._loop.time()
            self._waiting = self._loop.call_later(max(0, left), self._draw)

    def _draw(self) -> None:
        self._waiting = None
        self._drawn = self._loop.time()
        self._send()

    def _send(self) -> None:
        entries = self.timeline.entries
        at = self._sent or 0
        while True:
            self._widget.send(self._batch(at, min(at + BATCH, len(entries))))
            at = min(at + BATCH, len(entries))
            if at == len(entries):
                break
        self._sent = at

    def _batch(self, start: int, stop: int) -> dict[str, Any]:
        """Entries with the place of the first one, so that nothing comes twice or too early."""
        entries = [entry.sent() for entry in self.timeline.entries[start:stop]]
        batch: dict[str, Any] = {"at": start, "entries": entries, "carried": self.timeline.carried}
        if self._settled and stop == len(self.timeline.entries):
            batch["end"] = self.timeline.summary()
            batch["aborted"] = self.timeline.ending.startswith("aborted")
        return batch

    def settle(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._settled = True
        if self._sent is None:
            self._widget.whole = json.dumps(self._batch(0, len(self.timeline.entries)))
        else:
            self._send()
        shown = self.timeline.shown()
        self._form = {"text/plain": repr(shown), "text/html": shown.html}
        self._place.update({"text/plain": ""}, raw=True)
        # The text form beside the widget is for everyone who can't show that.
        self._place = self._display(self._view | self._form, raw=True, display_id=True)
