"""Each recorded body gives its message, wherever the network cuts it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from pi_course.messages import AgentContext, AssistantMessage, TextContent, ToolCall, user_message
from pi_course.providers.anthropic_messages import (
    AnthropicPayloadReader,
    create_anthropic_model,
    create_anthropic_transport,
)
from pi_course.providers.chunks import ProviderChunk
from pi_course.providers.http_transport import trusted_certificates
from pi_course.providers.openai_compatible import (
    create_openai_compatible_model,
    create_openai_compatible_transport,
    fixed_transport,
)
from pi_course.providers.openai_payload import OpenAIPayloadReader
from pi_course.providers.sse import SseDecoder
from pi_course_kit.loopback import Answer, LoopbackServer, Reply, openai_body

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
    # Pi, report 608
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


def test_one_client_goes_on_with_its_connection() -> None:
    """With a client for several streams, the handshake is paid once."""
    connections: list[Any] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                reply = openai_body(Reply("hi"))
                writer.write(b"HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n")
                writer.write(b"%x\r\n%b\r\n" % (len(reply), reply))
                await writer.drain()
                writer.write(b"0\r\n\r\n")
        writer.close()

    async def ask_thrice() -> list[str]:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server, httpx.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = create_openai_compatible_transport(base_url=url, client=client)
            model = create_openai_compatible_model(provider="p", model="m", transport=transport)
            replies = [await model.stream(AgentContext([])).result() for _ in range(3)]
        await asyncio.gather(*connections)
        await asyncio.sleep(0)
        return [reply.stop_reason for reply in replies]

    assert asyncio.run(ask_thrice()) == ["stop"] * 3
    assert len(connections) == 1


def test_certificates_are_checked() -> None:
    assert trusted_certificates().verify_mode == ssl.CERT_REQUIRED
    assert trusted_certificates().check_hostname is True


def test_there_are_eight_bodies_and_more_with_characters_of_several_bytes(
    bodies: dict[str, Any],
) -> None:
    assert sum(not body.bytes.isascii() for body in bodies.values()) >= 7
    assert len(bodies) >= 8
