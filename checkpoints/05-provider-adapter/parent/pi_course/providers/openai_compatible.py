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
    raise NotImplementedError("Lab 5.1: to_provider_messages()")


def _to_provider(message: Sendable) -> JsonObject:
    raise NotImplementedError("Lab 5.1: _to_provider()")


def _assistant(message: AssistantMessage) -> JsonObject:
    raise NotImplementedError("Lab 5.1: _assistant()")


def _arguments(call: ToolCall) -> str:
    raise NotImplementedError("Lab 5.1: _arguments()")


def to_provider_tools(tools: Sequence[ToolDefinition] | None) -> list[JsonObject] | None:
    """None when there is no tool: some servers refuse an empty list."""
    raise NotImplementedError("Lab 5.1: to_provider_tools()")


def create_openai_compatible_model(
    *, provider: str, model: str, transport: ProviderTransport
) -> ProviderModel:
    """`provider` and `model` are the names that each reply carries; `model` is asked for, too."""
    raise NotImplementedError("Lab 5.2: create_openai_compatible_model()")


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
    raise NotImplementedError("Lab 5.4: create_openai_compatible_transport()")


def fixed_transport(
    chunks: Iterable[ProviderChunk], *, pause: Callable[[], Awaitable[object]] | None = None
) -> ProviderTransport:
    """A transport that gives these chunks whatever it is asked, and awaits `pause` after each."""
    raise NotImplementedError("Lab 5.2: fixed_transport()")


class _FixedTransport:
    def __init__(
        self, chunks: tuple[ProviderChunk, ...], pause: Callable[[], Awaitable[object]] | None
    ) -> None:
        raise NotImplementedError("Lab 5.2: _FixedTransport.__init__()")

    async def stream(
        self, request: ProviderRequest, *, signal: Signal | None = None
    ) -> AsyncIterator[ProviderChunk]:
        raise NotImplementedError("Lab 5.2: _FixedTransport.stream()")
