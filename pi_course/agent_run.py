"""One run of the agent loop: turns until something ends it, and the transcript that they leave."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_course.abort import Aborted, AbortSignal
from pi_course.call_ids import with_new_ids
from pi_course.calls import calls_of
from pi_course.grace import AnyTask, grace_period
from pi_course.loop_events import (
    AssistantMessageSaved,
    LoopEvent,
    MessageAdded,
    ModelEventSeen,
    RunReason,
)
from pi_course.loop_hooks import LoopHooks, ModelRequest, Moment
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
from pi_course.tool import ToolRegistry
from pi_course.tool_batch import ExecuteToolCall, SkipReason, ToolBatch
from pi_course.tool_result import message_of

Emit: TypeAlias = Callable[[LoopEvent], None]


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


@dataclass
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
            task = asyncio.current_task()
            if task is None or task.cancelling():
                self._break_off("aborted", "interrupted")
                raise
            # Nobody cancelled this task: the model waited for something that was cancelled.
            problem = "CancelledError: what the model waited for was cancelled"
        except Exception as error:
            problem = f"{type(error).__name__}: {message_of(error)}"
        self._break_off("error", problem)
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
