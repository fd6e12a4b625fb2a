"""The seam between a transport and the adapter: three small kinds of chunks.

A transport owns HTTP and the checking of unknown JSON and knows no message; the adapter owns
messages and knows no field of any provider. All that passes between them is declared here.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias, TypedDict

from pi_course.errors import PiError
from pi_course.messages import Signal

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]


class UsageCounts(TypedDict, total=False):
    """The tokens that a provider has counted so far. What it never said is absent."""

    input: int
    output: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class TextChunk:
    type: ClassVar[Literal["text"]] = "text"
    delta: str


@dataclass(frozen=True, slots=True)
class ToolChunk:
    """A piece of a call. `index` is the provider's, and only joins the pieces of one call."""

    type: ClassVar[Literal["tool"]] = "tool"
    index: int
    id: str | None = None
    name: str | None = None
    arguments_delta: str | None = None


@dataclass(frozen=True, slots=True)
class FinishChunk:
    """The provider says that the reply is whole, or was cut off at the limit (length)."""

    type: ClassVar[Literal["finish"]] = "finish"
    reason: FinishReason
    usage: UsageCounts | None = None


ProviderChunk: TypeAlias = TextChunk | ToolChunk | FinishChunk

ProviderRequest: TypeAlias = Mapping[str, object]
"""The JSON body in the provider's own format, without what the transport adds to it."""


class ProviderTransport(Protocol):
    """Sends one request and gives the chunks of its reply.

    May be slow and may raise: ProviderError for what it understands. Must give exactly one
    FinishChunk, as the last chunk, of a reply that is whole, and none otherwise. Must send
    nothing once the signal is aborted, must look at it before each chunk, and must have closed
    its connection when it ends in any way, a cancelled task included: the adapter cancels a
    transport that waits. Otherwise an aborted reply would go on costing money unseen.
    """

    def stream(
        self, request: ProviderRequest, *, signal: Signal | None = None
    ) -> AsyncIterator[ProviderChunk]: ...


class ProviderError(PiError):
    """A reply failed at the provider or on the way. It says whether trying again may help."""

    def __init__(
        self,
        problem: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        wait = "" if retry_after is None else f" after {retry_after:g} s"
        super().__init__(f"{problem} (retryable{wait})" if retryable else problem)
        self.problem = problem
        self.retryable = retryable
        self.retry_after = retry_after  # seconds, if the server asked for a wait
        self.status = status
