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
    raise NotImplementedError("Lab 7.1: run_agent_loop()")


def _announcer(on_event: OnEvent | None) -> Emit:
    """`on_event`, made safe: what it raises is reported once, and after LoopEnd nothing is told."""
    raise NotImplementedError("Lab 7.1: _announcer()")


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
    raise NotImplementedError("Lab 7.1: decide()")


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
        raise NotImplementedError("Lab 7.1: AgentRun.to_its_end()")

    async def _turns(self) -> RunReason:
        raise NotImplementedError("Lab 7.1: AgentRun._turns()")

    def _goes_on(self) -> bool:
        """Whether somebody has something to say when the run would end by itself."""
        raise NotImplementedError("Lab 7.1: AgentRun._goes_on()")

    def _add_next(self, moment: Moment) -> bool:
        raise NotImplementedError("Lab 7.1: AgentRun._add_next()")

    async def _ask(self) -> AssistantMessage | None:
        """The model's reply; None if there was an abort and nothing came of it."""
        raise NotImplementedError("Lab 7.1: AgentRun._ask()")

    async def _read(self) -> AssistantMessage | None:
        raise NotImplementedError("Lab 7.1: AgentRun._read()")

    def _save(self, reply: AssistantMessage) -> AssistantMessage:
        raise NotImplementedError("Lab 7.1: AgentRun._save()")

    def _break_off(self, reason: Literal["error", "aborted"], problem: str) -> None:
        """Save what had come of the reply; of an error, in any case the reason."""
        raise NotImplementedError("Lab 7.3: AgentRun._break_off()")

    async def _run_calls(self, reply: AssistantMessage) -> None:
        raise NotImplementedError("Lab 7.2: AgentRun._run_calls()")

    def _skip_calls(self, reply: AssistantMessage, reason: SkipReason) -> None:
        raise NotImplementedError("Lab 7.3: AgentRun._skip_calls()")

    def _batch(self, reply: AssistantMessage) -> ToolBatch:
        raise NotImplementedError("Lab 7.2: AgentRun._batch()")
