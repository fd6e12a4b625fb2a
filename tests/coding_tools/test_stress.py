"""Many calls at once, hostile ones among them; afterwards nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from pi_course.abort import AbortController
from pi_course.agent_loop import run_agent_loop
from pi_course.coding_tools import create_coding_tools
from pi_course.coding_tools.limits import Limits
from pi_course.coding_tools.sandbox import SandboxUnavailable
from pi_course.messages import (
    AgentContext,
    ToolCall,
    ToolResultMessage,
    assistant_message,
    text,
    unpaired_calls,
    user_message,
)
from pi_course.scripted_model import ScriptedModel
from pi_course.tool import ToolContext, ToolRegistry, execute_tool_call

QUICK = Limits(grace_seconds=0.1, drain_seconds=0.3)


def run(coro: Coroutine[Any, Any, Any], seconds: float = 60) -> Any:
    return asyncio.run(asyncio.wait_for(coro, seconds))


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -IS -c {shlex.quote(code)}"


async def use(
    tools: ToolRegistry,
    name: str,
    arguments: dict[str, object],
    stop: AbortController | None = None,
) -> ToolResultMessage:
    call = ToolCall(id="call_1", name=name, arguments=arguments)
    signal = (stop or AbortController()).signal
    return await execute_tool_call(call, tools, ToolContext("call_1", signal))


def alive(marker: str) -> list[str]:
    """The processes that have the marker in their command line; dead ones do not count."""
    listed = subprocess.run(
        ["ps", "-axww", "-o", "stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    return [
        line for line in listed.split("\n") if marker in line and not line.lstrip().startswith("Z")
    ]


def handles() -> int:
    return len(os.listdir("/dev/fd"))


def test_200_commands_of_all_kinds_leave_nothing(tmp_path: Path) -> None:
    """Ordinary, failing, flooding, hanging, aborted and cancelled ones, sixteen at a time."""
    marker = f"marker-{secrets.token_hex(8)}"
    deaf = python(
        f"'{marker}'; import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(99)"
    )
    commands = [
        f": {marker}; echo $$",
        f": {marker}; exit 3",
        f"{deaf} & echo $$",
        f"{deaf} >/dev/null 2>&1 & disown; echo $$",
        f"({deaf} | {deaf})",
        f": {marker}; while :; do echo y; done",
        f": {marker}; kill -9 $$",
        f"trap '' TERM; {deaf}",
    ]
    chance = random.Random(8)
    tools = create_coding_tools(tmp_path, limits=QUICK)

    async def one(number: int) -> str:
        stop = AbortController()
        arguments: dict[str, object] = {"command": commands[number % len(commands)], "timeout": 0.2}
        task = asyncio.create_task(use(tools, "bash", arguments, stop))
        if number % 5 == 0:
            await asyncio.sleep(chance.random() * 0.2)
            stop.abort("stop button")
        elif number % 7 == 0:
            await asyncio.sleep(chance.random() * 0.2)
            task.cancel()
        done, _ = await asyncio.wait([task])
        return "cancelled" if done.pop().cancelled() else "result"

    async def main() -> tuple[list[str], int, int]:
        await one(1)
        before, numbers = handles(), iter(range(200))

        async def worker() -> list[str]:
            return [await one(number) for number in numbers]

        found = await asyncio.gather(*(worker() for _ in range(16)))
        return [ending for some in found for ending in some], before, handles()

    endings, before, after = run(main(), 120)
    assert len(endings) == 200
    assert set(endings) == {"result", "cancelled"}
    assert after == before
    assert alive(marker) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    for thread in threading.enumerate():
        if thread.name == "pi-course-bash":
            thread.join(2)
    assert [
        thread.name for thread in threading.enumerate() if thread.name == "pi-course-bash"
    ] == []


# What runs something in a group of its own, and the sign that it is there.
APART = {
    "timeout": "timeout 40 sh -c ': {marker}; : > there; sleep 40' &",
    "set-m": "set -m; sh -c ': {marker}; : > there; sleep 40' &",
    "deaf": "set -m; sh -c 'trap \"\" TERM; : {marker}; : > there; while :; do sleep 1; done' &",
    "set-m-timeout": "set -m; timeout 40 sh -c ': {marker}; : > there; sleep 40' &",
}


@pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="needs a list of processes in /proc"
)
@pytest.mark.parametrize("ending", ["timeout", "abort", "exit", "cancelled"])
@pytest.mark.parametrize("how", APART)
def test_what_leaves_the_group_ends_with_the_call(tmp_path: Path, how: str, ending: str) -> None:
    """Its session is the same. Neither it nor what it has started is there afterwards."""
    if "timeout" in how and not shutil.which("timeout"):
        pytest.skip("there is no program timeout")
    marker = f"marker-{secrets.token_hex(8)}"
    command = (
        APART[how].format(marker=marker)
        + "\nwhile ! [ -e there ]; do sleep 0.01; done; echo ready\n"
    )
    if ending != "exit":
        command += "wait\n"

    async def main() -> ToolResultMessage | None:
        tools = create_coding_tools(tmp_path, limits=QUICK)
        stop = AbortController()
        arguments: dict[str, object] = {
            "command": command,
            "timeout": 2 if ending == "timeout" else 30,
        }
        task = asyncio.create_task(use(tools, "bash", arguments, stop))
        if ending in ("abort", "cancelled"):
            while not (tmp_path / "there").exists():
                await asyncio.sleep(0.01)
            stop.abort("stop button") if ending == "abort" else task.cancel()
        await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    result = run(main())
    details: Any = {"ending": "cancelled"} if result is None else result.details
    assert details["ending"] == ending
    assert alive(marker) == []


def test_50_edits_of_one_file_through_three_names(tmp_path: Path) -> None:
    """All of them land, from two threads with a loop each, while others read whole files."""
    (tmp_path / "sub").mkdir()
    path = tmp_path / "numbers.txt"
    path.write_bytes(b"".join(b"<%d>\r\n" % number for number in range(50)))
    (tmp_path / "link.txt").symlink_to("numbers.txt")
    names = ["numbers.txt", "link.txt", "sub/../numbers.txt"]
    tools = create_coding_tools(tmp_path)
    errors: list[ToolResultMessage] = []
    lengths: list[int] = []

    async def edits(numbers: range) -> None:
        calls = [
            use(
                tools,
                "edit",
                {
                    "path": names[number % 3],
                    "edits": [{"oldText": f"<{number}>", "newText": f"[{number}]"}],
                },
            )
            for number in numbers
        ]
        reads = [use(tools, "read", {"path": names[number % 3]}) for number in numbers]
        results = await asyncio.gather(*calls, *reads)
        errors.extend(result for result in results if result.is_error)
        lengths.extend(result.content[0].text.count("\n") for result in results[len(calls) :])

    threads = [
        threading.Thread(target=asyncio.run, args=[edits(range(start, 50, 2))]) for start in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert lengths == [50] * 50
    assert path.read_bytes() == b"".join(b"[%d]\r\n" % number for number in range(50))
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "numbers.txt", "sub"]


def test_64_calls_of_one_reply(tmp_path: Path) -> None:
    """One reply asks for 64 files, odd names among them; each call has its result."""
    names = ["-rf", "a\nb", "\U00020bb7", "...", "~x", *(f"file {number}" for number in range(59))]
    calls = [
        ToolCall(id=f"call_{number}", name="write", arguments={"path": name, "content": name})
        for number, name in enumerate(names)
    ]
    model = ScriptedModel([assistant_message(calls, "toolUse"), assistant_message([text("done")])])
    result = run(
        run_agent_loop(
            model=model,
            tools=create_coding_tools(tmp_path),
            context=AgentContext([user_message("go on")]),
        )
    )
    assert unpaired_calls(result.messages) == []
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    assert {path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == set(names)


@pytest.mark.slow
def test_300_mb_of_output_take_little_memory(tmp_path: Path) -> None:
    """The end is shown, the whole is in a file, and the agent has not grown."""
    code = (
        "import os\n"
        "piece = b'0123456789abcde\\n' * 65536\n"
        "for number in range(300):\n"
        "    at = 0\n"
        "    while at < len(piece): at += os.write(1, piece[at:])\n"
    )
    tools = create_coding_tools(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run(use(tools, "bash", {"command": python(code), "timeout": 100}), 110)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    details: Any = result.details
    assert details["outputBytes"] == 300 * 1024 * 1024
    assert Path(details["outputFile"]).stat().st_size == 300 * 1024 * 1024
    assert grown < 40 * 1024 * (1024 if sys.platform == "darwin" else 1)
    assert sum(len(block.text.encode()) for block in result.content) <= Limits().bytes


def test_a_sandbox_ends_also_what_has_left_its_session(tmp_path: Path) -> None:
    """Inside, processes have a world of their own, and it ends with the command."""
    marker = f"marker-{secrets.token_hex(8)}"
    try:
        tools = create_coding_tools(tmp_path, containment="sandbox", limits=QUICK)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    command = (
        f"setsid sh -c ': {marker}; : > daemon; while :; do sleep 1; done' &\n"
        "while ! [ -e daemon ]; do sleep 0.01; done\n"
    )
    result = run(use(tools, "bash", {"command": command, "timeout": 10}))
    assert result.is_error is False
    assert (tmp_path / "daemon").exists()
    assert alive(marker) == []


def test_a_sandbox_hides_what_the_system_keeps_in_run(tmp_path: Path) -> None:
    """Sockets of other services lie in /run, and would be a way out."""
    try:
        tools = create_coding_tools(tmp_path, containment="sandbox")
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    result = run(use(tools, "bash", {"command": "ls -A /run /tmp | grep -v '^$'"}))
    shown = "\n".join(block.text for block in result.content)
    assert "sock" not in shown
