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
        if not self.held and delta.isascii():
            return delta
        delta, self.held = cut_last_half(self.held + delta)
        return replace_surrogates(delta)

    def is_other_call(self, chunk: ToolChunk) -> bool:
        """Some servers number every call 0: a new id and a name together begin the next one."""
        return bool(chunk.name and chunk.id and self.sent_id and chunk.id != self.sent_id)


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
        self._push(Start(self._draft.partial()))

    def take(self, chunk: ProviderChunk) -> None:
        if self._finish is not None:
            raise ProviderError(f"A {chunk.type} chunk came after the finish chunk, the last one")
        match chunk:
            case TextChunk():
                self._take_text(chunk.delta)
            case ToolChunk():
                self._take_call(chunk)
            case FinishChunk():
                self._finish = chunk
            case _:
                assert_never(chunk)

    def _take_text(self, delta: str) -> None:
        if not delta:
            return
        if self._text is None:
            self._text = self._open(text(""))
        if piece := self._text.whole(delta):
            self._draft.append(self._text.index, piece)
            self._push(TextDelta(self._text.index, piece, self._draft.partial()))

    def _take_call(self, chunk: ToolChunk) -> None:
        block = self._calls.get(chunk.index)
        if block is None or block.is_other_call(chunk):
            block, news = self._open_call(chunk), True
        else:
            news = self._fill_in(block, chunk)
        piece = block.whole(chunk.arguments_delta or "")
        if piece:
            self._draft.append(block.index, piece)
        if piece or news:
            self._push(ToolCallDelta(block.index, piece, self._draft.partial()))

    def _open(self, content: TextContent | ToolCall) -> Block:
        block = Block(self._draft.open(content))
        self._blocks.append(block)
        return block

    def _open_call(self, chunk: ToolChunk) -> Block:
        name = replace_surrogates(chunk.name or "")
        block = self._open(ToolCall(id=self._free_id(chunk.id), name=name, arguments={}))
        block.sent_id, block.name = chunk.id or "", name
        self._calls[chunk.index] = block
        return block

    def _fill_in(self, block: Block, chunk: ToolChunk) -> bool:
        """Take an id or a name that comes late. What came first is never replaced."""
        late: dict[str, str] = {}
        if chunk.id and not block.sent_id:
            block.sent_id = chunk.id
            if chunk.id not in self._ids():
                late["id"] = self._free_id(chunk.id)
        if chunk.name and not block.name:
            block.name = late["name"] = replace_surrogates(chunk.name)
        if late:
            self._draft.replace(block.index, self._call(block).model_copy(update=late))
        return bool(late)

    def _call(self, block: Block) -> ToolCall:
        call = self._draft.partial().read().content[block.index]
        assert isinstance(call, ToolCall)
        return call

    def _ids(self) -> set[str]:
        if self._taken is None:
            self._taken = call_ids(self._messages)
        return self._taken

    def _free_id(self, wanted: str | None) -> str:
        """An id that neither the request nor this reply has: two calls would share a result."""
        taken = self._ids()
        free = replace_surrogates(wanted or "")
        number = 0
        while not free or free in taken:
            number += 1
            free = f"call-{number}"
        taken.add(free)
        return free

    def finish(self) -> None:
        """All chunks have come. Raises ProviderError for a reply that is not whole."""
        if self._finish is None:
            raise ProviderError("The reply ended without a finish chunk", retryable=True)
        for block in self._blocks:
            if block.held:
                self._give_up(block)
        reason = self._finish.reason
        calls = [block for block in self._blocks if block is not self._text]
        if reason != "length" and calls:
            # Several local servers say stop although calls came.
            self._end_calls(calls)
            reason = "tool_calls"
        stop_reason = "toolUse" if reason == "tool_calls" else reason
        self._push(Done(stop_reason, self._message(stop_reason)))

    def _give_up(self, block: Block) -> None:
        """Half a character was held back, and its other half never came."""
        piece = replace_surrogates(block.held)
        self._draft.append(block.index, piece)
        kind = TextDelta if block is self._text else ToolCallDelta
        self._push(kind(block.index, piece, self._draft.partial()))

    def _end_calls(self, blocks: list[Block]) -> None:
        # All are parsed before the first is ended: one bad call, and none may be run.
        ended = [(block, _ended(self._call(block), block.index)) for block in blocks]
        for block, call in ended:
            self._draft.replace(block.index, call)
            self._push(ToolCallEnd(block.index, call, self._draft.partial()))

    def fail(self, reason: Literal["error", "aborted"], problem: str) -> None:
        """The reply broke off: what had come is kept."""
        self._push(Error(reason, self._message(reason, replace_surrogates(problem))))

    def _message(self, stop_reason: StopReason, problem: str | None = None) -> AssistantMessage:
        usage = EMPTY_USAGE if self._finish is None else usage_of(self._finish.usage)
        ended = {"stop_reason": stop_reason, "error_message": problem, "usage": usage}
        return self._draft.partial().read().model_copy(update=ended)


def _ended(call: ToolCall, index: int) -> ToolCall:
    raw = call.raw_arguments or ""
    if not call.name:
        raise ProviderError(f"The call at content[{index}] has no name: no tool can be meant")
    try:
        arguments = parse_arguments(raw)
    except ValueError as error:
        where = f"The arguments of tool {call.name!r} (content[{index}])"
        raise ProviderError(f"{where} are not one JSON object: {error}") from error
    # Blank text is no JSON: a server that gets it back would refuse the whole conversation.
    kept = raw if raw.strip() else None
    return ToolCall(id=call.id, name=call.name, arguments=arguments, raw_arguments=kept)


def usage_of(counts: UsageCounts | None) -> Usage:
    """What never came is zero. The total is the sum: servers disagree on what theirs holds."""
    counts = counts or {}
    given, taken = counts.get("input", 0), counts.get("output", 0)
    total = given + taken or counts.get("total_tokens", 0)
    return Usage(input=given, output=taken, total_tokens=total)
