"""Places where a caller steps into the agent loop without rewriting it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_course.messages import (
    AgentContext,
    Model,
    SystemMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is about to be asked, and whom."""

    model: Model
    context: AgentContext


@dataclass(frozen=True, slots=True)
class Refused:
    """Says that a call may not run. The model reads the reason."""

    reason: str


Moment: TypeAlias = Literal["request", "stop"]

BeforeRequest: TypeAlias = Callable[[ModelRequest], Awaitable[ModelRequest]]
BeforeToolCall: TypeAlias = Callable[[ToolCall], Awaitable[ToolCall | Refused]]
AfterToolResult: TypeAlias = Callable[[ToolCall, ToolResultMessage], Awaitable[ToolResultMessage]]
NextMessages: TypeAlias = Callable[[Moment], Sequence[UserMessage | SystemMessage]]


@dataclass(frozen=True, slots=True)
class LoopHooks:
    """All optional. What they get can't be changed, what they return is used instead.

    `before_request` may change what one request holds and which model gets it. The transcript is
    not touched. What it raises becomes an error reply, and no request is made.

    `before_tool_call` is asked before ToolStart, one call at a time, in order: it may ask a person.
    It may change the arguments, not the id or the name. What it raises is a refusal.

    `after_tool_result` sees what the tool gave and what was run. The result keeps its id and name.
    What it raises becomes an error result: the tool's own words may be what must not get out.

    `next_messages` is called before each request, and with "stop" when the run would end by itself;
    what it gives there makes the run go on. It is a plain function: what it hands over is in the
    transcript at once. It is not called after an abort, or when no request can follow, so what a
    queue still holds then stays in the queue. What it raises becomes an error reply.
    """

    before_request: BeforeRequest | None = None
    before_tool_call: BeforeToolCall | None = None
    after_tool_result: AfterToolResult | None = None
    next_messages: NextMessages | None = None
