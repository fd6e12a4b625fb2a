"""One reply as it grows: chunks in, events out, and the end decides what the reply was.

The provider's index joins the pieces of one call and means nothing else. Where a block stands in
the message is the order in which the blocks first appeared.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, assert_never

from pi_course.calls import call_ids
from pi_course.messages import (
    EMPTY_USAGE,
    AgentMessage,
    AssistantMessage,
    Done,
    Error,
    ModelEvent,
    Start,
    StopReason,
    TextContent,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallEnd,
    Usage,
    text,
)
from pi_course.partial import Draft
from pi_course.providers.arguments import parse_arguments
from pi_course.providers.chunks import (
    FinishChunk,
    ProviderChunk,
    ProviderError,
    TextChunk,
    ToolChunk,
    UsageCounts,
)
from pi_course.surrogates import cut_last_half, replace_surrogates


@dataclass(slots=True)
class Block:
    """A block that grows. `held` is half a character: the provider may send its other half."""

    index: int
    held: str = ""
    sent_id: str = ""  # a call's id as the provider sent it, which need not be the one we use
    name: str = ""  # of a call

    def whole(self, delta: str) -> str:
        """The delta in whole characters, with what was held back before it."""
        raise NotImplementedError("Lab 5.2: Block.whole()")

    def is_other_call(self, chunk: ToolChunk) -> bool:
        """Some servers number every call 0: a new id and a name together begin the next one."""
        raise NotImplementedError("Lab 5.2: Block.is_other_call()")


class Reply:
    """Takes the chunks of one reply and pushes its events. `messages` are those of the request.

    begin(), then take() for each chunk, then finish() or fail(): the one last event.
    """

    def __init__(
        self,
        start: AssistantMessage,
        messages: Iterable[AgentMessage],
        push: Callable[[ModelEvent], None],
    ) -> None:
        self._draft = Draft(start)
        self._messages = messages
        self._push = push
        self._text: Block | None = None
        self._calls: dict[int, Block] = {}  # by the provider's index: where its pieces go now
        self._blocks: list[Block] = []
        self._taken: set[str] | None = None
        self._finish: FinishChunk | None = None

    def begin(self) -> None:
        raise NotImplementedError("Lab 5.2: Reply.begin()")

    def take(self, chunk: ProviderChunk) -> None:
        raise NotImplementedError("Lab 5.2: Reply.take()")

    def _take_text(self, delta: str) -> None:
        raise NotImplementedError("Lab 5.2: Reply._take_text()")

    def _take_call(self, chunk: ToolChunk) -> None:
        raise NotImplementedError("Lab 5.2: Reply._take_call()")

    def _open(self, content: TextContent | ToolCall) -> Block:
        raise NotImplementedError("Lab 5.2: Reply._open()")

    def _open_call(self, chunk: ToolChunk) -> Block:
        raise NotImplementedError("Lab 5.2: Reply._open_call()")

    def _fill_in(self, block: Block, chunk: ToolChunk) -> bool:
        """Take an id or a name that comes late. What came first is never replaced."""
        raise NotImplementedError("Lab 5.2: Reply._fill_in()")

    def _call(self, block: Block) -> ToolCall:
        raise NotImplementedError("Lab 5.2: Reply._call()")

    def _ids(self) -> set[str]:
        raise NotImplementedError("Lab 5.2: Reply._ids()")

    def _free_id(self, wanted: str | None) -> str:
        """An id that neither the request nor this reply has: two calls would share a result."""
        raise NotImplementedError("Lab 5.2: Reply._free_id()")

    def finish(self) -> None:
        """All chunks have come. Raises ProviderError for a reply that is not whole."""
        raise NotImplementedError("Lab 5.2: Reply.finish()")

    def _give_up(self, block: Block) -> None:
        """Half a character was held back, and its other half never came."""
        raise NotImplementedError("Lab 5.2: Reply._give_up()")

    def _end_calls(self, blocks: list[Block]) -> None:
        raise NotImplementedError("Lab 5.2: Reply._end_calls()")

    def fail(self, reason: Literal["error", "aborted"], problem: str) -> None:
        """The reply broke off: what had come is kept."""
        raise NotImplementedError("Lab 5.2: Reply.fail()")

    def _message(self, stop_reason: StopReason, problem: str | None = None) -> AssistantMessage:
        raise NotImplementedError("Lab 5.2: Reply._message()")


def _ended(call: ToolCall, index: int) -> ToolCall:
    raise NotImplementedError("Lab 5.2: _ended()")


def usage_of(counts: UsageCounts | None) -> Usage:
    """What never came is zero. The total is the sum: servers disagree on what theirs holds."""
    counts = counts or {}
    given, taken = counts.get("input", 0), counts.get("output", 0)
    total = given + taken or counts.get("total_tokens", 0)
    return Usage(input=given, output=taken, total_tokens=total)
