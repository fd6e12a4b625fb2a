"""What an OpenAI-compatible server sends: payloads checked field by field, chunks out.

Only the fields that a chunk is made of are read. Their types are checked without mercy; fields
that are absent, null or unknown do no harm, since every server leaves out others.
"""

from typing import Literal

from pi_course.providers.chunks import (
    FinishChunk,
    FinishReason,
    ProviderChunk,
    TextChunk,
    ToolChunk,
    UsageCounts,
)
from pi_course.providers.payload import (
    JsonObject,
    count_in,
    invalid,
    must_be,
    object_in,
    objects_in,
    parse_payload,
    reported,
    shown,
    text_in,
)
from pi_course.providers.sse import ServerSentEvent

_REASONS = ("stop", "length", "tool_calls")
_USAGE: dict[str, Literal["input", "output", "total_tokens"]] = {
    "prompt_tokens": "input",
    "completion_tokens": "output",
    "total_tokens": "total_tokens",
}
_CHOICE = "choices[0]."
_DELTA = "choices[0].delta."


class OpenAIPayloadReader:
    """Feed it the events of one body until it is `done`; close() gives the finish chunk.

    The reason and the usage may come in different payloads, so the finish chunk waits for the
    end: there is one if there was a reason, with [DONE] or without.
    """

    def __init__(self) -> None:
        self.done = False
        self._reason: FinishReason | None = None
        self._usage: UsageCounts = {}
        self._calls = CallIndexes()

    def read(self, event: ServerSentEvent) -> list[ProviderChunk]:
        data = event.data.strip()
        if event.event == "error":
            raise reported(data if not data.startswith("{") else parse_payload(data))
        if data == "[DONE]":
            self.done = True
            return []
        if not data or (event.event != "message" and '"choices"' not in data):
            return []
        payload = parse_payload(data)
        self._read_usage(payload)
        choices = objects_in(payload, "choices")
        if len(choices) > 1:
            raise invalid(f"choices must hold one choice, found {len(choices)}")
        return self._chunks(choices[0]) if choices else []

    def close(self) -> list[ProviderChunk]:
        return [FinishChunk(self._reason, self._usage or None)] if self._reason else []

    def _chunks(self, choice: JsonObject) -> list[ProviderChunk]:
        chunks: list[ProviderChunk] = []
        self._read_usage(choice, _CHOICE)  # where some servers put it
        delta = object_in(choice, "delta", _CHOICE) or {}
        if content := text_in(delta, "content", _DELTA):
            self._check_open(_DELTA + "content")
            chunks.append(TextChunk(content))
        for position, piece in enumerate(objects_in(delta, "tool_calls", _DELTA)):
            self._check_open(_DELTA + "tool_calls")
            chunks += self._tool(piece, position)
        self._read_reason(choice.get("finish_reason"))
        return chunks

    def _tool(self, piece: JsonObject, position: int) -> list[ToolChunk]:
        at = f"{_DELTA}tool_calls[{position}]."
        index, id = count_in(piece, "index", at), text_in(piece, "id", at)
        function = object_in(piece, "function", at)
        if function is None:
            return []
        at += "function."
        name, arguments = text_in(function, "name", at), text_in(function, "arguments", at)
        return [ToolChunk(self._calls.index_of(index, id, name, position), id, name, arguments)]

    def _read_usage(self, fields: JsonObject, at: str = "") -> None:
        if (usage := object_in(fields, "usage", at)) is None:
            return
        for field, name in _USAGE.items():
            if (count := count_in(usage, field, at + "usage.")) is not None:
                self._usage[name] = count

    def _read_reason(self, reason: object) -> None:
        if reason is None:
            return
        if reason not in _REASONS:
            raise must_be(_CHOICE + "finish_reason", "'stop', 'length' or 'tool_calls'", reason)
        if self._reason not in (None, reason):
            raise invalid(
                f"{_CHOICE}finish_reason changed from {self._reason!r} to {shown(reason)}"
            )
        self._reason = reason

    def _check_open(self, path: str) -> None:
        if self._reason is not None:
            raise invalid(f"{path} came after the finish reason {self._reason!r}")


class CallIndexes:
    """Finds the index of a piece that has none: by its id, then by its place in the list.

    The format demands an index. Some servers leave it out and are understood well enough.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._by_position: dict[int, int] = {}  # the call that stood at this place last
        self._unused = 0

    def index_of(self, index: int | None, id: str | None, name: str | None, position: int) -> int:
        if index is None:
            index = self._guess(id, name, position)
        if id:
            self._by_id.setdefault(id, index)
        self._by_position[position] = index
        self._unused = max(self._unused, index + 1)
        return index

    def _guess(self, id: str | None, name: str | None, position: int) -> int:
        if id and id in self._by_id:
            return self._by_id[id]
        # An id and a name that are both new begin a call, wherever it stands.
        if id and name:
            return self._unused
        return self._by_position.get(position, self._unused)
