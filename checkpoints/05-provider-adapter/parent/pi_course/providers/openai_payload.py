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
        raise NotImplementedError("Lab 5.3: OpenAIPayloadReader.read()")

    def close(self) -> list[ProviderChunk]:
        raise NotImplementedError("Lab 5.3: OpenAIPayloadReader.close()")

    def _chunks(self, choice: JsonObject) -> list[ProviderChunk]:
        raise NotImplementedError("Lab 5.3: OpenAIPayloadReader._chunks()")

    def _tool(self, piece: JsonObject, position: int) -> list[ToolChunk]:
        raise NotImplementedError("Lab 5.3: OpenAIPayloadReader._tool()")

    def _read_usage(self, fields: JsonObject, at: str = "") -> None:
        raise NotImplementedError("Lab 5.3: OpenAIPayloadReader._read_usage()")

    def _read_reason(self, reason: object) -> None:
        raise NotImplementedError("Lab 5.3: OpenAIPayloadReader._read_reason()")

    def _check_open(self, path: str) -> None:
        raise NotImplementedError("Lab 5.3: OpenAIPayloadReader._check_open()")


class CallIndexes:
    """Finds the index of a piece that has none: by its id, then by its place in the list.

    The format demands an index. Some servers leave it out and are understood well enough.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._by_position: dict[int, int] = {}  # the call that stood at this place last
        self._unused = 0

    def index_of(self, index: int | None, id: str | None, name: str | None, position: int) -> int:
        raise NotImplementedError("Lab 5.3: CallIndexes.index_of()")

    def _guess(self, id: str | None, name: str | None, position: int) -> int:
        raise NotImplementedError("Lab 5.3: CallIndexes._guess()")
