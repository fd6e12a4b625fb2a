"""The tools beside what they can't be faster than: bare files, bare subprocess.

Each call goes through execute_tool_call, as in the loop: arguments are parsed, a result is made.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row, compared, limited, medians
from pi_course.abort import AbortController
from pi_course.coding_tools import create_coding_tools
from pi_course.coding_tools.write import replace_file
from pi_course.messages import ToolCall
from pi_course.tool import ToolContext, ToolRegistry, execute_tool_call

ROUNDS = 15
STARTS = 60
SMALL, LARGE = 5_000_000, 500_000_000
LINE = b"a line of a program, such as there are many: return value or default\n"
AT_ONCE = 8


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch, asyncio.Runner() as runner:
        folder = Path(scratch)
        tools = create_coding_tools(folder)
        use = _caller(runner, tools)
        return [*_read(folder, use), *_edit(folder, use), *_bash(folder, use, runner, tools)]


Use = Callable[[str, dict[str, object]], None]


async def _one(tools: ToolRegistry, name: str, arguments: dict[str, object]) -> None:
    call = ToolCall(id="call_1", name=name, arguments=arguments)
    context = ToolContext("call_1", AbortController().signal)
    result = await execute_tool_call(call, tools, context)
    if result.is_error:
        raise RuntimeError(f"{name} failed, and a failure is no measurement: {result.content}")


def _caller(runner: asyncio.Runner, tools: ToolRegistry) -> Use:
    def use(name: str, arguments: dict[str, object]) -> None:
        runner.run(_one(tools, name, arguments))

    return use


def _fill(path: Path, size: int) -> None:
    block = LINE * (1_000_000 // len(LINE))
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(block)


def _read(folder: Path, use: Use) -> list[Row]:
    _fill(folder / "small.txt", SMALL)
    _fill(folder / "large.txt", LARGE)
    window: dict[str, object] = {"offset": 1000, "limit": 200}
    took = medians(
        {
            name: lambda name=name: use("read", {"path": f"{name}.txt", **window})
            for name in ("small", "large")
        },
        ROUNDS,
    )
    (folder / "large.txt").unlink()
    floor = ("the same window in 5 MB", took["small"])
    goal = "read a window of 200 lines in 500 MB"
    return [compared(goal, took["large"], "ms", floor, at_most=1.2)]


def _edit(folder: Path, use: Use) -> list[Row]:
    """One line in the middle of 5 MB, there and back again."""
    path = folder / "edited.py"
    half = LINE * (SMALL // len(LINE) // 2)
    path.write_bytes(half + b"marker = 0\n" + half)
    number = 0

    def edit() -> None:
        nonlocal number
        pair = {"oldText": f"marker = {number}\n", "newText": f"marker = {number + 1}\n"}
        number += 1
        use("edit", {"path": path.name, "edits": [pair]})

    def bare() -> None:
        text = (folder / "bare.py").read_bytes().decode("utf-8")
        replace_file(folder / "bare.py", text.replace("marker = 0", "marker = 0").encode("utf-8"))

    shutil.copyfile(path, folder / "bare.py")
    took = medians({"edit": edit, "bare": bare}, ROUNDS)
    floor = ("read, decode, replace, encode, sync", took["bare"])
    return [compared("edit a line of a 5 MB file", took["edit"], "ms", floor, at_most=4)]


def _bash(folder: Path, use: Use, runner: asyncio.Runner, tools: ToolRegistry) -> list[Row]:
    bash = shutil.which("bash") or "/bin/sh"

    def bare(command: str) -> Callable[[], object]:
        argv = [bash, "-c", command]
        return lambda: subprocess.run(
            argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )

    async def together(name: str, arguments: dict[str, object], count: int) -> None:
        await asyncio.gather(*(_one(tools, name, arguments) for _ in range(count)))

    def at_once(count: int) -> Callable[[], None]:
        return lambda: runner.run(together("bash", {"command": "sleep 0.2"}, count))

    started = medians({"bare": bare(":"), "tool": lambda: use("bash", {"command": ":"})}, STARTS)
    slept = medians({"one": at_once(1), "eight": at_once(AT_ONCE)}, 5)
    return [
        compared(
            "bash starts a command",
            started["tool"],
            "ms",
            ("subprocess.run", started["bare"]),
            at_most=1.3,
        ),
        compared(
            "8 commands of 0.2 s at once",
            slept["eight"],
            "ms",
            ("one of them", slept["one"]),
            at_most=1.5,
        ),
        limited("bash, beyond the bare start", started["tool"] - started["bare"], "ms"),
    ]
