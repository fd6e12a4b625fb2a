"""The tools beside what they can't be faster than: bare files, bare subprocess.

read and edit go through execute_tool_call, as in the loop.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.measure import Row, compared, medians
from pi_course.abort import AbortController
from pi_course.coding_tools import create_coding_tools
from pi_course.coding_tools.write import replace_file
from pi_course.messages import ToolCall
from pi_course.tool import ToolContext, ToolRegistry, execute_tool_call

ROUNDS = 15
STARTS = 200
SMALL, LARGE = 5_000_000, 500_000_000
LINE = b"a line of a program, such as there are many: return value or default\n"
AT_ONCE = 8


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch, asyncio.Runner() as runner:
        folder = Path(scratch)
        tools = create_coding_tools(folder)
        use = _caller(runner, tools)
        return [*_read(folder, use), *_edit(folder, use), *_bash(folder, runner)]


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
        replace_file(folder / "bare.py", text.replace("marker", "market").encode("utf-8"))

    shutil.copyfile(path, folder / "bare.py")
    took = medians({"edit": edit, "bare": bare}, ROUNDS)
    floor = ("read, decode, replace, encode, sync", took["bare"])
    return [compared("edit a line of a 5 MB file", took["edit"], "ms", floor, at_most=4)]


def _bash(folder: Path, runner: asyncio.Runner) -> list[Row]:
    """The tool itself, as its function is called: without parsing and making a result."""
    bash = shutil.which("bash") or "/bin/sh"
    tool = create_coding_tools(folder).get("bash")
    assert tool is not None
    context = ToolContext("call_1", AbortController().signal)

    async def run(command: str) -> None:
        output = await tool.execute(tool.parameters(command=command), context)
        if output.is_error:
            raise RuntimeError(f"{command} failed, and a failure is no measurement")

    async def together(count: int) -> None:
        await asyncio.gather(*(run("sleep 0.2") for _ in range(count)))

    def bare() -> None:
        argv = [bash, "-c", ":"]
        subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)

    async def starts() -> tuple[float, float]:
        """Median milliseconds of a bare start and of the tool's, in turns, within one loop."""
        taken: dict[str, list[float]] = {"bare": [], "tool": []}
        for _ in range(STARTS):
            begun = time.perf_counter()
            bare()
            between = time.perf_counter()
            await run(":")
            taken["bare"].append((between - begun) * 1000)
            taken["tool"].append((time.perf_counter() - between) * 1000)
        return median(taken["bare"]), median(taken["tool"])

    floor, started = runner.run(starts())
    slept = medians(
        {"one": lambda: runner.run(together(1)), "all": lambda: runner.run(together(AT_ONCE))}, 5
    )
    return [
        compared("bash, start to exit", started, "ms", ("subprocess.run", floor), at_most=1.3),
        compared(
            f"{AT_ONCE} commands of 0.2 s at once",
            slept["all"],
            "ms",
            ("one of them", slept["one"]),
            at_most=1.5,
        ),
    ]
