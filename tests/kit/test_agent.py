"""`pi-course agent`: what a person at the terminal sees and is asked, over a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pi_course_kit.loopback import Answer, Call, LoopbackServer, Reply, Turn
from tests.kit.test_agent_demo import AGENT

HELLO = Call("call_1", "read", '{"path": "notes.txt"}')
EDIT = Call(
    "call_2",
    "edit",
    json.dumps({"path": "notes.txt", "edits": [{"oldText": "world", "newText": "durable"}]}),
)
READ_AND_EDIT = [
    Reply(text="I read it first.", calls=(HELLO,)),
    Reply(calls=(EDIT,)),
    Reply(text="Done: it says durable now."),
]


@contextmanager
def serving(turns: list[Turn]) -> Iterator[LoopbackServer]:
    """The server in a thread of its own: the agent under test is another process."""
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()
    server = LoopbackServer(turns)

    async def run() -> None:
        stop = asyncio.Event()
        async with server:
            started.append((asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop, stop = started[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def agent(
    folder: Path, server: LoopbackServer, *options: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENT, str(folder), "--base-url", server.openai_url, "--model", "m", *options],
        input=typed,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "a project"
    place.mkdir()
    (place / "notes.txt").write_text("hello world\n", encoding="utf-8", newline="\n")
    return place


def test_one_prompt_reads_edits_and_ends(folder: Path) -> None:
    with serving(list(READ_AND_EDIT)) as server:
        done = agent(folder, server, "--print", "say durable", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello durable\n"
    shown = done.stdout.split("\n")
    assert "I read it first." in shown
    assert "  read notes.txt" in shown
    assert "    hello world" in shown
    assert "    -hello world" in shown and "    +hello durable" in shown
    assert "Done: it says durable now." in shown
    assert max(map(len, shown)) <= 80
    assert "\x1b" not in done.stdout
    roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]


def test_without_a_person_nothing_is_changed(folder: Path) -> None:
    with serving(list(READ_AND_EDIT)) as server:
        done = agent(folder, server, "--print", "say durable")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello world\n"
    assert "not run: edit" in done.stdout
    assert "start it with --yes" in str(server.requests[-1].body)


def test_json_is_one_event_a_line(folder: Path) -> None:
    with serving(list(READ_AND_EDIT)) as server:
        done = agent(folder, server, "--print", "say durable", "--yes", "--json")
    events = [json.loads(line) for line in done.stdout.split("\n") if line]
    kinds = [event["type"] for event in events]
    assert kinds[-1] == "end" and events[-1]["reason"] == "stop"
    assert [kind for kind in kinds if kind.startswith("tool_")] == ["tool_start", "tool_end"] * 2
    said = "".join(event["delta"] for event in events if event["type"] == "text_delta")
    assert said == "I read it first.Done: it says durable now."
    assert sum(kind == "message" for kind in kinds) == 3
    assert next(e for e in events if e["type"] == "tool_end")["result"]["toolCallId"] == "call_1"


def test_a_run_that_fails_ends_with_exit_code_1(folder: Path) -> None:
    with serving([Answer(b'{"error": {"message": "no such model"}}', status=404)]) as server:
        done = agent(folder, server, "--print", "hi", "--yes")
    assert done.returncode == 1
    assert "no such model" in done.stdout


def test_control_characters_of_a_repository_do_not_reach_the_terminal(folder: Path) -> None:
    (folder / "notes.txt").write_text("\x1b]0;gone\x07\n", encoding="utf-8", newline="\n")
    with serving([Reply(calls=(HELLO,)), Reply(text="a \x1b[2J b")]) as server:
        done = agent(folder, server, "--print", "look")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout
    assert "]0;gone" in done.stdout


def test_lines_at_a_prompt_are_one_conversation(folder: Path) -> None:
    with serving([Reply(text="First."), Reply(text="Second.")]) as server:
        done = agent(folder, server, typed="one\n/history\ntwo\n/nonsense\n/quit\n")
    assert done.returncode == 0, done.stderr
    assert "There is no /nonsense" in done.stdout
    assert "assistant   First." in done.stdout
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_ctrl_c_ends_the_run_and_keeps_the_conversation(folder: Path) -> None:
    stalled = Answer(Reply(text="I begin and then"), stall_after=600)
    with serving([stalled, Reply(text="Here again.")]) as server:
        process = subprocess.Popen(
            [*AGENT, str(folder), "--base-url", server.openai_url, "--model", "m"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("one\n")
        process.stdin.flush()
        seen = ""
        while "I begin" not in seen:
            seen += process.stdout.read(1)
        os.kill(process.pid, signal.SIGINT)
        rest, _ = process.communicate("two\n/quit\n", timeout=60)
    assert process.returncode == 0, seen + rest
    assert "[aborted]" in rest
    assert "Here again." in rest
    said = [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "user"]
    assert said == ["one", "two"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "Which model?"),
        (["--demo", "--print", "x"], "--demo has its own model"),
        (["--json", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], "--json needs"),
        (["/nowhere/at/all", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], "folder"),
        (["--model", "m"], "--base-url"),
    ],
)
def test_wrong_use_is_a_sentence(options: list[str], sentence: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*AGENT, *options], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert sentence in done.stderr


def test_the_agent_runs_on_the_learners_own_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [*AGENT, "--demo", "--mine", str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 2
    assert "is not a practice folder" in done.stderr
