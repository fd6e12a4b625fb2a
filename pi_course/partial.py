"""Partials: what a message looked like at one event, kept without copying its text.

A reply of 50,000 pieces has 50,000 partials. Joining the text for each would take gigabytes, so
an event keeps a handle: the blocks, the text that is still growing, and how long it was then.
The message is built when somebody reads it.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pi_course.wire import whole_text

if TYPE_CHECKING:  # messages.py needs PartialEvent, so at run time it can't be needed here
    from pi_course.messages import AssistantContent, AssistantMessage, ToolCall


class GrowingText:
    """Text that only ever gets longer. All partials of a block share one, and its joined prefix."""

    def __init__(self) -> None:
        self._joined = ""
        self._new: list[str] = []
        self.length = 0

    def append(self, delta: str) -> None:
        self._new.append(whole_text(delta))
        self.length += len(delta)

    def first(self, length: int) -> str:
        if length > len(self._joined):
            self._joined += "".join(self._new)
            self._new.clear()
        return self._joined[:length]


class GrownBlock(NamedTuple):
    """A block as it began, and how much of its text had come. A tuple: cheap, and it stays so."""

    block: "AssistantContent"
    text: GrowingText
    length: int

    def read(self) -> "AssistantContent":
        name = "text" if self.block.type == "text" else "raw_arguments"
        start = getattr(self.block, name) or ""
        return self.block.model_copy(update={name: start + self.text.first(self.length)})


class Partial(NamedTuple):
    """The handle. `read()` builds the message of that moment, a new object each time."""

    start: "AssistantMessage"
    blocks: "tuple[AssistantContent | GrownBlock, ...]"
    at: int = 0
    grown: GrownBlock | None = None  # what stands there by now

    def read(self) -> "AssistantMessage":
        blocks = list(self.blocks)
        if self.grown is not None:
            blocks[self.at] = self.grown
        content = tuple(b.read() if isinstance(b, GrownBlock) else b for b in blocks)
        return self.start.model_copy(update={"content": content})

    def __eq__(self, other: object) -> bool:
        return self.read() == other.read() if isinstance(other, Partial) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other  # a tuple's own would compare the fields

    def __hash__(self) -> int:
        return hash(self.read())


_fill = object.__setattr__  # how the constructors below set fields that are frozen for all others


@dataclass(frozen=True, slots=True)
class PartialEvent:
    """Base of the events that carry a partial. They take a message or a handle as `partial`."""

    _partial: Partial = field(init=False, repr=False)

    def __init__(self, partial: "AssistantMessage | Partial") -> None:
        handle = partial if isinstance(partial, Partial) else Partial(partial, partial.content)
        _fill(self, "_partial", handle)

    @property
    def partial(self) -> "AssistantMessage":
        """The message as it was at this event."""
        return self._partial.read()


@dataclass(frozen=True, slots=True)
class DeltaEvent(PartialEvent):
    """Base of the events that bring a piece of one block."""

    content_index: int
    delta: str

    def __init__(
        self, content_index: int, delta: str, partial: "AssistantMessage | Partial"
    ) -> None:
        PartialEvent.__init__(self, partial)
        _fill(self, "content_index", content_index)
        _fill(self, "delta", delta)


@dataclass(frozen=True, slots=True)
class CallEvent(PartialEvent):
    """Base of the event that brings a whole call."""

    content_index: int
    tool_call: "ToolCall"

    def __init__(
        self, content_index: int, tool_call: "ToolCall", partial: "AssistantMessage | Partial"
    ) -> None:
        PartialEvent.__init__(self, partial)
        _fill(self, "content_index", content_index)
        _fill(self, "tool_call", tool_call)


class Draft:
    """A reply while it is written. `partial()` costs the same however long the reply is.

    Example:
        >>> from pi_course.messages import assistant_message, text
        >>> draft = Draft(assistant_message([]))
        >>> index = draft.open(text(""))
        >>> draft.append(index, "Hel")
        >>> early = draft.partial()
        >>> draft.append(index, "lo")
        >>> [partial.read().content[0].text for partial in (early, draft.partial())]
        ['Hel', 'Hello']
    """

    def __init__(self, start: "AssistantMessage") -> None:
        self._start = start
        self._slots: list[tuple[AssistantContent, GrowingText]] = []
        self._blocks: tuple[AssistantContent | GrownBlock, ...] = ()
        self._index: int | None = None  # the block that grew last: newer in _slots than in _blocks

    def open(self, block: "AssistantContent") -> int:
        """Add a block as it begins, say text("") or a call without arguments; its index."""
        self._slots.append((block, GrowingText()))
        self._blocks = (*self._blocks, block)
        return len(self._slots) - 1

    def append(self, index: int, delta: str) -> None:
        """Let the block grow: a text its text, a call its raw arguments."""
        if index != self._index:
            self._settle()
            self._index = index
        self._slots[index][1].append(delta)

    def replace(self, index: int, block: "AssistantContent") -> None:
        """Put a block in place of what has grown there, say the call with its arguments."""
        self._settle()
        self._slots[index] = (block, GrowingText())
        self._blocks = (*self._blocks[:index], block, *self._blocks[index + 1 :])

    def partial(self) -> Partial:
        if self._index is None:
            return Partial(self._start, self._blocks)
        block, text = self._slots[self._index]
        grown = GrownBlock(block, text, text.length)
        return Partial(self._start, self._blocks, self._index, grown)

    def _settle(self) -> None:
        _, blocks, at, grown = self.partial()
        if grown is not None:
            self._blocks = (*blocks[:at], grown, *blocks[at + 1 :])
            self._index = None
