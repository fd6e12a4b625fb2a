"""The running view, with this test as the browser: what is sent, and the Stop button."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from queue import Empty
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from pi_course_kit.notebook.build import WIDGET

pytestmark = pytest.mark.slow

Message = dict[str, Any]

FAST = """
from pi_course_kit.notebook.view import live

async def events():
    for n in range(3000):
        yield {"type": "text_delta", "delta": f"{n} "}

len(await live(events()))
"""

SILENT = """
import asyncio
from pi_course_kit.notebook.view import live

async def events():
    yield {"type": "text_delta", "delta": "Hel"}
    try:
        await asyncio.Event().wait()
    finally:
        print("the stream was closed")

await live(events())
"""


@pytest.fixture(scope="module")
def client() -> Generator[Any]:
    manager: Any = KernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    manager.start_kernel()
    made = manager.client()
    made.start_channels()
    made.wait_for_ready(timeout=60)
    yield made
    made.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


@contextmanager
def running(client: Any, code: str) -> Generator[Any]:
    """Run the code; gives an iterator over what the kernel sends until it is idle again."""
    request = client.execute(code)

    def sent() -> Generator[Message]:
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            try:
                message = client.get_iopub_msg(timeout=1)
            except Empty:
                continue
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status":
                if message["content"]["execution_state"] == "idle":
                    return
                continue
            yield message
        raise AssertionError("the cell did not end")

    yield sent()
    assert client.get_shell_msg(timeout=60)["content"]["status"] == "ok"


def of(messages: list[Message], kind: str) -> list[Message]:
    return [message["content"] for message in messages if message["msg_type"] == kind]


def test_a_fast_stream_sends_few_frames_and_leaves_only_the_timeline(client: Any) -> None:
    with running(client, FAST) as sent:
        began = time.monotonic()
        messages = list(sent)
    seconds = time.monotonic() - began
    frames = [m for m in of(messages, "comm_msg") if m["data"].get("method") == "update"]
    assert len(frames) <= 15 * seconds + 10
    first, *later = of(messages, "display_data")
    assert list(first["data"]) == [WIDGET]
    (emptied,) = of(messages, "update_display_data")
    assert emptied["data"] == {"text/plain": ""}
    assert emptied["transient"] == first["transient"]
    (timeline,) = later
    assert sorted(timeline["data"]) == ["text/html", "text/plain"]
    assert timeline["data"]["text/plain"].startswith("3000 events;")
    (result,) = of(messages, "execute_result")
    assert result["data"]["text/plain"] == str(sum(len(f"{n} ") for n in range(3000)))


def test_the_stop_button_leaves_a_silent_stream(client: Any) -> None:
    messages: list[Message] = []
    clicked = False
    with running(client, SILENT) as sent:
        for message in sent:
            messages.append(message)
            opened = of(messages, "comm_open")
            button = next(
                (m for m in opened if m["data"]["state"].get("description") == "Stop"), None
            )
            drawn = any("Hel" in str(m["data"]) for m in of(messages, "comm_msg"))
            if button and drawn and not clicked:
                clicked = True
                click = {"method": "custom", "content": {"event": "click"}}
                message = client.session.msg(
                    "comm_msg", {"comm_id": button["comm_id"], "data": click}
                )
                client.shell_channel.send(message)
    printed = "".join(m["text"] for m in of(messages, "stream"))
    assert printed == "the stream was closed\n"
    assert of(messages, "display_data")[-1]["data"]["text/plain"].startswith(
        "1 event; aborted with the Stop button."
    )
    assert of(messages, "execute_result")[0]["data"]["text/plain"] == "'Hel'"
