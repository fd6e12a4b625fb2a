"""The calls of one reply on their way to their results: exactly one for each, whatever happens.

A tool may fail, hang, answer for another call or be cancelled. The reply that asked for it is in
the transcript already, and no provider takes a transcript with a call that has no result.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from pi_course.abort import Aborted, AbortSignal
from pi_course.grace import AnyTask, within_grace
from pi_course.loop_events import ToolEnd, ToolEvent, ToolProgress, ToolSkipped, ToolStart
from pi_course.loop_hooks import BeforeToolCall, LoopHooks, Refused
from pi_course.messages import ToolCall, ToolResultMessage
from pi_course.tool import ToolContext, ToolRegistry
from pi_course.tool_result import Content, content_blocks, failure, message_of

ExecuteToolCall: TypeAlias = Callable[
    [ToolCall, ToolRegistry, ToolContext], Awaitable[ToolResultMessage]
]

SkipReason: TypeAlias = Literal[
    "length", "error", "aborted", "cancelled", "unexpected-stop", "refused"
]

_WHY: dict[SkipReason, str] = {
    "length": "the reply was cut off at its length limit, and the call may be incomplete",
    "error": "the reply ended in an error",
    "aborted": "the run was aborted",
    "cancelled": "something cancelled the task that ran the calls of this reply",
    "unexpected-stop": "the reply ended with stop, which means that there are no calls",
}


def skipped_result(call: ToolCall, reason: SkipReason, why: str = "") -> ToolResultMessage:
    raise NotImplementedError("Lab 7.3: skipped_result()")


class ToolBatch:
    """The calls of a reply, all under ids of their own, and the results that there are so far."""

    def __init__(
        self,
        calls: Sequence[ToolCall],
        *,
        tools: ToolRegistry,
        signal: AbortSignal,
        emit: Callable[[ToolEvent], None],
        execute: ExecuteToolCall,
        hooks: LoopHooks,
    ) -> None:
        self._calls = calls
        self._tools = tools
        self._signal = signal
        self._emit = emit
        self._execute = execute
        self._hooks = hooks
        self._asking = asyncio.Lock()
        self._started: set[str] = set()
        self._results: dict[str, ToolResultMessage] = {}
        self._over = False  # each call has its result; a task that was given up may still be there

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        """In the order of the calls, whichever came first."""
        raise NotImplementedError("Lab 7.2: ToolBatch.results()")

    @property
    def _aborted(self) -> bool:
        """Looked at before each side effect, not only before each request. The end counts too."""
        raise NotImplementedError("Lab 7.2: ToolBatch._aborted()")

    async def run(self, stop: AnyTask, grace_seconds: float) -> None:
        """Run the calls. However this ends, by an interrupt too, each has its result then."""
        raise NotImplementedError("Lab 7.2: ToolBatch.run()")

    def skip(self, reason: SkipReason) -> None:
        """Give each call its result without running anything."""
        raise NotImplementedError("Lab 7.3: ToolBatch.skip()")

    def _tasks(self) -> set[AnyTask]:
        raise NotImplementedError("Lab 7.2: ToolBatch._tasks()")

    def _is_sequential(self) -> bool:
        """One tool that must not run beside others is enough."""
        raise NotImplementedError("Lab 7.4: ToolBatch._is_sequential()")

    async def _answer_in_order(self) -> None:
        raise NotImplementedError("Lab 7.4: ToolBatch._answer_in_order()")

    async def _answer(self, call: ToolCall) -> None:
        raise NotImplementedError("Lab 7.2: ToolBatch._answer()")

    async def _allowed(self, call: ToolCall) -> ToolCall | ToolResultMessage:
        """The call as it may run, or the result that says why it may not."""
        raise NotImplementedError("Lab 7.2: ToolBatch._allowed()")

    async def _result(self, call: ToolCall) -> ToolResultMessage:
        """What the tool gave, if it fits the call. Nothing but a cancellation gets out."""
        raise NotImplementedError("Lab 7.2: ToolBatch._result()")

    def _progress(self, call: ToolCall, content: Content) -> None:
        raise NotImplementedError("Lab 7.2: ToolBatch._progress()")

    def _settle(self, call: ToolCall, event: ToolEnd | ToolSkipped) -> None:
        """Keep the result and tell it, the first one of each call."""
        raise NotImplementedError("Lab 7.2: ToolBatch._settle()")

    def _give_up(self, call: ToolCall, reason: SkipReason) -> None:
        """Settle a call that nobody will answer: a failure if it has started, else skipped."""
        raise NotImplementedError("Lab 7.5: ToolBatch._give_up()")


async def _asked(hook: BeforeToolCall, call: ToolCall) -> ToolCall | Refused:
    """What the hook says. One that can't decide has not allowed the call."""
    raise NotImplementedError("Lab 7.4: _asked()")


def _fitting(call: ToolCall, result: object) -> ToolResultMessage:
    raise NotImplementedError("Lab 7.2: _fitting()")
