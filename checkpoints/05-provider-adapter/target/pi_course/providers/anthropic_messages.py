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
    sent: list[JsonObject] = []
    results: list[JsonObject] = []
    for message in sendable(context.messages):
        if not isinstance(message, ToolResultMessage):
            results = []
        match message:
            case UserMessage():
                blocks = _texts(message.content)
            case AssistantMessage():
                blocks = [block for part in message.content for block in _block(part)]
            case ToolResultMessage():
                results.append(_result(message))
                if len(results) > 1:
                    continue
                blocks = results
            case _:
                assert_never(message)
        if blocks:
            role = "assistant" if isinstance(message, AssistantMessage) else "user"
            sent.append({"role": role, "content": blocks})
    return sent


def _texts(content: Sequence[TextContent]) -> list[JsonObject]:
    return [block for part in content for block in _block(part)]


def _block(part: TextContent | ToolCall) -> Iterator[JsonObject]:
    if isinstance(part, ToolCall):
        # Raw text can't be said in this format: what was never parsed goes as an empty object.
        known = cast("JsonObject", part.arguments) if isinstance(part.arguments, dict) else None
        yield {"type": "tool_use", "id": _id(part.id), "name": part.name, "input": known or {}}
    elif part.text:
        yield {"type": "text", "text": part.text}


def _result(message: ToolResultMessage) -> JsonObject:
    result: JsonObject = {
        "type": "tool_result",
        "tool_use_id": _id(message.tool_call_id),
        "content": _texts(message.content),
    }
    return result | {"is_error": True} if message.is_error else result


def _id(id: str) -> str:
    """An id of another provider may hold letters that this format refuses."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", id)


def to_anthropic_tools(tools: Sequence[ToolDefinition] | None) -> list[JsonObject] | None:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.model_dump(mode="json")["parameters"],
        }
        for tool in tools or ()
    ] or None


def create_anthropic_model(
    *, provider: str, model: str, transport: ProviderTransport, max_tokens: int = MAX_TOKENS
) -> ProviderModel:
    """`provider` and `model` are the names that each reply carries; `model` is asked for, too."""

    def to_request(context: AgentContext) -> ProviderRequest:
        request: JsonObject = {"model": model, "max_tokens": max_tokens}
        if prompt := current_system_prompt(context.messages):
            request["system"] = prompt
        request["messages"] = to_anthropic_messages(context)
        if tools := to_anthropic_tools(context.tools):
            request["tools"] = tools
        return request

    return ProviderModel(provider=provider, model=model, transport=transport, to_request=to_request)


def create_anthropic_transport(
    *,
    base_url: str,
    api_key: str | None = None,
    client: httpx.AsyncClient | None = None,
    connect_seconds: float = CONNECT_SECONDS,
    idle_seconds: float = IDLE_SECONDS,
) -> ProviderTransport:
    """`base_url` is what stands before /v1/messages. The client as for the other provider."""
    return HttpTransport(
        url=checked_base_url(base_url) + "/v1/messages",
        api_key=ApiKey(api_key),
        key_header="x-api-key",
        headers={"anthropic-version": API_VERSION},
        body={"stream": True},
        reader=AnthropicPayloadReader,
        client=client,
        connect_seconds=connect_seconds,
        idle_seconds=idle_seconds,
    )


class AnthropicPayloadReader:
    """Feed it the events of one body until it is `done`; close() gives the finish chunk.

    The payload names its own type, so the names of the events are not looked at.
    """

    def __init__(self) -> None:
        self.done = False
        self._reason: FinishReason | None = None
        self._usage: UsageCounts = {}

    def read(self, event: ServerSentEvent) -> list[ProviderChunk]:
        data = event.data.strip()
        # Proxies put in events of their own, and the end of the other format.
        if data in ("", "[DONE]") or (event.event != "message" and '"type"' not in data):
            return []
        return list(self._chunks(parse_payload(data)))

    def close(self) -> list[ProviderChunk]:
        if not self.done:
            raise ProviderError("The stream ended without message_stop", retryable=True)
        return [FinishChunk(self._reason, self._usage or None)] if self._reason else []

    def _chunks(self, payload: JsonObject) -> Iterator[ProviderChunk]:
        match text_in(payload, "type"):
            case "message_start":
                message = object_in(payload, "message") or {}
                self._read_usage(object_in(message, "usage", "message."), "message.usage.")
            case "content_block_start":
                self._check_open("content_block_start")
                block = object_in(payload, "content_block") or {}
                yield from _block_chunks(payload, block, "content_block.")
            case "content_block_delta":
                self._check_open("content_block_delta")
                yield from _block_chunks(payload, object_in(payload, "delta") or {}, "delta.")
            case "message_delta":
                self._read_reason(object_in(payload, "delta") or {})
                self._read_usage(object_in(payload, "usage"), "usage.")
            case "message_stop":
                self.done = True
            case _:
                pass  # ping, content_block_stop, and whatever may be added

    def _read_reason(self, delta: JsonObject) -> None:
        said = delta.get("stop_reason")
        if said is None:
            return
        reason = _FINISH.get(said) if isinstance(said, str) else None
        if reason is None:
            raise must_be("delta.stop_reason", f"one of {', '.join(_FINISH)}", said)
        if self._reason not in (None, reason):
            raise invalid(f"delta.stop_reason changed from {self._reason!r} to {shown(said)}")
        self._reason = reason

    def _read_usage(self, usage: JsonObject | None, at: str) -> None:
        usage = usage or {}
        counts = [count for name in _INPUT if (count := count_in(usage, name, at)) is not None]
        if counts:
            self._usage["input"] = sum(counts)
        if (output := count_in(usage, "output_tokens", at)) is not None:
            self._usage["output"] = output

    def _check_open(self, kind: str) -> None:
        if self._reason is not None:
            raise invalid(f"{kind} came after the stop reason {self._reason!r}")


def _block_chunks(payload: JsonObject, block: JsonObject, at: str) -> Iterator[ProviderChunk]:
    """The chunk of a block's start or of its delta; kinds that are not known give none."""
    match text_in(block, "type", at):
        case "text" | "text_delta":
            if text := text_in(block, "text", at):
                yield TextChunk(text)
        case "tool_use":
            id, name = text_in(block, "id", at), text_in(block, "name", at)
            # Empty as a rule, and then the pieces follow.
            whole = object_in(block, "input", at)
            arguments = (
                json.dumps(whole, ensure_ascii=False, separators=(",", ":")) if whole else None
            )
            yield ToolChunk(_index(payload), id, name, arguments)
        case "input_json_delta":
            arguments = text_in(block, "partial_json", at)
            yield ToolChunk(_index(payload), arguments_delta=arguments)
        case _:
            pass


def _index(payload: JsonObject) -> int:
    index = count_in(payload, "index")
    if index is None:
        raise must_be("index", "a non-negative integer", index)
    return index
