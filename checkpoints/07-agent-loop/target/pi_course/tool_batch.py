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
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=content_blocks(f"Tool {call.name} was not run: {why or _WHY[reason]}"),
        details={"skipped": True, "reason": reason},
        is_error=True,
        timestamp=int(time.time() * 1000),
    )


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
        return tuple(self._results[call.id] for call in self._calls)

    @property
    def _aborted(self) -> bool:
        """Looked at before each side effect, not only before each request. The end counts too."""
        return self._signal.aborted or self._over

    async def run(self, stop: AnyTask, grace_seconds: float) -> None:
        """Run the calls. However this ends, by an interrupt too, each has its result then."""
        interrupted = True
        try:
            await within_grace(self._tasks(), stop, grace_seconds)
            interrupted = self._aborted
        finally:
            for call in self._calls:
                if call.id not in self._results:
                    # A tool or a hook can cancel the task that it runs in, and the run goes on.
                    self._give_up(call, "aborted" if interrupted else "cancelled")
            self._over = True

    def skip(self, reason: SkipReason) -> None:
        """Give each call its result without running anything."""
        for call in self._calls:
            self._settle(call, ToolSkipped(skipped_result(call, reason)))

    def _tasks(self) -> set[AnyTask]:
        if len(self._calls) > 1 and self._is_sequential():
            return {asyncio.create_task(self._answer_in_order())}
        return {asyncio.create_task(self._answer(call)) for call in self._calls}

    def _is_sequential(self) -> bool:
        """One tool that must not run beside others is enough."""
        tools = (self._tools.get(call.name) for call in self._calls)
        return any(tool is not None and tool.sequential for tool in tools)

    async def _answer_in_order(self) -> None:
        for call in self._calls:
            await self._answer(call)

    async def _answer(self, call: ToolCall) -> None:
        allowed = await self._allowed(call)
        if isinstance(allowed, ToolResultMessage):
            self._settle(call, ToolSkipped(allowed))
            return
        self._started.add(call.id)
        self._emit(ToolStart(allowed))
        self._settle(call, ToolEnd(await self._result(allowed)))

    async def _allowed(self, call: ToolCall) -> ToolCall | ToolResultMessage:
        """The call as it may run, or the result that says why it may not."""
        hook = self._hooks.before_tool_call
        answer: ToolCall | Refused = call
        if hook is not None:
            async with self._asking:  # or a person would have two questions on the screen
                if not self._aborted:
                    answer = await _asked(hook, call)
        if self._aborted:
            return skipped_result(call, "aborted")
        if isinstance(answer, Refused):
            return skipped_result(call, "refused", answer.reason)
        return answer

    async def _result(self, call: ToolCall) -> ToolResultMessage:
        """What the tool gave, if it fits the call. Nothing but a cancellation gets out."""
        if self._aborted:  # by whoever saw ToolStart
            return failure(call, str(Aborted(self._signal.reason)))
        context = ToolContext(call.id, self._signal, lambda content: self._progress(call, content))
        try:
            result = _fitting(call, await self._execute(call, self._tools, context))
            if self._hooks.after_tool_result is not None:
                result = _fitting(call, await self._hooks.after_tool_result(call, result))
        except Exception as error:
            return failure(call, message_of(error))
        return result

    def _progress(self, call: ToolCall, content: Content) -> None:
        if call.id not in self._results:
            self._emit(ToolProgress(call.id, content_blocks(content)))

    def _settle(self, call: ToolCall, event: ToolEnd | ToolSkipped) -> None:
        """Keep the result and tell it, the first one of each call."""
        if call.id not in self._results:  # or it was given up, and answers after all
            self._results[call.id] = event.result
            self._emit(event)

    def _give_up(self, call: ToolCall, reason: SkipReason) -> None:
        """Settle a call that nobody will answer: a failure if it has started, else skipped."""
        if call.id in self._started:
            problem = "it was cancelled before it gave a result; a part of its work may be done"
            self._settle(call, ToolEnd(failure(call, problem)))
        else:
            self._settle(call, ToolSkipped(skipped_result(call, reason)))


async def _asked(hook: BeforeToolCall, call: ToolCall) -> ToolCall | Refused:
    """What the hook says. One that can't decide has not allowed the call."""
    try:
        answer = await hook(call)
        if isinstance(answer, Refused) or (answer.id, answer.name) == (call.id, call.name):
            return answer
        problem = "it may change the arguments of a call, not its id or name"
    except Exception as error:
        problem = message_of(error)
    return Refused(f"before_tool_call failed: {problem}")


def _fitting(call: ToolCall, result: object) -> ToolResultMessage:
    if not isinstance(result, ToolResultMessage):
        raise TypeError(f"a ToolResultMessage was expected, found {type(result).__name__}")
    if (result.tool_call_id, result.tool_name) != (call.id, call.name):
        raise ValueError(
            f"the result belongs to call {result.tool_call_id!r} of {result.tool_name!r}, "
            f"and not to {call.id!r} of {call.name!r}"
        )
    return result
