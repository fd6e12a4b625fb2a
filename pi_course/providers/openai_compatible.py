"""The OpenAI-compatible format: most servers speak it, local ones too.

Two pure mappings write the request; `openai_payload` reads the reply; all HTTP is elsewhere.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import assert_never

import httpx

from pi_course.messages import (
    AgentContext,
    AssistantMessage,
    Signal,
    TextContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    current_system_prompt,
    text_of,
)
from pi_course.providers.adapter import ProviderModel, check
from pi_course.providers.api_key import ApiKey
from pi_course.providers.chunks import ProviderChunk, ProviderRequest, ProviderTransport
from pi_course.providers.http_transport import (
    CONNECT_SECONDS,
    IDLE_SECONDS,
    HttpTransport,
    checked_base_url,
)
from pi_course.providers.openai_payload import OpenAIPayloadReader
from pi_course.providers.outbound import Sendable, sendable
from pi_course.providers.payload import JsonObject


def to_provider_messages(context: AgentContext) -> list[JsonObject]:
    """All that was said, in the provider's shape; the prompt goes first, as one message."""
    prompt = current_system_prompt(context.messages)
    system: list[JsonObject] = [{"role": "system", "content": prompt}] if prompt else []
    return system + [_to_provider(message) for message in sendable(context.messages)]


def _to_provider(message: Sendable) -> JsonObject:
    match message:
        case UserMessage():
            return {"role": "user", "content": text_of(message)}
        case AssistantMessage():
            return _assistant(message)
        case ToolResultMessage():
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id,
                "name": message.tool_name,
                "content": text_of(message),
            }
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage) -> JsonObject:
    calls = [block for block in message.content if isinstance(block, ToolCall)]
    has_text = any(isinstance(block, TextContent) for block in message.content)
    sent: JsonObject = {"role": "assistant", "content": text_of(message) if has_text else None}
    if calls:
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call)},
            }
            for call in calls
        ]
    return sent


def _arguments(call: ToolCall) -> str:
    # Written again, the same object may come out with other spaces, and a text that was cut off
    # can't be written from an object at all.
    if call.raw_arguments is not None:
        return call.raw_arguments
    arguments: object = {} if call.arguments is None else call.arguments
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def to_provider_tools(tools: Sequence[ToolDefinition] | None) -> list[JsonObject] | None:
    """None when there is no tool: some servers refuse an empty list."""
    return [
        {"type": "function", "function": tool.model_dump(mode="json")} for tool in tools or ()
    ] or None


def create_openai_compatible_model(
    *, provider: str, model: str, transport: ProviderTransport
) -> ProviderModel:
    """`provider` and `model` are the names that each reply carries; `model` is asked for, too."""

    def to_request(context: AgentContext) -> ProviderRequest:
        request: JsonObject = {"model": model, "messages": to_provider_messages(context)}
        if tools := to_provider_tools(context.tools):
            request["tools"] = tools
        return request

    return ProviderModel(provider=provider, model=model, transport=transport, to_request=to_request)


def create_openai_compatible_transport(
    *,
    base_url: str,
    api_key: str | None = None,
    client: httpx.AsyncClient | None = None,
    connect_seconds: float = CONNECT_SECONDS,
    idle_seconds: float = IDLE_SECONDS,
) -> ProviderTransport:
    """`base_url` is what stands before /chat/completions, say http://127.0.0.1:11434/v1.

    Without a client each stream opens one and closes it; a given one stays open.
    """
    return HttpTransport(
        url=checked_base_url(base_url) + "/chat/completions",
        api_key=ApiKey(api_key),
        key_header="Authorization",
        key_prefix="Bearer ",
        body={"stream": True, "stream_options": {"include_usage": True}},
        reader=OpenAIPayloadReader,
        client=client,
        connect_seconds=connect_seconds,
        idle_seconds=idle_seconds,
    )


def fixed_transport(
    chunks: Iterable[ProviderChunk], *, pause: Callable[[], Awaitable[object]] | None = None
) -> ProviderTransport:
    """A transport that gives these chunks whatever it is asked, and awaits `pause` after each."""
    return _FixedTransport(tuple(chunks), pause)


class _FixedTransport:
    def __init__(
        self, chunks: tuple[ProviderChunk, ...], pause: Callable[[], Awaitable[object]] | None
    ) -> None:
        self._chunks = chunks
        self._pause = pause

    async def stream(
        self, request: ProviderRequest, *, signal: Signal | None = None
    ) -> AsyncIterator[ProviderChunk]:
        for chunk in self._chunks:
            check(signal)
            yield chunk
            if self._pause is not None:
                await self._pause()
