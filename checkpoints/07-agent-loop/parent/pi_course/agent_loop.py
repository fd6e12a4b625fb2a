"""The agent loop: ask the model, run the calls of its reply, ask again with their results, end.

The stop reason decides whether calls may run. Before each further request every call has its
result, and a run has exactly one end. The events tell everything in order: whoever keeps the
messages in them has the whole transcript, also of a run that was interrupted.
"""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from pi_course.abort import AbortController, AbortSignal
from pi_course.agent_run import AgentRun, Decision, Emit, decide
from pi_course.calls import call_ids
from pi_course.grace import GRACE_SECONDS, watched
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
from pi_course.loop_hooks import LoopHooks, ModelRequest, Refused
from pi_course.messages import AgentContext, Model
from pi_course.tool import ToolRegistry, execute_tool_call
from pi_course.tool_batch import ExecuteToolCall

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
    which there are. Whatever Exception or CancelledError a model, a tool, a hook or `on_event`
    raises, the run comes to its end and returns. SystemExit and KeyboardInterrupt are for the whole
    program, so they get out: from a tool only the second, since the first is its failure.

    A cancellation of the task that awaits it (Jupyter's stop button, Ctrl-C) first cancels what is
    running and waits for it, gives each call its result and tells LoopEnd; then it goes on. Who
    gave a signal should abort it then: a model that heard nothing may stream on.
    """
    raise NotImplementedError("Lab 7.1: run_agent_loop()")


def _announcer(on_event: OnEvent | None) -> Emit:
    """`on_event`, made safe: what it raises is reported once, and the run goes on."""
    raise NotImplementedError("Lab 7.1: _announcer()")
