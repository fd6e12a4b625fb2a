"""Each recorded body gives its message, wherever the network cuts it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from pi_course.messages import AgentContext, AssistantMessage, TextContent, ToolCall, user_message
from pi_course.providers.anthropic_messages import (
    AnthropicPayloadReader,
    create_anthropic_model,
    create_anthropic_transport,
)
from pi_course.providers.chunks import ProviderChunk
from pi_course.providers.openai_compatible import (
    create_openai_compatible_model,
    create_openai_compatible_transport,
    fixed_transport,
)
from pi_course.providers.openai_payload import OpenAIPayloadReader
from pi_course.providers.sse import SseDecoder
from pi_course_kit.loopback import Answer, LoopbackServer

READERS = {"openai": OpenAIPayloadReader, "anthropic": AnthropicPayloadReader}


def chunks_of(format: str, pieces: Iterable[bytes]) -> list[ProviderChunk]:
    decoder, reader = SseDecoder(), READERS[format]()
    chunks: list[ProviderChunk] = []
    for piece in pieces:
        for event in decoder.feed(piece):
            if not reader.done:
                chunks += reader.read(event)
    return chunks + reader.close()


async def final_of(chunks: Iterable[ProviderChunk]) -> AssistantMessage:
    model = create_openai_compatible_model(
        provider="p", model="m", transport=fixed_transport(chunks)
    )
    return await model.stream(AgentContext([])).result()


def same(message: AssistantMessage, body: Any) -> None:
    """The message is the one that the body's entry says."""
    blocks = tuple(
        block.text if isinstance(block, TextContent) else (block.name, block.arguments)
        for block in message.content
    )
    assert message.error_message is None
    assert blocks == body.blocks
    assert tuple(b.id for b in message.content if isinstance(b, ToolCall)) == body.ids
    assert message.stop_reason == body.stop_reason
    assert (message.usage.input, message.usage.output) == body.usage


def test_body_gives_its_message(body: Any) -> None:
    same(asyncio.run(final_of(chunks_of(body.format, [body.bytes]))), body)


def test_body_cut_at_every_byte_gives_the_same_chunks(body: Any) -> None:
    whole = chunks_of(body.format, [body.bytes])
    for cut in range(len(body.bytes) + 1):
        assert chunks_of(body.format, [body.bytes[:cut], body.bytes[cut:]]) == whole, cut


def test_body_byte_by_byte_gives_the_same_chunks(body: Any) -> None:
    single = [body.bytes[i : i + 1] for i in range(len(body.bytes))]
    assert chunks_of(body.format, single) == chunks_of(body.format, [body.bytes])


def model_for(format: str, server: LoopbackServer, **options: Any) -> Any:
    if format == "openai":
        transport = create_openai_compatible_transport(base_url=server.openai_url, **options)
        return create_openai_compatible_model(provider="p", model="m", transport=transport)
    transport = create_anthropic_transport(base_url=server.anthropic_url, **options)
    return create_anthropic_model(provider="p", model="m", transport=transport)


@pytest.mark.parametrize("each", [None, 1, 7])
def test_body_over_a_real_socket(body: Any, each: int | None) -> None:
    async def ask() -> tuple[AssistantMessage, set[Any]]:
        async with LoopbackServer([Answer(body.bytes, each=each)]) as server:
            before = asyncio.all_tasks()
            stream = model_for(body.format, server).stream(AgentContext([user_message("hi")]))
            message = await stream.result()
            return message, asyncio.all_tasks() - before - server.tasks

    message, left = asyncio.run(ask())
    same(message, body)
    assert left == set()


def test_there_are_eight_bodies_and_more_with_characters_of_several_bytes(
    bodies: dict[str, Any],
) -> None:
    assert sum(not body.bytes.isascii() for body in bodies.values()) >= 7
    assert len(bodies) >= 8
