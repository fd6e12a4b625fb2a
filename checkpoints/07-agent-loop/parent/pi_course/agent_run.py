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
    raise NotImplementedError("Lab 7.1: decide()")


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
