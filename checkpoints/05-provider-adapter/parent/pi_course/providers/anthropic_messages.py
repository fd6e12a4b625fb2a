"""The Anthropic Messages format: the same chunks from another wire, so nothing above changes.

Its prompt stands beside the messages, its calls hold objects and no raw text, the results of a
turn are one user message, and its stream says by itself when it is over.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import assert_never, cast

import httpx

from pi_course.messages import (
    AgentContext,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
    current_system_prompt,
)
from pi_course.providers.adapter import ProviderModel
from pi_course.providers.api_key import ApiKey
from pi_course.providers.chunks import (
    FinishChunk,
    FinishReason,
    ProviderChunk,
    ProviderError,
    ProviderRequest,
    ProviderTransport,
    TextChunk,
    ToolChunk,
    UsageCounts,
)
from pi_course.providers.http_transport import (
    CONNECT_SECONDS,
    IDLE_SECONDS,
    HttpTransport,
    checked_base_url,
)
from pi_course.providers.outbound import sendable
from pi_course.providers.payload import (
    JsonObject,
    count_in,
    invalid,
    must_be,
    object_in,
    parse_payload,
    shown,
    text_in,
)
from pi_course.providers.sse import ServerSentEvent

API_VERSION = "2023-06-01"
MAX_TOKENS = 8192  # of a reply, if nobody says otherwise; the format has no default

_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def to_anthropic_messages(context: AgentContext) -> list[JsonObject]:
    """All that was said but the prompt. The format refuses empty texts and empty messages."""
    raise NotImplementedError("Lab 5.5: to_anthropic_messages()")


def _texts(content: Sequence[TextContent]) -> list[JsonObject]:
    raise NotImplementedError("Lab 5.5: _texts()")


def _block(part: TextContent | ToolCall) -> Iterator[JsonObject]:
    raise NotImplementedError("Lab 5.5: _block()")


def _result(message: ToolResultMessage) -> JsonObject:
    raise NotImplementedError("Lab 5.5: _result()")


def _id(id: str) -> str:
    """An id of another provider may hold letters that this format refuses."""
    raise NotImplementedError("Lab 5.5: _id()")


def to_anthropic_tools(tools: Sequence[ToolDefinition] | None) -> list[JsonObject] | None:
    raise NotImplementedError("Lab 5.5: to_anthropic_tools()")


def create_anthropic_model(
    *, provider: str, model: str, transport: ProviderTransport, max_tokens: int = MAX_TOKENS
) -> ProviderModel:
    """`provider` and `model` are the names that each reply carries; `model` is asked for, too."""
    raise NotImplementedError("Lab 5.5: create_anthropic_model()")


def create_anthropic_transport(
    *,
    base_url: str,
    api_key: str | None = None,
    client: httpx.AsyncClient | None = None,
    connect_seconds: float = CONNECT_SECONDS,
    idle_seconds: float = IDLE_SECONDS,
) -> ProviderTransport:
    """`base_url` is what stands before /v1/messages. The client as for the other provider."""
    raise NotImplementedError("Lab 5.5: create_anthropic_transport()")


class AnthropicPayloadReader:
    """Feed it the events of one body until it is `done`; close() gives the finish chunk.

    The payload names its own type, so the names of the events are not looked at.
    """

    def __init__(self) -> None:
        self.done = False
        self._reason: FinishReason | None = None
        self._usage: UsageCounts = {}

    def read(self, event: ServerSentEvent) -> list[ProviderChunk]:
        raise NotImplementedError("Lab 5.5: AnthropicPayloadReader.read()")

    def close(self) -> list[ProviderChunk]:
        raise NotImplementedError("Lab 5.5: AnthropicPayloadReader.close()")

    def _chunks(self, payload: JsonObject) -> Iterator[ProviderChunk]:
        raise NotImplementedError("Lab 5.5: AnthropicPayloadReader._chunks()")

    def _read_reason(self, delta: JsonObject) -> None:
        raise NotImplementedError("Lab 5.5: AnthropicPayloadReader._read_reason()")

    def _read_usage(self, usage: JsonObject | None, at: str) -> None:
        raise NotImplementedError("Lab 5.5: AnthropicPayloadReader._read_usage()")

    def _check_open(self, kind: str) -> None:
        raise NotImplementedError("Lab 5.5: AnthropicPayloadReader._check_open()")


def _block_chunks(payload: JsonObject, block: JsonObject, at: str) -> Iterator[ProviderChunk]:
    """The chunk of a block's start or of its delta; kinds that are not known give none."""
    raise NotImplementedError("Lab 5.5: _block_chunks()")


def _index(payload: JsonObject) -> int:
    raise NotImplementedError("Lab 5.5: _index()")
