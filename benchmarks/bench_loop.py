"""What the agent loop costs per turn, with a model and a tool that take no time.

A turn is one request, its reply with one call, and the result. The floor is the same turn by hand:
the reply read and the call executed in a row, without events, aborts, hooks or a task. The peers
are measured if they are installed. All times are processor time.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from benchmarks.measure import Row, compared, limited
from pi_course.abort import AbortController
from pi_course.agent_loop import run_agent_loop
from pi_course.event_stream import AssistantMessageEventStream
from pi_course.messages import (
    AgentContext,
    AgentMessage,
    AssistantMessage,
    Done,
    Error,
    Signal,
    ToolCall,
    assistant_message,
    text,
    user_message,
)
from pi_course.tool import Tool, ToolContext, ToolOutput, ToolRegistry, execute_tool_call

SIZES = (50, 200, 1_600)
AT_ONCE = 64
Run = Callable[[int], Awaitable[float]]
"""Takes the number of turns, gives back seconds; what is prepared before is not counted."""


def rows() -> list[Row]:
    return [*ours(), *peers(), *batches()]


class Nothing(BaseModel):
    """A tool without arguments."""


async def ok(arguments: Nothing, context: ToolContext) -> ToolOutput:
    return ToolOutput("ok")


class InstantModel:
    def __init__(self, replies: Sequence[AssistantMessage]) -> None:
        self._replies = iter(replies)

    def stream(
        self, context: AgentContext, *, signal: Signal | None = None
    ) -> AssistantMessageEventStream:
        stream = AssistantMessageEventStream()
        reply = next(self._replies)
        match reply.stop_reason:
            case "error" | "aborted" as reason:
                stream.push(Error(reason, reply))
            case reason:
                stream.push(Done(reason, reply))
        return stream


def replies(turns: int, calls: int = 1) -> list[AssistantMessage]:
    asking = [
        assistant_message(
            [ToolCall(id=f"call_{n}_{m}", name="ok", arguments={}) for m in range(calls)],
            "toolUse",
        )
        for n in range(turns)
    ]
    return [*asking, assistant_message([text("done")])]


def registry() -> ToolRegistry:
    return ToolRegistry([Tool("ok", "Says ok.", Nothing, ok)])


async def loop(turns: int, calls: int = 1) -> float:
    model, tools, context = InstantModel(replies(turns, calls)), registry(), asking()
    gc.collect()
    started = time.process_time()
    result = await run_agent_loop(
        model=model,
        tools=tools,
        context=context,
        on_event=lambda event: None,
        max_steps=turns + 1,
    )
    took = time.process_time() - started
    assert (result.reason, result.steps) == ("stop", turns + 1)
    return took


async def by_hand(turns: int) -> float:
    script, tools, signal = replies(turns), registry(), AbortController().signal
    model, messages = InstantModel(script), list[AgentMessage](asking().messages)
    gc.collect()
    started = time.process_time()
    for _ in script:
        stream = model.stream(AgentContext(messages, tools.definitions()), signal=signal)
        async for _ in stream:
            pass
        reply = await stream.result()
        messages.append(reply)
        for block in reply.content:
            if isinstance(block, ToolCall):
                context = ToolContext(block.id, signal)
                messages.append(await execute_tool_call(block, tools, context))
    took = time.process_time() - started
    assert len(messages) == 2 * turns + 2
    return took


def asking() -> AgentContext:
    return AgentContext([user_message("hi")])


def median(run: Run, turns: int, rounds: int) -> float:
    """Microseconds a turn. The first round only warms up."""
    took = [asyncio.run(one(run, turns)) for _ in range(rounds + 1)]
    return statistics.median(took[1:]) / turns * 1e6


async def one(run: Run, turns: int) -> float:
    return await run(turns)


def ours() -> Iterator[Row]:
    whole: dict[int, float] = {}
    for turns in SIZES:
        rounds = max(5, 1_600 // turns)
        hand, whole[turns] = median(by_hand, turns, rounds), median(loop, turns, rounds)
        yield limited(
            f"loop, {turns} turns, overhead a turn", whole[turns] - hand, "us", at_most=100
        )
        yield compared(f"loop, {turns} turns, a turn", whole[turns], "us", ("by hand", hand))
    least, most = SIZES[0], SIZES[-1]
    against = (f"{least} turns", whole[least])
    yield compared(f"loop, a turn of {most}", whole[most], "us", against, at_most=1.2)


def batches() -> Iterator[Row]:
    """Calls of one reply share the cost of their turn."""
    alone = median(loop, 50, 5)
    together = median(lambda turns: loop(turns, AT_ONCE), 10, 5)
    at_most = float(AT_ONCE)
    yield compared(
        f"loop, {AT_ONCE} calls at once", together, "us", ("one call", alone), at_most=at_most
    )


# Peers


def peers() -> Iterator[Row]:
    subjects: dict[str, Run] = {"pydantic_ai": pydantic_ai, "agents": openai_agents}
    names = {"pydantic_ai": "pydantic-ai", "agents": "openai-agents"}
    for module, run in subjects.items():
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {names[module]} is not installed", file=sys.stderr)
            continue
        for turns in SIZES[:2]:
            mine, theirs = median(loop, turns, 5), median(run, turns, 2)
            at_most = 1 / 50 if (module, turns) == ("pydantic_ai", 200) else None
            name, against = f"loop, {turns} turns, beside", (names[module], theirs)
            yield compared(f"{name} {against[0]}", mine, "us", against, at_most=at_most)


async def pydantic_ai(turns: int) -> float:
    library: Any = importlib.import_module("pydantic_ai")
    messages: Any = importlib.import_module("pydantic_ai.messages")
    function: Any = importlib.import_module("pydantic_ai.models.function")
    usage: Any = importlib.import_module("pydantic_ai.usage")
    made = 0

    def answer(history: object, info: object) -> object:
        nonlocal made
        made += 1
        if made > turns:
            return messages.ModelResponse(parts=[messages.TextPart("done")])
        call = messages.ToolCallPart(tool_name="ok", args={}, tool_call_id=f"call_{made}")
        return messages.ModelResponse(parts=[call])

    async def tool() -> str:
        return "ok"

    agent = library.Agent(function.FunctionModel(answer))
    agent.tool_plain(tool, name="ok")
    limits = usage.UsageLimits(request_limit=None)
    gc.collect()
    started = time.process_time()
    result = await agent.run("hi", usage_limits=limits)
    took = time.process_time() - started
    assert (result.output, made) == ("done", turns + 1)
    return took


async def openai_agents(turns: int) -> float:
    library: Any = importlib.import_module("agents")
    responses: Any = importlib.import_module("openai.types.responses")
    made = 0

    async def get_response(*arguments: object, **options: object) -> object:
        nonlocal made
        made += 1
        if made > turns:
            part = responses.ResponseOutputText(annotations=[], text="done", type="output_text")
            item = responses.ResponseOutputMessage(
                id="m", content=[part], role="assistant", status="completed", type="message"
            )
        else:
            item = responses.ResponseFunctionToolCall(
                arguments="{}", call_id=f"call_{made}", name="ok", type="function_call"
            )
        return library.ModelResponse(output=[item], usage=library.Usage(), response_id=None)

    async def tool() -> str:
        return "ok"

    methods = {"get_response": staticmethod(get_response), "stream_response": None}
    model = type("Instant", (library.Model,), methods)()
    tools = [library.function_tool(tool, name_override="ok")]
    agent = library.Agent(name="a", model=model, tools=tools)
    config = library.RunConfig(tracing_disabled=True)
    gc.collect()
    started = time.process_time()
    result = await library.Runner.run(agent, "hi", max_turns=turns + 2, run_config=config)
    took = time.process_time() - started
    assert (result.final_output, made) == ("done", turns + 1)
    return took
