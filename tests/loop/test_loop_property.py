"""What holds for any script of turns, any tools, and an abort or an interrupt at any event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from pi_course.abort import AbortController
from pi_course.agent_loop import (
    AgentRunResult,
    AssistantMessageSaved,
    LoopEnd,
    LoopEvent,
    LoopHooks,
    MessageAdded,
    Refused,
    ToolEnd,
    ToolProgress,
    ToolSkipped,
    ToolStart,
    run_agent_loop,
)
from pi_course.messages import (
    AgentContext,
    AgentMessage,
    StopReason,
    ToolCall,
    assistant_message,
    text,
    unpaired_calls,
    user_message,
)
from pi_course.scripted_model import ScriptedFailure, ScriptedModel, Turn
from pi_course.tool import Tool, ToolContext, ToolOutput, ToolRegistry

settings.register_profile(
    "loop",
    deadline=None,
    max_examples=100,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
PROPERTY = settings.get_profile("loop")

Behaviour = Literal["good", "bad", "waits", "stubborn", "nobody"]
BEHAVIOURS: tuple[Behaviour, ...] = ("good", "bad", "waits", "stubborn", "nobody")
STOPS: tuple[StopReason, ...] = (
    "toolUse",
    "toolUse",
    "toolUse",
    "stop",
    "length",
    "error",
    "aborted",
)


class Arguments(BaseModel):
    ticks: int


@dataclass
class Tools:
    """Tools of every kind. Two of them end only when somebody aborts."""

    abort: Callable[[], None]

    def registry(self, sequential: bool) -> ToolRegistry:
        bodies = {
            "good": self.good,
            "bad": self.bad,
            "waits": self.waits,
            "stubborn": self.stubborn,
        }
        return ToolRegistry(
            Tool(name, f"It is {name}.", Arguments, body, sequential=sequential and name == "good")
            for name, body in bodies.items()
        )

    async def good(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        for _ in range(arguments.ticks):
            await asyncio.sleep(0)
            context.report_progress("on it")
        return ToolOutput("ok")

    async def bad(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0)
        raise LookupError("no such thing")

    async def waits(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        self.soon()
        while not context.signal.aborted:
            await asyncio.sleep(0)
        return ToolOutput("stopped")

    async def stubborn(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        self.soon()
        await asyncio.Event().wait()
        return ToolOutput("never")

    def soon(self) -> None:
        """Abort a little later: the one that was drawn may never come."""
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self.abort)


calls = st.lists(
    st.builds(
        lambda name, id, ticks: ToolCall(id=id, name=name, arguments={"ticks": ticks}),
        st.sampled_from(BEHAVIOURS),
        st.sampled_from(["a", "a", "b", "c"]),
        st.one_of(st.integers(0, 3), st.just("three")),
    ),
    max_size=4,
)
replies = st.builds(
    lambda words, asked, reason: assistant_message(
        [*map(text, words), *asked], reason, timestamp=1
    ),
    st.lists(st.sampled_from(["Hello", ""]), max_size=2),
    calls,
    st.sampled_from(STOPS),
)
failures = st.builds(
    ScriptedFailure,
    st.sampled_from(["error", "aborted"]),
    st.just("line lost"),
    st.sampled_from(["", "He"]),
)


def raises(context: AgentContext) -> ScriptedFailure:
    raise ConnectionError("no route")


turns: st.SearchStrategy[Turn] = st.one_of(replies, replies, replies, failures, st.just(raises))


@dataclass(frozen=True)
class Case:
    script: list[Turn]
    stop_at: int | None  # the event at which it is stopped
    chunk_size: int | None
    sequential: bool
    max_steps: int
    refused: str  # the id that the hook refuses
    more: int  # how many messages wait in the queue


cases = st.builds(
    Case,
    st.lists(turns, max_size=4),
    st.one_of(st.none(), st.integers(1, 40)),
    st.sampled_from([None, 1, 5]),
    st.booleans(),
    st.integers(1, 5),
    st.sampled_from(["", "a", "b"]),
    st.integers(0, 2),
)


def hooks(case: Case) -> LoopHooks:
    queue = [user_message(f"more {n}") for n in range(case.more)]

    async def before_tool_call(call: ToolCall) -> ToolCall | Refused:
        await asyncio.sleep(0)
        return Refused("not this one") if call.id == case.refused else call

    return LoopHooks(
        before_tool_call=before_tool_call,
        next_messages=lambda moment: [queue.pop()] if queue and moment == "stop" else [],
    )


def transcript(events: list[LoopEvent]) -> list[AgentMessage]:
    """The messages that the events tell, results in the order in which they came."""
    found: list[AgentMessage] = []
    for event in events:
        match event:
            case AssistantMessageSaved(message) | MessageAdded(message):
                found.append(message)
            case ToolEnd(result) | ToolSkipped(result):
                found.append(result)
            case _:
                pass
    return found


def check_order(events: list[LoopEvent]) -> None:
    """One LoopEnd, last; each call starts at most once, ends once, tells nothing after its end."""
    assert [event for event in events if isinstance(event, LoopEnd)] == events[-1:]
    started, ended = set[str](), set[str]()
    for event in events:
        match event:
            case ToolStart(call):
                assert call.id not in started | ended
                started.add(call.id)
            case ToolProgress(call_id, _):
                assert call_id in started - ended
            case ToolEnd(result):
                assert result.tool_call_id in started - ended
                ended.add(result.tool_call_id)
            case ToolSkipped(result):
                assert result.tool_call_id not in started | ended
                ended.add(result.tool_call_id)
            case _:
                pass
    assert started <= ended


async def play(case: Case, stop: Literal["abort", "interrupt"]) -> None:
    before = asyncio.all_tasks()
    controller = AbortController()
    tools, events = Tools(controller.abort), list[LoopEvent]()

    def on_event(event: LoopEvent) -> None:
        events.append(event)
        if len(events) == case.stop_at:
            if stop == "interrupt":
                task.cancel()
            else:
                controller.abort()

    given = user_message("go")
    task = asyncio.create_task(
        run_agent_loop(
            model=ScriptedModel(case.script, chunk_size=case.chunk_size),
            tools=tools.registry(case.sequential),
            context=AgentContext([given]),
            signal=controller.signal,
            on_event=on_event,
            hooks=hooks(case),
            max_steps=case.max_steps,
            grace_seconds=0.001,
        )
    )
    await asyncio.wait({task})
    told = transcript(events)
    check_order(events)
    assert unpaired_calls(told) == []
    if task.cancelled():
        assert stop == "interrupt"  # it may come when the run has its end already
    else:
        check_result(task.result(), given, told, events)
    controller.abort()  # whoever gave the signal stops the model
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


def check_result(
    result: AgentRunResult, given: AgentMessage, told: list[AgentMessage], events: list[LoopEvent]
) -> None:
    assert events[-1] == LoopEnd(result.reason)
    assert result.messages[0] is given
    assert sorted(map(id, result.messages[1:])) == sorted(map(id, told))
    assert unpaired_calls(result.messages) == []
    open_calls: list[str] = []  # results follow their reply, in the order of its calls
    for message in result.messages:
        if message.role == "toolResult":
            assert message.tool_call_id == open_calls.pop(0)
        else:
            assert open_calls == []
            if message.role == "assistant":
                open_calls = [b.id for b in message.content if isinstance(b, ToolCall)]
    assert open_calls == []


@PROPERTY
@given(case=cases)
def test_any_script_with_an_abort_at_any_event(case: Case) -> None:
    asyncio.run(asyncio.wait_for(play(case, "abort"), 10))


@PROPERTY
@given(case=cases)
def test_any_script_with_an_interrupt_at_any_event(case: Case) -> None:
    asyncio.run(asyncio.wait_for(play(case, "interrupt"), 10))
