"""`pi-course agent`: prompts in, runs of the agent loop on a folder, until the user leaves.

The loop and the tools are those of the chapters; what is here is the person at the terminal: who
is asked before something is changed, and whose Ctrl-C stops a run and keeps the conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi_course_kit.agent_screen import question
from pi_course_kit.errors import CourseError
from pi_course_kit.terminal import exact, leave, read_line, told_to_end, until_done

if TYPE_CHECKING:
    from pi_course.abort import AbortController
    from pi_course.agent_loop import AgentRunResult, LoopEvent, Refused
    from pi_course.messages import AgentMessage, Model, ToolCall
    from pi_course.tool import ToolRegistry

SYSTEM = """\
You are a coding agent. You work in the folder {folder} with the tools that you have.
Read a file before you edit it. After a change, run what shows that it works.
Say in a sentence or two what you did."""
COLUMNS = "74"  # for what programs print: it stands indented on a screen of 80
CHANGES = ("write", "edit", "bash")  # the tools that can change something
# Asks the person; None says that the run should stop.
Ask = Callable[[str], bool | None]


class Talk:
    """One conversation with one model about one folder."""

    def __init__(
        self,
        model: Model,
        tools: ToolRegistry,
        folder: Path,
        on_event: Callable[[LoopEvent], None],
        ask: Ask | None,
        *,
        allowed: bool = False,
    ) -> None:
        from pi_course.messages import SystemMessage
        from pi_course.surrogates import replace_surrogates

        self._model = model
        self._tools = tools
        self._folder = folder
        self._on_event = on_event
        self._ask = ask
        self._allowed = allowed
        self._asking = False
        system = SystemMessage(
            content=replace_surrogates(SYSTEM.format(folder=folder)), timestamp=0
        )
        self.messages: tuple[AgentMessage, ...] = (system,)

    def prompt(self, text: str) -> AgentRunResult:
        """One run. Ctrl-C ends it as aborted, and what was done so far stays in the talk.

        It is aborted too when its output can't be written any more, which is raised at its end,
        and by a signal that tells the program to end: then that ends, once the run has ended with
        all that it started.
        """
        from pi_course.abort import AbortController

        controller = AbortController()
        ends: list[int] = []

        def end(number: int) -> None:
            ends.append(number)
            controller.abort(signal.Signals(number).name)
            if self._asking:
                raise KeyboardInterrupt  # or the question would still wait for its answer

        output = _Output(self._on_event, controller)
        with told_to_end(end):
            try:
                result = asyncio.run(self._run(text, controller, output.tell))
            finally:
                if ends:  # also if a second Ctrl-C came meanwhile
                    leave(ends[0])
        if isinstance(output.failed, BrokenPipeError):
            raise output.failed  # as behind `| head -1`: there is nobody to tell it
        if output.failed is not None:
            raise CourseError(
                f"The run was aborted: its output can't be written ({output.failed.strerror}). "
                "What was done so far stays; send the output elsewhere, or make room."
            )
        return result

    async def _run(
        self, text: str, controller: AbortController, on_event: Callable[[LoopEvent], None]
    ) -> AgentRunResult:
        from pi_course.agent_loop import LoopHooks, run_agent_loop
        from pi_course.messages import AgentContext, user_message
        from pi_course.surrogates import replace_surrogates

        run = asyncio.create_task(
            run_agent_loop(
                model=self._model,
                tools=self._tools,
                context=AgentContext([*self.messages, user_message(replace_surrogates(text))]),
                signal=controller.signal,
                on_event=on_event,
                hooks=LoopHooks(before_tool_call=partial(self._permitted, controller)),
            )
        )
        if await until_done(run, controller.abort):
            await asyncio.wait({run})  # the loop gives everything a moment, and no more
        self.messages = run.result().messages
        return run.result()

    async def _permitted(self, run: AbortController, call: ToolCall) -> ToolCall | Refused:
        from pi_course.agent_loop import Refused
        from pi_course.tool_schema import InvalidArguments, parse_tool_arguments

        tool = self._tools.get(call.name)
        if self._allowed or tool is None or call.name not in CHANGES:
            return call
        if self._ask is None:
            return Refused("nobody is there to allow it; the user can start it with --yes")
        try:
            schema = tool.definition.parameters
            arguments, _ = parse_tool_arguments(tool.parameters, schema, call.arguments)
        except InvalidArguments:
            return call  # it will be refused, and does not run
        what = question(call.name, arguments.model_dump(mode="json", by_alias=True))
        self._asking = True
        try:
            answer = self._ask(
                f"{what}May it write and run commands in {exact(str(self._folder))}?"
            )
        finally:
            self._asking = False
        if answer is None:
            run.abort("Ctrl-C")
        self._allowed = bool(answer)
        return call if self._allowed else Refused("the user did not allow it")


class _Output:
    """Where the events go, until that fails: a pipe was closed, or the terminal is gone."""

    def __init__(self, on_event: Callable[[LoopEvent], None], run: AbortController) -> None:
        self._on_event = on_event
        self._run = run
        self.failed: OSError | None = None

    def tell(self, event: LoopEvent) -> None:
        if self.failed is not None:
            return
        try:
            self._on_event(event)
        except OSError as error:
            self.failed = error
            self._run.abort("its output can't be written any more")


def ask_at_terminal(question: str) -> bool | None:
    """Yes or no; None after Ctrl-C. It waits for the key with the event loop: nothing runs then.

    What was typed before the question stood there is no answer to it.
    """
    with contextlib.suppress(ImportError, OSError):
        termios = importlib.import_module("termios")
        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
    # asyncio's own handler would only note the Ctrl-C, and the prompt would stay.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return read_line(f"\n{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
    except KeyboardInterrupt:
        return None
    finally:
        signal.signal(signal.SIGINT, before)


def json_line(event: LoopEvent) -> str | None:
    """An event as one line; None for what others repeat. A partial is the sum of its deltas."""
    from pi_course import agent_loop, messages

    line: dict[str, Any]
    match event:
        case agent_loop.ModelEventSeen(messages.TextDelta() | messages.ToolCallDelta() as delta):
            line = {
                "type": delta.type,
                "contentIndex": delta.content_index,
                "delta": delta.delta,
            }
        case agent_loop.AssistantMessageSaved(message) | agent_loop.MessageAdded(message):
            line = {"type": "message", "message": _wire(message)}
        case agent_loop.ToolStart(call):
            line = {"type": "tool_start", "call": _wire(call)}
        case agent_loop.ToolProgress(call_id, content):
            line = {
                "type": "tool_progress",
                "callId": call_id,
                "content": [_wire(block) for block in content],
            }
        case agent_loop.ToolEnd(result):
            line = {"type": "tool_end", "result": _wire(result)}
        case agent_loop.ToolSkipped(result):
            line = {"type": "tool_skipped", "result": _wire(result)}
        case agent_loop.LoopEnd(reason):
            line = {"type": "end", "reason": reason}
        case _:
            return None
    return json.dumps(line)  # in ASCII: a terminal may be reading it


def _wire(value: Any) -> Any:
    return value.model_dump(mode="json")
