"""The official clients as witnesses: their request types, and what they make of the same bytes.

Where they are right, ours gives the same message. Where they are not, a test says what right is
and why. Should one of those fail because a client was mended: good, take the claim out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic import TypeAdapter

from pi_course.messages import (
    AgentContext,
    AssistantMessage,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    assistant_message,
    text,
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
from pi_course_kit.loopback import (
    Answer,
    Call,
    LoopbackServer,
    Reply,
    anthropic_body,
    openai_body,
    sse,
)
from tests.run import SECRET

openai = pytest.importorskip("openai", reason="a witness: pip install -e '.[peers]'")
anthropic = pytest.importorskip("anthropic", reason="a witness: pip install -e '.[peers]'")

CALL = ToolCall(id="call-1", name="read", arguments={"path": "README.md"})
CONTEXT = AgentContext(
    [
        SystemMessage(content="Answer briefly.", timestamp=0),
        user_message("读取 README.md"),
        assistant_message([text("I look."), CALL], "toolUse"),
        ToolResultMessage(
            tool_call_id="call-1",
            tool_name="read",
            content=[text("# Project"), text("")],
            is_error=True,
            timestamp=1,
        ),
        assistant_message([ToolCall(id="cut", name="read", arguments={})], "aborted"),
        user_message("go on"),
    ],
    [
        ToolDefinition(
            name="read",
            description="Read a file",
            parameters={"type": "object", "properties": {"path": {"type": "string"}}},
        )
    ],
)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def ours(format: str, server: LoopbackServer) -> Any:
    key = f"sk-{SECRET}"
    if format == "openai":
        transport = create_openai_compatible_transport(base_url=server.openai_url, api_key=key)
        return create_openai_compatible_model(provider="p", model="m", transport=transport)
    transport = create_anthropic_transport(base_url=server.anthropic_url, api_key=key)
    return create_anthropic_model(provider="p", model="m", transport=transport)


def read(format: str, body: bytes) -> AssistantMessage:
    """What ours makes of a body, over a real socket."""

    async def ask() -> AssistantMessage:
        async with LoopbackServer([Answer(body)]) as server:
            context = AgentContext([user_message("hi")])
            return await ours(format, server).stream(context).result()

    return asyncio.run(ask())


# Requests


def sent(format: str) -> Any:
    async def ask() -> Any:
        async with LoopbackServer([Reply("ok")]) as server:
            message = await ours(format, server).stream(CONTEXT).result()
            assert message.error_message is None
            return server.requests[0].body

    return asyncio.run(ask())


def walked(value: object) -> object:
    """The value with all lazy parts run: pydantic checks an Iterable only when it is read."""
    if isinstance(value, dict):
        return {key: walked(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [walked(item) for item in cast("list[object]", value)]


def test_openai_request_is_what_its_own_types_ask_for() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    body = sent("openai")
    checked = walked(TypeAdapter(CompletionCreateParamsStreaming).validate_python(body))
    for message in body["messages"]:
        # More than the types know: servers of the older kind want the tool's name here, too.
        if message["role"] == "tool":
            message.pop("name")
    assert checked == body


def test_anthropic_request_is_what_its_own_types_ask_for() -> None:
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    body = sent("anthropic")
    assert walked(TypeAdapter(MessageCreateParamsStreaming).validate_python(body)) == body


# The same bytes, where the clients are right


def openai_client(body: bytes) -> tuple[str, list[tuple[str, str, str]], str | None]:
    """Text, calls and finish reason of openai's own stream, put together as its docs say."""

    async def ask() -> tuple[str, list[tuple[str, str, str]], str | None]:
        said, reason = "", None
        calls: dict[int, list[str]] = {}
        async with LoopbackServer([Answer(body)]) as server:
            client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
            async with client:
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "hi"}], stream=True
                )
                async for chunk in stream:
                    for choice in chunk.choices:
                        reason = choice.finish_reason or reason
                        said += choice.delta.content or ""
                        for piece in choice.delta.tool_calls or []:
                            call = calls.setdefault(piece.index, [piece.id or "", "", ""])
                            call[1] += piece.function.name or ""
                            call[2] += piece.function.arguments or ""
        return said, [(c[0], c[1], c[2]) for c in calls.values()], reason

    return asyncio.run(ask())


def openai_helper(body: bytes) -> tuple[str, list[tuple[str, str, str]], str | None]:
    """The same of its streaming helper."""

    async def ask() -> tuple[str, list[tuple[str, str, str]], str | None]:
        async with LoopbackServer([Answer(body)]) as server:
            client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
            async with client:
                asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
                async with client.chat.completions.stream(**asked) as stream:
                    async for _ in stream:
                        pass
                    choice = (await stream.get_final_completion()).choices[0]
        calls = [
            (call.id, call.function.name, call.function.arguments)
            for call in choice.message.tool_calls or []
        ]
        return choice.message.content or "", calls, choice.finish_reason

    return asyncio.run(ask())


def anthropic_client(body: bytes) -> tuple[list[Any], str | None, tuple[int, int]]:
    """Content, stop reason and usage of anthropic's own stream."""

    async def ask() -> tuple[list[Any], str | None, tuple[int, int]]:
        async with LoopbackServer([Answer(body)]) as server:
            client = anthropic.AsyncAnthropic(
                base_url=server.anthropic_url, api_key="k", max_retries=0
            )
            async with client:
                asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
                async with client.messages.stream(max_tokens=9, **asked) as stream:
                    final = await stream.get_final_message()
        content = [
            block.text if block.type == "text" else (block.id, block.name, block.input)
            for block in final.content
        ]
        usage = (final.usage.input_tokens, final.usage.output_tokens)
        return content, final.stop_reason, usage

    return asyncio.run(ask())


def parts(message: AssistantMessage) -> tuple[str, list[tuple[str, str, str]]]:
    said = "".join(b.text for b in message.content if isinstance(b, TextContent))
    calls = [b for b in message.content if isinstance(b, ToolCall)]
    return said, [(call.id, call.name, call.raw_arguments or "") for call in calls]


REPLIES = {
    "text": Reply("读取 \U0001f600 README"),
    "call": Reply(calls=(Call("call-1", "read", '{"path":"README.md"}'),)),
    "both": Reply("I look.", (Call("a", "read", '{"p":"é"}'), Call("b", "ls", "{}")), piece=2),
    "length": Reply("cut o", finish="length"),
}
OURS = {"stop": "stop", "length": "length", "tool_calls": "toolUse"}


# The helper raises on purpose for a reply that was cut at the limit.
@pytest.mark.parametrize(
    ("client", "name"),
    [
        *((openai_client, name) for name in REPLIES),
        *((openai_helper, name) for name in REPLIES if name != "length"),
    ],
)
def test_openai_reads_the_same(name: str, client: Callable[[bytes], Any]) -> None:
    body = openai_body(REPLIES[name])
    said, calls, reason = client(body)
    message = read("openai", body)

    assert (said, calls) == parts(message)
    assert OURS[reason or ""] == message.stop_reason


@pytest.mark.parametrize("name", REPLIES)
def test_anthropic_reads_the_same(name: str) -> None:
    body = anthropic_body(REPLIES[name])
    content, _, usage = anthropic_client(body)
    message = read("anthropic", body)

    assert content == [
        b.text if isinstance(b, TextContent) else (b.id, b.name, b.arguments)
        for b in message.content
    ]
    assert usage == (message.usage.input, message.usage.output)


def test_openai_reads_the_recorded_interleaving_the_same(bodies: dict[str, Any]) -> None:
    body = bodies["interleaved"].bytes
    said, calls, reason = openai_client(body)

    assert (said, calls) == parts(read("openai", body))
    assert reason == "tool_calls"


def test_clients_speak_to_the_server_as_to_a_real_one() -> None:
    """A call without a result is refused to them, too, and the error names the id."""

    async def ask() -> str:
        async with LoopbackServer([]) as server:
            client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
            call = {"id": "call-9", "type": "function", "function": {"name": "a", "arguments": ""}}
            async with client:
                with pytest.raises(openai.BadRequestError) as refused:
                    await client.chat.completions.create(
                        model="m", messages=[{"role": "assistant", "tool_calls": [call]}]
                    )
            return str(refused.value)

    assert "call-9" in asyncio.run(ask())


# Where the clients are wrong


def fails(client: Callable[[bytes], Any], body: bytes) -> bool:
    try:
        client(body)
    except Exception:
        return True
    return False


def without(body: bytes, *marks: bytes) -> bytes:
    """The body without the events that hold one of the marks."""
    events = body.split(b"\n\n")
    return b"\n\n".join(e for e in events if not any(mark in e for mark in marks))


def test_a_reply_that_was_cut_is_an_error() -> None:
    """Both clients take half a reply for a whole one. An agent would act on half a thought."""
    half = without(openai_body(Reply("hello", piece=2)), b'"stop"', b"usage", b"[DONE]")
    said, _, reason = openai_client(half)
    assert (said, reason) == ("hello", None)
    message = read("openai", half)
    assert message.stop_reason == "error"
    assert parts(message) == ("hello", [])

    half = without(anthropic_body(Reply("hello", piece=2)), b"message_delta", b"message_stop")
    content, reason, _ = anthropic_client(half)
    assert (content, reason) == (["hello"], None)
    assert "without message_stop" in (read("anthropic", half).error_message or "")


def test_content_after_the_end_is_an_error() -> None:
    """A server that goes on after its own stop reason is broken: what it says can't be trusted."""
    late = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "!"}}
    stop = b"event: message_stop"
    body = anthropic_body(Reply("hello")).replace(stop, sse(late, "content_block_delta") + stop)

    assert anthropic_client(body)[0] == ["hello!"]
    message = read("anthropic", body)
    assert (message.stop_reason, parts(message)[0]) == ("error", "hello")


def test_a_name_in_every_piece_is_one_name() -> None:
    """Servers repeat id and name. Put together by adding up, `read` becomes `readread`."""

    def piece(arguments: str) -> bytes:
        function = {"name": "read", "arguments": arguments}
        calls = [{"index": 0, "id": "a", "function": function}]
        return sse({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})

    end = sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = piece("{") + piece("}") + end

    assert openai_client(body)[1] == [("a", "readread", "{}")]
    assert parts(read("openai", body))[1] == [("a", "read", "{}")]


QUIET = {
    "ping": b"event: ping\ndata: pong\n\n",
    "blank-event": b"data:\n\n",
    "retry": b"retry: 10\nid: 7\n\n",
}


@pytest.mark.parametrize("name", QUIET)
def test_what_says_nothing_does_no_harm(name: str) -> None:
    """Pings, blank events and fields without data are part of the format: no reply ends there."""
    body = QUIET[name] + openai_body(Reply("hello"))

    assert fails(openai_client, body)
    assert read("openai", body).stop_reason == "stop"


def test_a_byte_order_mark_costs_nothing() -> None:
    """The format says that one at the start is dropped. Kept, it hides the first event."""
    body = b"\xef\xbb\xbf" + anthropic_body(Reply("hello"))

    assert fails(anthropic_client, body)
    assert parts(read("anthropic", body))[0] == "hello"


def test_null_choices_are_no_choices() -> None:
    """Some servers begin with a payload about filters, whose choices are null."""
    body = sse({"choices": None}) + openai_body(Reply("hello"))

    assert fails(openai_client, body)
    assert parts(read("openai", body))[0] == "hello"


def test_what_is_kept_can_be_encoded() -> None:
    """A character cut in two by the server's JSON comes out as two halves, which no file takes."""

    def delta(content: str) -> bytes:
        payload = {"choices": [{"index": 0, "delta": {"content": content}}]}
        return f"data: {json.dumps(payload)}\n\n".encode()

    end = sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = delta("\ud83d") + delta("\ude00") + end

    with pytest.raises(UnicodeEncodeError):
        openai_client(body)[0].encode()
    assert parts(read("openai", body))[0].encode() == "\U0001f600".encode()


@pytest.mark.parametrize("end", [b"\r", b"\r\n"])
def test_both_other_line_ends_are_read(end: bytes) -> None:
    body = openai_body(Reply("a\u2028b\x85c")).replace(b"\n", end)

    assert parts(read("openai", body))[0] == "a\u2028b\x85c"
