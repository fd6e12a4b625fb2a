"""The live view: what it costs a kernel, beside a bare `async for` over the same stream.

It is measured in a kernel, with this process as the page: it asks for the entries and reads them.
Times are the kernel's processor time, all its threads; waiting is not counted.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import time
import tracemalloc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from benchmarks.measure import Row, compared, limited
from pi_course.messages import ModelEvent, TextDelta, ToolCall, ToolCallDelta, text
from pi_course.messages import assistant_message as assistant
from pi_course.partial import Draft
from pi_course_kit.notebook.timeline import State, Timeline

SIZES = (1_000, 10_000, 50_000)
ROUNDS = 5

SETUP = """
import asyncio, gc, json, time
from pi_course.messages import Done, Start, TextDelta, assistant_message, text
from pi_course.partial import Draft
from pi_course_kit.notebook.view import live

def reply(deltas):
    draft = Draft(assistant_message([]))
    yield Start(draft.partial())
    index = draft.open(text(""))
    for _ in range(deltas):
        draft.append(index, "abcd")
        yield TextDelta(index, "abcd", draft.partial())
    yield Done("stop", assistant_message(draft.partial().read().content))

async def stream(deltas):
    global last
    await asyncio.sleep(0.3)  # until the page has asked
    for event in reply(deltas):
        yield event
    last = time.time()

async def bare(deltas):
    async for _ in stream(deltas):
        pass

async def cost(reading):
    gc.collect()
    began = time.process_time()
    await reading
    return time.process_time() - began
"""


def rows() -> list[Row]:
    return [*in_a_kernel(), *kept()]


class Page:
    """The other side of the view: it asks for all entries, once for each view."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.settled = 0.0  # when the last display of the last cell came

    def run(self, code: str) -> str:
        """Run a cell; what its last expression is. Printed text may come late on a busy machine."""
        request = self._client.execute(code)
        value = ""
        while True:
            message = self._client.get_iopub_msg(timeout=120)
            content = message["content"]
            match message["msg_type"]:
                case "comm_open" if "_esm" in content["data"]["state"]:
                    self._ask(content["comm_id"])
                case "display_data":
                    self.settled = time.time()
                case "execute_result":
                    value = content["data"]["text/plain"]
                case "error":
                    raise RuntimeError("\n".join(content["traceback"]))
                case "status" if message["parent_header"].get("msg_id") == request:
                    if content["execution_state"] == "idle":
                        return value
                case _:
                    pass

    def _ask(self, comm: str) -> None:
        data = {"method": "custom", "content": {"have": 0}}
        message = self._client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self._client.shell_channel.send(message)


@contextmanager
def opened() -> Generator[Page]:
    manager: Any = KernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    manager.start_kernel(extra_arguments=["--log-level=ERROR"])
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        page = Page(client)
        page.run(SETUP)
        yield page
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def in_a_kernel() -> Iterator[Row]:
    per_delta: dict[int, float] = {}
    settled: list[float] = []
    with opened() as page:
        page.run("_ = await live(stream(10))")  # imports what the first view needs
        for deltas in SIZES:
            live: list[float] = []
            bare: list[float] = []
            for _ in range(ROUNDS):
                said = page.run(f"[await cost(live(stream({deltas}))), last]")
                spent, last = json.loads(said)
                live.append(spent / deltas * 1e6)
                if deltas == max(SIZES):
                    settled.append((page.settled - last) * 1e3)
                bare.append(float(page.run(f"await cost(bare({deltas}))")) / deltas * 1e6)
            per_delta[deltas] = statistics.median(live)
            floor = ("bare async for", statistics.median(bare))
            yield compared(f"live view, {deltas} deltas", per_delta[deltas], "us/delta", floor)
    least, most = SIZES[0], SIZES[-1]
    growth = per_delta[most] * most / (per_delta[least] * least)
    exponent = math.log(growth) / math.log(most / least)
    yield limited("live view, exponent in deltas", exponent, "", at_most=1.1)
    yield limited("live view, last of 50k to settled", statistics.median(settled), "ms")


def deltas_of(kind: str) -> Iterator[ModelEvent]:
    draft = Draft(assistant([]))
    if kind == "text":
        index = draft.open(text(""))
    else:
        index = draft.open(ToolCall(id="call_1", name="read", arguments={}))
    for _ in range(max(SIZES)):
        draft.append(index, "abcd")
        made = TextDelta if kind == "text" else ToolCallDelta
        yield made(index, "abcd", draft.partial())


def kept() -> Iterator[Row]:
    for kind in ("text", "argument"):
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        timeline = Timeline()
        for event in deltas_of(kind):
            timeline.add(event)
        megabytes = (tracemalloc.get_traced_memory()[0] - before) / 1e6
        tracemalloc.stop()
        yield limited(f"live view, 50k partials of {kind} kept", megabytes, "MB", at_most=30)
        yield limited(f"live view, partials of {kind} lost", lost(timeline), "", at_most=0)


def lost(timeline: Timeline) -> int:
    """How many of the partials, told from the entries, do not show their own moment."""
    state, wrong = State(), 0
    for number, entry in enumerate(timeline.entries, 1):
        state.apply(entry)
        wrong += state.length != 4 * number
    block = state.block(0)
    return wrong + ((block.get("text") or block.get("raw")) != "abcd" * max(SIZES))
