"""The running view, with this test as the page: what is sent, what it can ask, what stays."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import Empty
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from pi_course_kit.notebook.build import WIDGET

pytestmark = pytest.mark.slow

Message = dict[str, Any]

SETUP = """
import asyncio
from pi_course_kit.notebook.view import live

async def fast():
    for n in range(3000):
        yield {"type": "text_delta", "delta": f"{n} "}

async def steady():
    for n in range(200):
        await asyncio.sleep(0.005)
        yield {"type": "text_delta", "delta": f"{n} "}

async def silent():
    yield {"type": "text_delta", "delta": "Hel"}
    try:
        await asyncio.Event().wait()
    finally:
        print("the stream was closed")
"""


@pytest.fixture(scope="module")
def client() -> Generator[Any]:
    manager: Any = KernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    manager.start_kernel()
    made = manager.client()
    made.start_channels()
    made.wait_for_ready(timeout=60)
    run(made, SETUP)
    yield made
    made.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


@contextmanager
def running(client: Any, code: str, status: str = "ok") -> Generator[Any]:
    """Run the code; gives an iterator over what the kernel sends until it is idle again."""
    request = client.execute(code)
    yield answers(client, request)
    reply = client.get_shell_msg(timeout=60)
    while reply["parent_header"]["msg_id"] != request:
        reply = client.get_shell_msg(timeout=60)
    assert reply["content"]["status"] == status


def answers(client: Any, request: str) -> Generator[Message]:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            message = client.get_iopub_msg(timeout=1)
        except Empty:
            continue
        if message["msg_type"] == "status":
            mine = message["parent_header"].get("msg_id") == request
            if mine and message["content"]["execution_state"] == "idle":
                return
            continue
        yield message
    raise AssertionError("the cell did not end")


def run(client: Any, code: str) -> list[Message]:
    with running(client, code) as sent:
        return list(sent)


def of(messages: list[Message], kind: str) -> list[Message]:
    return [message["content"] for message in messages if message["msg_type"] == kind]


def view_of(messages: list[Message]) -> str:
    """The comm of the view among those that were opened."""
    (found,) = [m["comm_id"] for m in of(messages, "comm_open") if "_esm" in m["data"]["state"]]
    return found


def say(client: Any, comm: str, content: Message) -> str:
    """Send what live.js sends."""
    data = {"method": "custom", "content": content}
    message = client.session.msg("comm_msg", {"comm_id": comm, "data": data})
    client.shell_channel.send(message)
    return message["header"]["msg_id"]


def batches(messages: list[Message]) -> list[Message]:
    sent = [m["data"] for m in of(messages, "comm_msg")]
    return [data["content"] for data in sent if data["method"] == "custom"]


def watched(client: Any, code: str, react: Callable[[list[Message]], Message | None]) -> Any:
    """Run the code as a page that asks for everything, and says once what `react` gives."""
    messages: list[Message] = []
    asked = said = False
    with running(client, code) as sent:
        for message in sent:
            messages.append(message)
            if not asked and of(messages, "display_data"):
                asked = True
                say(client, view_of(messages), {"have": 0})
            if asked and not said and (answer := react(messages)) is not None:
                said = True
                say(client, view_of(messages), answer)
    return messages


def test_without_a_page_nothing_is_sent_until_the_end(client: Any) -> None:
    messages = run(client, "len(await live(fast()))")
    assert batches(messages) == []
    (update,) = [m["data"] for m in of(messages, "comm_msg") if m["data"]["method"] == "update"]
    whole = json.loads(update["state"]["whole"])
    assert len(whole["entries"]) == 3000 and whole["end"] == "3000 events; the last is text_delta."

    first, last = of(messages, "display_data")
    assert list(first["data"]) == [WIDGET]
    (emptied,) = of(messages, "update_display_data")
    assert emptied["data"] == {"text/plain": ""}
    assert emptied["transient"] == first["transient"] != last["transient"]
    assert sorted(last["data"]) == [WIDGET, "text/html", "text/plain"]
    assert last["data"][WIDGET] == first["data"][WIDGET]
    assert last["data"]["text/plain"].startswith("3000 events;")
    assert last["data"][WIDGET]["model_id"] not in last["data"]["text/html"]
    (result,) = of(messages, "execute_result")
    assert result["data"]["text/plain"] == str(sum(len(f"{n} ") for n in range(3000)))


def test_a_page_gets_each_entry_once_in_few_batches(client: Any) -> None:
    began = time.monotonic()
    messages = watched(client, "_ = await live(steady())", lambda messages: None)
    seconds = time.monotonic() - began
    sent = batches(messages)
    assert 2 <= len(sent) <= 30 * seconds + 10
    entries: list[Any] = []
    for batch in sent:
        assert batch["at"] == len(entries)
        entries += batch["entries"]
    assert [entry[2] for entry in entries] == [f"{n} " for n in range(200)]
    assert [batch.get("end") for batch in sent][-2:] == [
        None,
        "200 events; the last is text_delta.",
    ]


def test_a_page_that_lost_something_gets_it_again(client: Any) -> None:
    def again(messages: list[Message]) -> Message | None:
        came = sum(len(batch["entries"]) for batch in batches(messages))
        return {"have": 3} if came >= 10 else None

    sent = batches(watched(client, "_ = await live(steady())", again))
    places = [batch["at"] for batch in sent]
    assert places.count(3) >= 1
    after = sent[len(places) - 1 - places[::-1].index(3) :]
    entries = [entry for batch in after for entry in batch["entries"]]
    assert [entry[2] for entry in entries] == [f"{n} " for n in range(3, 200)]


def test_what_a_page_has_kept_is_taken_out_of_the_notebook(client: Any) -> None:
    messages = watched(client, "_ = await live(steady())", lambda messages: None)
    comm = view_of(messages)
    say(client, comm, {"kept": True})
    opened = {m["comm_id"] for m in of(messages, "comm_open")}
    after: list[Message] = []
    while {m["comm_id"] for m in of(after, "comm_close")} != opened:
        after.append(client.get_iopub_msg(timeout=60))
    (update,) = of(after, "update_display_data")
    *_, last = of(messages, "display_data")
    assert update["transient"] == last["transient"]
    assert update["data"] == {kind: last["data"][kind] for kind in ("text/plain", "text/html")}


def test_the_stop_button_leaves_a_silent_stream(client: Any) -> None:
    def click(messages: list[Message]) -> Message | None:
        return {"stop": True} if any(batch["entries"] for batch in batches(messages)) else None

    messages = watched(client, "await live(silent())", click)
    assert "".join(m["text"] for m in of(messages, "stream")) == "the stream was closed\n"
    assert of(messages, "display_data")[-1]["data"]["text/plain"].startswith(
        "1 event; aborted with the Stop button."
    )
    assert batches(messages)[-1]["aborted"] is True
    assert of(messages, "execute_result")[0]["data"]["text/plain"] == "'Hel'"


def test_an_interrupt_leaves_a_settled_view(client: Any) -> None:
    messages: list[Message] = []
    with running(client, "await live(silent())", "error") as sent:
        for message in sent:
            messages.append(message)
            if message["msg_type"] == "display_data" and len(of(messages, "display_data")) == 1:
                client.parent.interrupt_kernel()
                # A kernel that sleeps at that moment sees the signal at its next message.
                say(client, view_of(messages), {"have": 0})
    assert of(messages, "display_data")[-1]["data"]["text/plain"].startswith(
        "1 event; aborted by an interrupt."
    )


def test_without_anywidget_there_is_the_timeline_and_a_sentence(client: Any) -> None:
    hide = "import sys; hidden = sys.modules['pi_course_kit.notebook.live_widget']\n"
    hide += "sys.modules['pi_course_kit.notebook.live_widget'] = None"
    run(client, hide)
    messages = run(client, "len(await live(fast()))")
    run(client, "sys.modules['pi_course_kit.notebook.live_widget'] = hidden")
    assert "".join(m["text"] for m in of(messages, "stream")) == (
        "The live view needs anywidget; without it you get the finished timeline only.\n"
    )
    (shown,) = of(messages, "display_data")
    assert sorted(shown["data"]) == ["text/html", "text/plain"]
    assert of(messages, "comm_open") == []
