"""A conversation goes on after an abort, over HTTP, with a server that refuses open calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest
from pydantic import BaseModel

from pi_course.abort import AbortController, AbortSignal
from pi_course.agent_loop import (
    AgentRunResult,
    LoopEvent,
    ModelEventSeen,
    ToolStart,
    run_agent_loop,
)
from pi_course.messages import (
    AgentContext,
    AgentMessage,
    Model,
    TextDelta,
    ToolCallDelta,
    user_message,
)
from pi_course.providers.anthropic_messages import (
    create_anthropic_model,
    create_anthropic_transport,
)
from pi_course.providers.openai_compatible import (
    create_openai_compatible_model,
    create_openai_compatible_transport,
)
from pi_course.tool import Tool, ToolContext, ToolOutput, ToolRegistry
from pi_course_kit.loopback import Answer, Asked, Call, LoopbackServer, Reply, Turn


class Read(BaseModel):
    path: str


async def read(arguments: Read, context: ToolContext) -> ToolOutput:
    assert isinstance(context.signal, AbortSignal)
    await context.signal.wait()
    return ToolOutput("stopped")


TOOLS = ToolRegistry([Tool("read", "Read a file.", Read, read)])
LONG = "README.md" * 100
CALLS = (
    Call("call_1", "read", '{"path": "README.md"}'),
    Call("call_2", "read", json.dumps({"path": LONG})),
)


def in_text(event: LoopEvent) -> bool:
    return isinstance(event, ModelEventSeen) and isinstance(event.event, TextDelta)


def in_second_call(event: LoopEvent) -> bool:
    return (
        isinstance(event, ModelEventSeen)
        and isinstance(event.event, ToolCallDelta)
        and event.event.content_index == 1
        and event.event.delta != ""
    )


def in_a_tool(event: LoopEvent) -> bool:
    return isinstance(event, ToolStart)


def model_at(server: LoopbackServer, format: str) -> Model:
    if format == "openai":
        transport = create_openai_compatible_transport(base_url=server.openai_url)
        return create_openai_compatible_model(provider="x", model="m", transport=transport)
    transport = create_anthropic_transport(base_url=server.anthropic_url)
    return create_anthropic_model(provider="x", model="m", transport=transport)


async def ask(
    model: Model,
    messages: Sequence[AgentMessage],
    words: str,
    signal: AbortSignal,
    on_event: Callable[[LoopEvent], None] | None = None,
) -> AgentRunResult:
    run = run_agent_loop(
        model=model,
        tools=TOOLS,
        context=AgentContext([*messages, user_message(words)]),
        signal=signal,
        on_event=on_event,
    )
    return await asyncio.wait_for(run, 30)


MOMENTS: dict[str, tuple[Turn, Callable[[LoopEvent], bool]]] = {
    "text": (Answer(Reply(text=LONG), stall_after=2000), in_text),
    "call": (Answer(Reply(calls=CALLS), stall_after=3000), in_second_call),
    "tools": (Reply(calls=CALLS), in_a_tool),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_the_request_after_an_abort_is_one_that_servers_take(format: str, moment: str) -> None:
    # Pi, report 838
    turn, when = MOMENTS[moment]

    async def twice() -> tuple[AgentRunResult, AgentRunResult, list[Asked]]:
        async with LoopbackServer([turn, Reply(text="Here again.")]) as server:
            model = model_at(server, format)
            stopped = AbortController()

            def stop(event: LoopEvent) -> None:
                if when(event):
                    stopped.abort("stop button")

            first = await ask(model, [], "Read README.md", stopped.signal, stop)
            again = await ask(model, first.messages, "Go on", AbortController().signal)
            return first, again, server.requests

    first, again, requests = asyncio.run(twice())
    assert (first.reason, again.reason) == ("aborted", "stop"), again.messages[-1]
    assert len(requests) == 2
    assert "Here again." in str(again.messages[-1])
    results = sum(message.role == "toolResult" for message in first.messages)
    assert results == (0 if moment == "text" else 2)
