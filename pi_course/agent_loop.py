"""The agent loop: ask the model, run the calls of its reply, ask again with their results, end.

The stop reason decides whether calls may run. Before each further request every call has its
result, and a run has exactly one end. The events tell everything in order: whoever keeps the
messages in them has the whole transcript, also of a run that was interrupted.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_course.abort import AbortController, Aborted, AbortSignal
from pi_course.call_ids import call_ids, calls_of, with_new_ids
from pi_course.grace import GRACE_SECONDS, AnyTask, grace_period, watched
from pi_course.loop_events import (
    AgentRunResult,
    AssistantMessageSaved,
    LoopEnd,
    LoopEvent,
    MessageAdded,
    ModelEventSeen,
    RunReason,
    ToolEnd,
    ToolProgress,
    ToolSkipped,
    ToolStart,
)
from pi_course.loop_hooks import LoopHooks, ModelRequest, Moment, Refused
from pi_course.messages import (
    AgentContext,
    AgentMessage,
    AssistantMessage,
    Done,
    Error,
    Model,
    ModelEvent,
    assistant_message,
)
from pi_course.surrogates import replace_surrogates
from pi_course.tool import ToolRegistry, execute_tool_call
from pi_course.tool_batch import ExecuteToolCall, SkipReason, ToolBatch
from pi_course.tool_result import message_of

__all__ = [
    "AgentRunResult",
    "AssistantMessageSaved",
    "Decision",
    "LoopEnd",
    "LoopEvent",
    "LoopHooks",
    "MessageAdded",
    "ModelEventSeen",
    "ModelRequest",
    "Refused",
    "ToolEnd",
    "ToolProgress",
    "ToolSkipped",
    "ToolStart",
    "decide",
    "run_agent_loop",
]

OnEvent: TypeAlias = Callable[[LoopEvent], object]
Emit: TypeAlias = Callable[[LoopEvent], None]

NO_HOOKS = LoopHooks()


async def run_agent_loop(
    *,
    model: Model,
    tools: ToolRegistry,
    context: AgentContext,
    signal: AbortSignal | None = None,
    on_event: OnEvent | None = None,
    execute_tool_call: ExecuteToolCall = execute_tool_call,
    hooks: LoopHooks = NO_HOOKS,
    max_steps: int = 32,
    grace_seconds: float = GRACE_SECONDS,
) -> AgentRunResult:
    """Run until the model stops, the run is stopped, or `max_steps` requests were made.

    Each request begins with the messages of `context`. Its tools are not looked at: `tools` says
    which there are. Whatever a model, a tool, a hook or `on_event` does, the run comes to its end
    and returns.

    A cancellation of the task that awaits it (Jupyter's stop button, Ctrl-C) first cancels what is
    running and waits for it, gives each call its result and tells LoopEnd; then it goes on. Who
    gave a signal should abort it then: a model that heard nothing may stream on.
    """
    if max_steps < 1:
        raise ValueError(f"max_steps is {max_steps}: give 1 or more")
    controller = AbortController()
    signal = controller.signal if signal is None else signal
    emit = _announcer(on_event)
    reason: RunReason = "aborted"
    try:
        async with watched(signal) as stop:
            run = AgentRun(
                model=model,
                tools=tools,
                messages=list(context.messages),
                ids=call_ids(context.messages),
                signal=signal,
                stop=stop,
                emit=emit,
                execute=execute_tool_call,
                hooks=hooks,
                max_steps=max_steps,
                grace_seconds=grace_seconds,
            )
            reason = await run.to_its_end()
    except asyncio.CancelledError:
        controller.abort("interrupted")
        raise
    finally:
        emit(LoopEnd(reason))
    return AgentRunResult(reason, tuple(run.messages), run.steps)


def _announcer(on_event: OnEvent | None) -> Emit:
    """`on_event`, made safe: what it raises is reported once, and after LoopEnd nothing is told."""
    failed = ended = False

    def emit(event: LoopEvent) -> None:
        nonlocal failed, ended
        if on_event is None or ended:
            return
        ended = isinstance(event, LoopEnd)
        try:
            on_event(event)
        except Exception as error:
            if not failed:
                failed = True
                problem = "on_event raised; the run goes on, and tells it the further events"
                report = {"message": problem, "exception": error}
                asyncio.get_running_loop().call_exception_handler(report)

    return emit


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows a reply. Without an end its calls are run, and the model is asked again."""

    end: RunReason | None
    skip: SkipReason | None = None  # why the calls that it has are not run


def decide(reply: AssistantMessage) -> Decision:
    """The one place that says which replies may have side effects.

    Example:
        >>> decide(assistant_message([], "stop"))
        Decision(end='stop', skip=None)
    """
    has_calls = bool(calls_of(reply))
    match reply.stop_reason:
        case "toolUse":
            return Decision(None) if has_calls else Decision("error")
        case "stop":
            return Decision("error", "unexpected-stop") if has_calls else Decision("stop")
        case reason:
            return Decision(reason, reason if has_calls else None)


@dataclass(slots=True, kw_only=True)
class AgentRun:
    """One run: its transcript, and what it needs to go on."""

    model: Model
    tools: ToolRegistry
    messages: list[AgentMessage]
    ids: set[str]  # of all their calls and results
    signal: AbortSignal
    stop: AnyTask  # done when the signal is aborted
    emit: Emit
    execute: ExecuteToolCall
    hooks: LoopHooks
    max_steps: int
    grace_seconds: float
    steps: int = 0
    last: ModelEvent | None = None  # of a reply that is on its way

    async def to_its_end(self) -> RunReason:
        """Take turns. Here, and nowhere else, what is raised becomes an error reply."""
        try:
            return await self._turns()
        except asyncio.CancelledError:
            self._break_off("aborted", "interrupted")
            raise
        except Exception as error:
            self._break_off("error", f"{type(error).__name__}: {message_of(error)}")
            return "error"

    async def _turns(self) -> RunReason:
        while not self.signal.aborted:
            if self.steps == self.max_steps:
                return "max_steps"
            self._add_next("request")
            reply = await self._ask()
            if reply is None:
                break
            reply = self._save(reply)
            decision = decide(reply)
            if decision.skip is not None:
                self._skip_calls(reply, decision.skip)
            if decision.end is None:
                await self._run_calls(reply)
            elif self.signal.aborted:
                break
            elif not (decision.end == "stop" and self._goes_on()):
                return decision.end
        return "aborted"

    def _goes_on(self) -> bool:
        """Whether somebody has something to say when the run would end by itself."""
        return self.steps < self.max_steps and self._add_next("stop")

    def _add_next(self, moment: Moment) -> bool:
        if self.hooks.next_messages is None:
            return False
        messages = self.hooks.next_messages(moment)
        for message in messages:
            self.messages.append(message)
            self.emit(MessageAdded(message))
        return bool(messages)

    async def _ask(self) -> AssistantMessage | None:
        """The model's reply; None if there was an abort and nothing came of it."""
        async with grace_period(self.stop, self.grace_seconds):
            return await self._read()
        self._break_off("aborted", str(Aborted(self.signal.reason)))
        return None

    async def _read(self) -> AssistantMessage | None:
        request = ModelRequest(self.model, AgentContext(self.messages, self.tools.definitions()))
        if self.hooks.before_request is not None:
            request = await self.hooks.before_request(request)
        if self.signal.aborted:
            return None
        self.steps += 1
        stream = request.model.stream(request.context, signal=self.signal)
        async for event in stream:
            self.last = event
            self.emit(ModelEventSeen(event))
        return await stream.result()

    def _save(self, reply: AssistantMessage) -> AssistantMessage:
        if calls_of(reply):
            reply = with_new_ids(reply, self.ids)
        self.last = None
        self.messages.append(reply)
        self.emit(AssistantMessageSaved(reply))
        return reply

    def _break_off(self, reason: Literal["error", "aborted"], problem: str) -> None:
        """Save what had come of the reply; of an error, in any case the reason."""
        match self.last:
            case None if reason == "aborted":
                return
            case None:
                begun = assistant_message([], provider="unknown", model="unknown")
            case Done(message=begun) | Error(error=begun):
                pass
            case event:
                begun = event.partial
        told = {"stop_reason": reason, "error_message": replace_surrogates(problem)}
        self._skip_calls(self._save(begun.model_copy(update=told)), reason)

    async def _run_calls(self, reply: AssistantMessage) -> None:
        batch = self._batch(reply)
        try:
            await batch.run(self.stop, self.grace_seconds)
        finally:
            self.messages += batch.results

    def _skip_calls(self, reply: AssistantMessage, reason: SkipReason) -> None:
        batch = self._batch(reply)
        batch.skip(reason)
        self.messages += batch.results

    def _batch(self, reply: AssistantMessage) -> ToolBatch:
        return ToolBatch(
            calls_of(reply),
            tools=self.tools,
            signal=self.signal,
            emit=self.emit,
            execute=self.execute,
            hooks=self.hooks,
        )
