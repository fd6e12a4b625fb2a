"""Lanes show a run of the agent loop: who did what when, and each call joined to its result."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from pi_course.abort import AbortController
from pi_course.agent_loop import LoopEvent, run_agent_loop
from pi_course.messages import AgentContext, ToolCall, assistant_message, text, user_message
from pi_course.scripted_model import ScriptedModel, Turn
from pi_course.tool import Tool, ToolContext, ToolOutput, ToolRegistry
from pi_course_kit.notebook.lanes import lanes


class Arguments(BaseModel):
    path: str


def call(call_id: str, name: str) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments={"path": "README.md"})


def play(script: list[Turn], abort_at: int | None = None) -> list[object]:
    quick_is_done, controller, told = asyncio.Event(), AbortController(), list[object]()

    async def slow(arguments: Arguments, context: ToolContext) -> ToolOutput:
        context.report_progress("reading")
        await quick_is_done.wait()
        return ToolOutput("# Project")

    async def quick(arguments: Arguments, context: ToolContext) -> ToolOutput:
        quick_is_done.set()
        raise LookupError("no match")

    def listen(event: LoopEvent) -> None:
        told.append(event)
        if len(told) == abort_at:
            told.append("abort()")
            controller.abort()

    tools = [Tool(f.__name__, f.__name__, Arguments, f) for f in (slow, quick)]
    asyncio.run(
        run_agent_loop(
            model=ScriptedModel(script, chunk_size=3),
            tools=ToolRegistry(tools),
            context=AgentContext([user_message("go")]),
            signal=controller.signal,
            on_event=listen,
        )
    )
    return told


BOTH = assistant_message([text("I look"), call("a", "slow"), call("b", "quick")], "toolUse")
DONE = assistant_message([text("done")])


def test_two_tools_overlap_and_each_call_is_joined_to_its_result() -> None:
    assert str(lanes(play([BOTH, DONE]))) == WHOLE


def test_an_abort_stands_where_it_happened() -> None:
    shown = str(lanes(play([BOTH, DONE], abort_at=12)))
    assert shown == ABORTED


def test_the_html_form_says_the_same() -> None:
    shown = lanes(play([BOTH, DONE]))
    for words in ("start a", "end b, error", "2 result a", "┬─┐", "──┘"):
        assert f"<code>{words}</code>" in shown.html
        assert words in shown.text
    assert "<script" not in shown.html


def test_calls_without_a_result_stay_open() -> None:
    events = play([BOTH, DONE])
    ended = [n for n, event in enumerate(events) if type(event).__name__ == "ToolEnd"]
    assert "2 calls have no result." in lanes(events[: ended[0]]).text
    assert "1 call has no result." in lanes(events[: ended[1]]).text
    assert "the run has no end yet" in lanes(events[: ended[1]]).text


def test_a_run_without_events_is_shown_too() -> None:
    assert str(lanes([])) == "No events."


WHOLE = """\
32 events, 4 new messages; the run ended: stop. 2 tools ran at the same time.
Each call has its result.

#      model             tool 1            tool 2        transcript        pairs
-----  ----------------  ----------------  ------------  ----------------  -----
1      start
2-3    text_delta ×2
4-10   toolcall_delta
       ×7
11     toolcall_end
12-18  toolcall_delta
       ×7
19     toolcall_end
20     done
21                                                       1 assistant,      ┬─┐
                                                         toolUse
22                       start a                                           │ │
23                       progress                                          │ │
                         'reading'
24                       │                 start b                         │ │
25                       │                 end b, error                    │ │
26                       end a                                             │ │
                                                         2 result a        ┘ │
                                                         3 result b        ──┘
27     start
28-29  text_delta ×2
30     done
31                                                       4 assistant,
                                                         stop
32                                                       end: stop"""

ABORTED = """\
17 events, 3 new messages; the run ended: aborted. Each call has its result.

#     caller   model              tool             transcript            pairs
----  -------  -----------------  ---------------  --------------------  -----
1              start
2-3            text_delta ×2
4-10           toolcall_delta ×7
11             toolcall_end
12             toolcall_delta
      abort()
13             error
14                                                 1 assistant, aborted  ┬─┐
15                                skip a: aborted                        │ │
16                                skip b: aborted                        │ │
                                                   2 result a            ┘ │
                                                   3 result b            ──┘
17                                                 end: aborted"""
