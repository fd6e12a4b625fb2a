"""Servers that bend the format, as people have reported them: what each reply must come to."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from pi_course.messages import AgentContext, AssistantMessage, ToolCall, text_of, user_message
from pi_course.providers.anthropic_messages import (
    create_anthropic_model,
    create_anthropic_transport,
)
from pi_course.providers.openai_compatible import (
    create_openai_compatible_model,
    create_openai_compatible_transport,
)
from pi_course_kit.loopback import sse

READ = {"name": "read", "arguments": '{"path":"README.md"}'}


def choice(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(**more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "id": "call-1", "type": "function", **more}]}


def message(body: bytes, format: str = "openai") -> AssistantMessage:
    async def inside() -> AssistantMessage:
        handler = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
        async with httpx.AsyncClient(transport=handler) as client:
            make_model: Any
            if format == "openai":
                make_model = create_openai_compatible_model
                transport = create_openai_compatible_transport(
                    base_url="http://m/v1", client=client
                )
            else:
                make_model = create_anthropic_model
                transport = create_anthropic_transport(base_url="http://m", client=client)
            model = make_model(provider="p", model="m", transport=transport)
            return await model.stream(AgentContext([user_message("hi")])).result()

    return asyncio.run(inside())


@pytest.mark.parametrize(
    "payloads",
    [
        [choice(**call(function=READ, custom={}))],
        [choice(role="assistant", content=None), choice(content=None, **call(function=READ))],
        [
            choice(
                reasoning_details=[{"type": "reasoning.encrypted", "id": "call-1", "data": "x"}]
            ),
            choice(**call(function=READ)),
        ],
        [choice(reasoning_content="hm", content="", **call(function=READ))],
        [choice(**call(function=READ)), choice(**call(function=None))],
    ],
    ids=["empty-custom", "null-content", "reasoning-before", "reasoning-beside", "no-function"],
)
def test_the_call_of_the_example_is_whole(payloads: list[dict[str, Any]]) -> None:
    # Pi, report 5819
    # Pi, report 7288
    # Pi, report 5114
    got = message(b"".join(map(sse, [*payloads, choice("tool_calls")])) + sse("[DONE]"))
    raw = READ["arguments"]
    arguments = {"path": "README.md"}
    expected = ToolCall(id="call-1", name="read", arguments=arguments, raw_arguments=raw)
    assert (got.content, got.stop_reason) == ((expected,), "toolUse")


def test_usage_in_the_choice_is_counted() -> None:
    # Pi, report 2017
    last = choice("stop", content="a")
    last["choices"][0]["usage"] = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    got = message(sse(last) + sse("[DONE]"))
    assert (got.usage.input, got.usage.output) == (3, 4)


def test_no_usage_of_a_cut_reply_is_made_up() -> None:
    """A reply without an end is no reply, and its zeros are no count of anything."""
    # Pi, report 5526
    got = message(sse(choice(content="half")))
    assert got.stop_reason == "error"
    assert text_of(got) == "half"
    assert (got.usage.input, got.usage.output) == (0, 0)


START = {"type": "content_block_start", "index": 0}
STOP = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("end", [b"", sse("[DONE]"), sse("[DONE]", "done")])
def test_text_of_a_blocks_start_counts_and_another_end_is_skipped(end: bytes) -> None:
    # Pi, report 7358
    # Pi, report 3708
    start = {**START, "content_block": {"type": "text", "text": "Hel"}}
    delta = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "lo"},
    }
    body = sse(start, "content_block_start") + sse(delta, "content_block_delta") + end
    got = message(body + b"".join(sse(event, event["type"]) for event in STOP), "anthropic")
    assert (text_of(got), got.stop_reason) == ("Hello", "stop")
