"""Focused test of chapter 07: which replies may run, one round trip, order, aborts, interrupts.

Models play scripts and tools do what the test says, so nothing here needs a network or a clock.
Each run is also checked for what holds in all of them: see `play`.
"""

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import threading
import time
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import pytest
from pydantic import BaseModel


class Arguments(BaseModel):
    path: str


def run(coro, sentence="nothing came within 2 s: what is the loop waiting for?", seconds=2):
    lost = []

    async def limited():
        # What a forgotten task raises is only logged: here it fails the test.
        handler = asyncio.get_running_loop().set_exception_handler
        handler(lambda loop, problem: lost.append(problem["message"]))
        try:
            return await asyncio.wait_for(coro, seconds)
        except TimeoutError:
            raise AssertionError(sentence) from None

    value = asyncio.run(limited())
    assert lost == []
    return value


# What the tests build


def call(call_id="call_1", name="read", **arguments):
    from pi_course.messages import ToolCall

    return ToolCall(id=call_id, name=name, arguments=arguments or {"path": "README.md"})


def reply(*blocks, stop_reason=None):
    """A text is a text block; with a call in it the reply ends in toolUse unless said otherwise."""
    from pi_course.messages import assistant_message, text

    content = [text(block) if isinstance(block, str) else block for block in blocks]
    calls = any(not isinstance(block, str) for block in blocks)
    return assistant_message(content, stop_reason or ("toolUse" if calls else "stop"), timestamp=1)


def user(words="Read README.md"):
    from pi_course.messages import UserMessage, text

    return UserMessage(content=[text(words)], timestamp=1)


def result_of(call, words="# Project", **changed):
    from pi_course.messages import ToolResultMessage, text

    fields = {"tool_call_id": call.id, "tool_name": call.name, **changed}
    return ToolResultMessage(content=[text(words)], is_error=False, timestamp=1, **fields)


def tool(execute, name="read", sequential=False):
    """A tool with one argument, a path. `execute` gets the context and gives back a text."""
    from pi_course.tool import Tool, ToolOutput

    async def call_it(arguments, context):
        return ToolOutput(await execute(context, arguments.path))

    return Tool(name, f"The tool {name}.", Arguments, call_it, sequential=sequential)


def says(words="# Project", name="read", **options):
    async def execute(context, path):
        return words

    return tool(execute, name, **options)


def counting(name="read"):
    """A tool, and the list of the paths with which it was run."""
    paths = []

    async def execute(context, path):
        paths.append(path)
        return path

    return tool(execute, name), paths


def deaf(name="read", cancelled=None):
    """A tool that never ends by itself and does not look at the signal."""

    async def execute(context, path):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if cancelled is not None:
                cancelled.append(context.call_id)
            raise

    return tool(execute, name)


class Model:
    """A model whose stream comes from a function of its own. `signals` holds what it was given."""

    def __init__(self, stream):
        self._stream = stream
        self.requests, self.signals = [], []

    def stream(self, context, *, signal=None):
        self.requests.append(context)
        self.signals.append(signal)
        return self._stream(context, signal)


def streaming(*events, end=None):
    """A model that pushes these events and then does with its stream what `end` says."""
    from pi_course.event_stream import AssistantMessageEventStream

    def stream(context, signal):
        made = AssistantMessageEventStream()
        for event in events:
            made.push(event)
        if end is not None:
            end(made)
        return made

    return Model(stream)


def kind(event):
    name = type(event).__name__
    return f"{name}:{event.event.type}" if name == "ModelEventSeen" else name


def told(events):
    """The names of the events, those of the model left out."""
    return [kind(event) for event in events if kind(event)[:10] != "ModelEvent"]


def words(message):
    from pi_course.messages import text_of

    return text_of(message)


def results(messages):
    return [message for message in messages if message.role == "toolResult"]


def transcript(events):
    """The messages of the events: what a reader of on_event has, also after an interrupt."""
    from pi_course.agent_loop import AssistantMessageSaved, MessageAdded, ToolEnd, ToolSkipped

    messages = []
    for event in events:
        match event:
            case AssistantMessageSaved(message) | MessageAdded(message):
                messages.append(message)
            case ToolEnd(result) | ToolSkipped(result):
                messages.append(result)
    return messages


def played_by(model):
    from pi_course.scripted_model import ScriptedModel

    return model if hasattr(model, "stream") else ScriptedModel(model)


async def loop(model, *tools, messages=None, on_event=None, **options):
    """Run the loop, and check what holds for each run whatever happens in it."""
    from pi_course.agent_loop import LoopEnd, run_agent_loop
    from pi_course.messages import AgentContext, unpaired_calls
    from pi_course.tool import ToolRegistry

    before = asyncio.all_tasks()
    model, events = played_by(model), []
    given = (user(),) if messages is None else tuple(messages)

    def keep(event):
        events.append(event)
        if on_event is not None:
            on_event(event)

    result = await run_agent_loop(
        model=model,
        tools=ToolRegistry(tools),
        context=AgentContext(given),
        on_event=keep,
        **options,
    )
    assert asyncio.all_tasks() - before == set()
    assert result.messages[: len(given)] == given
    assert unpaired_calls(result.messages) == unpaired_calls(given)
    assert events[-1] == LoopEnd(result.reason)
    assert [event for event in events if isinstance(event, LoopEnd)] == events[-1:]
    assert sorted(map(id, transcript(events))) == sorted(map(id, result.messages[len(given) :]))
    return SimpleNamespace(
        reason=result.reason,
        steps=result.steps,
        messages=result.messages,
        new=result.messages[len(given) :],
        results=results(result.messages[len(given) :]),
        events=events,
        told=told(events),
        requests=model.requests,
    )


def play(*arguments, **options):
    return run(loop(*arguments, **options))


async def interrupted(model, *tools, until, again=None, **options):
    """Cancel the task that runs the loop when `until(event)`; give back the events it told."""
    from pi_course.agent_loop import run_agent_loop
    from pi_course.messages import AgentContext
    from pi_course.tool import ToolRegistry

    before, events = asyncio.all_tasks(), []

    def keep(event):
        events.append(event)
        if until(event):
            task.cancel()

    task = asyncio.create_task(
        run_agent_loop(
            model=played_by(model),
            tools=ToolRegistry(tools),
            context=AgentContext([user()]),
            on_event=keep,
            **options,
        )
    )
    if again is not None:
        await again(task)
    await asyncio.wait({task})
    seen = len(events)
    for _ in range(5):  # the model's own task hears of it and ends
        await asyncio.sleep(0)
    assert events[seen:] == []
    assert asyncio.all_tasks() - before == set()
    return task.cancelled(), events


# Lab 7.1: a text, and the end


def test_a_text_reply_ends_the_run():
    """One request, one reply, steps 1, reason stop; the reply is the model's very object."""
    answer = reply("Hello")
    played = play([answer])
    assert (played.reason, played.steps) == ("stop", 1)
    assert played.messages == (user(), answer)
    assert played.messages[1] is answer


def test_the_result_is_a_value():
    """AgentRunResult is frozen and slotted, its messages are a tuple."""
    from pi_course.agent_loop import AgentRunResult, run_agent_loop
    from pi_course.messages import AgentContext
    from pi_course.tool import ToolRegistry

    answer = reply("Hello")
    context = AgentContext([user()])
    value = run(run_agent_loop(model=played_by([answer]), tools=ToolRegistry(), context=context))
    assert value == AgentRunResult(reason="stop", messages=(user(), answer), steps=1)
    assert hasattr(value, "__dict__") is False
    with pytest.raises(FrozenInstanceError):
        value.steps = 2


def test_the_request_holds_the_callers_messages_and_the_registrys_tools():
    """The tools come from the registry; those of the context are not looked at."""
    from pi_course.agent_loop import run_agent_loop
    from pi_course.messages import AgentContext, ToolDefinition
    from pi_course.scripted_model import ScriptedModel
    from pi_course.tool import ToolRegistry

    registry = ToolRegistry([says(), says(name="grep")])
    other = ToolDefinition(name="other", description="not there", parameters={})
    context, model = AgentContext([user()], [other]), ScriptedModel([reply("Hello")])
    run(run_agent_loop(model=model, tools=registry, context=context))
    assert model.requests == [AgentContext([user()], registry.definitions())]
    assert (context.messages, context.tools) == ((user(),), (other,))


def test_the_events_of_a_text_reply():
    """Each event of the model as it is, the saved reply, the end."""
    from pi_course.agent_loop import AssistantMessageSaved, LoopEnd, ModelEventSeen
    from pi_course.scripted_model import events_of

    answer = reply("Hello")
    played = play([answer])
    assert played.events == [
        *(ModelEventSeen(event) for event in events_of(answer)),
        AssistantMessageSaved(answer),
        LoopEnd("stop"),
    ]


def test_nobody_needs_to_listen():
    """on_event may be left out."""
    from pi_course.agent_loop import run_agent_loop
    from pi_course.messages import AgentContext
    from pi_course.scripted_model import ScriptedModel
    from pi_course.tool import ToolRegistry

    model = ScriptedModel([reply("Hello")])
    context = AgentContext([user()])
    result = run(run_agent_loop(model=model, tools=ToolRegistry(), context=context))
    assert (result.reason, len(result.messages)) == ("stop", 2)


def test_events_come_while_the_reply_is_on_its_way():
    """An event is told when it comes, not when the reply is whole."""
    from pi_course.scripted_model import ScriptedModel

    events, told = [], []

    async def sleep(seconds):
        await asyncio.sleep(0)
        told.append([kind(event) for event in events])

    play(ScriptedModel([reply("Hello")], sleep=sleep), on_event=events.append)
    start, delta = "ModelEventSeen:start", "ModelEventSeen:text_delta"
    assert told == [[start], [start, delta]]


def test_instructions_are_the_callers():
    """The loop writes no system message, and those it gets stay where they are."""
    from pi_course.messages import SystemMessage

    base = SystemMessage(content="Be brief.", timestamp=0)
    patch = SystemMessage(content="", sections={"tools": "read"}, timestamp=5)
    given = (base, user(), reply("Yes?"), patch, user("Go on"))
    played = play([reply("Hello")], messages=given)
    assert played.requests[0].messages == given
    assert [message.role for message in played.new] == ["assistant"]


@pytest.mark.parametrize("reason", ["length", "error", "aborted"])
def test_the_end_has_the_reason_of_the_reply(reason):
    """A reply without calls ends the run for its own reason."""
    played = play([reply("Hel", stop_reason=reason)])
    assert (played.reason, played.steps, len(played.new)) == (reason, 1, 1)


TABLE = [
    ("toolUse", True, None, None),
    ("toolUse", False, "error", None),
    ("stop", False, "stop", None),
    ("stop", True, "error", "unexpected-stop"),
    ("length", False, "length", None),
    ("length", True, "length", "length"),
    ("error", False, "error", None),
    ("error", True, "error", "error"),
    ("aborted", False, "aborted", None),
    ("aborted", True, "aborted", "aborted"),
]


@pytest.mark.parametrize(("stop_reason", "calls", "end", "skip"), TABLE)
def test_the_stop_reason_decides(stop_reason, calls, end, skip):
    """decide() is the whole table: only toolUse with calls lets anything run."""
    from pi_course.agent_loop import Decision, decide

    answer = reply("ok", *([call()] if calls else []), stop_reason=stop_reason)
    assert decide(answer) == Decision(end, skip)
    with pytest.raises(FrozenInstanceError):
        decide(answer).end = None


@pytest.mark.parametrize("steps", [0, -1])
def test_a_run_has_at_least_one_step(steps):
    """max_steps below 1 is refused before anything happens, and the text names it."""
    model = played_by([reply("Hello")])
    with pytest.raises(ValueError, match=f"max_steps is {steps}"):
        play(model, max_steps=steps)
    assert model.requests == []


def test_before_request_changes_one_request():
    """What the hook returns is asked, of the model it names; the transcript is not touched."""
    from dataclasses import replace

    from pi_course.agent_loop import LoopHooks, ModelRequest
    from pi_course.messages import AgentContext

    other, seen = played_by([reply("from the other")]), []

    async def before_request(request):
        seen.append(request)
        return replace(request, model=other, context=AgentContext([user("shorter")]))

    model = played_by([])
    played = play(model, says(), hooks=LoopHooks(before_request=before_request))
    assert [type(request) for request in seen] == [ModelRequest]
    assert seen[0].model is model
    assert seen[0].context.messages == (user(),)
    assert [definition.name for definition in seen[0].context.tools] == ["read"]
    assert other.requests == [AgentContext([user("shorter")])]
    assert [words(message) for message in played.messages] == ["Read README.md", "from the other"]


def test_next_messages_joins_before_a_request_and_at_the_end():
    """Asked before each request and at a stop; what it gives is told, saved and requested."""
    from pi_course.agent_loop import LoopHooks, MessageAdded
    from pi_course.messages import SystemMessage

    queue = [
        [user("also")],
        [user("more"), SystemMessage(content="Be brief.", timestamp=2)],
        [],
        [],
    ]
    asked = []

    def next_messages(moment):
        asked.append(moment)
        return queue.pop(0)

    first, second = reply("one"), reply("two")
    played = play([first, second], hooks=LoopHooks(next_messages=next_messages))
    more = (user("more"), SystemMessage(content="Be brief.", timestamp=2))
    assert asked == ["request", "stop", "request", "stop"]
    assert (played.reason, played.steps) == ("stop", 2)
    assert played.messages == (user(), user("also"), first, *more, second)
    assert [request.messages for request in played.requests] == [
        played.messages[:2],
        played.messages[:5],
    ]
    assert [event.message for event in played.events if isinstance(event, MessageAdded)] == [
        user("also"),
        *more,
    ]


@pytest.mark.parametrize("reason", ["length", "error", "aborted"])
def test_only_a_stop_can_be_prolonged(reason):
    """A run that ends for another reason does not ask for messages at its end."""
    from pi_course.agent_loop import LoopHooks

    asked = []

    def next_messages(moment):
        asked.append(moment)
        return []

    played = play([reply(stop_reason=reason)], hooks=LoopHooks(next_messages=next_messages))
    assert (asked, played.reason) == (["request"], reason)


# Lab 7.2: one round trip


def test_one_round_trip():
    """Call, result, second request with both, answer: two steps, four messages."""
    asks, answer = reply("I look.", call()), reply("It is a project.")
    played = play([asks, answer], says("# Project"))
    assert (played.reason, played.steps) == ("stop", 2)
    assert [message.role for message in played.messages] == [
        "user",
        "assistant",
        "toolResult",
        "assistant",
    ]
    found = played.messages[2]
    assert (found.tool_call_id, found.tool_name, words(found)) == ("call_1", "read", "# Project")
    assert found.is_error is False
    assert played.requests[1].messages == played.messages[:3]
    assert played.requests[1].tools == played.requests[0].tools
    assert played.requests[0].messages == played.messages[:1]


def test_the_events_of_a_round_trip():
    """ToolStart, ToolProgress, ToolEnd, and they hold the call, its content and the result."""
    from pi_course.agent_loop import ToolEnd, ToolProgress, ToolStart
    from pi_course.messages import text

    async def execute(context, path):
        context.report_progress("half")
        context.report_progress([text("all"), text("of it")])
        return "# Project"

    played = play([reply(call()), reply("ok")], tool(execute))
    assert played.told == [
        "AssistantMessageSaved",
        "ToolStart",
        "ToolProgress",
        "ToolProgress",
        "ToolEnd",
        "AssistantMessageSaved",
        "LoopEnd",
    ]
    assert [event for event in played.events if kind(event).startswith("Tool")] == [
        ToolStart(call()),
        ToolProgress("call_1", (text("half"),)),
        ToolProgress("call_1", (text("all"), text("of it"))),
        ToolEnd(played.results[0]),
    ]


def test_the_tool_sees_the_callers_signal():
    """The model and the tool get the very object that the caller gave, and the call's id."""
    from pi_course.abort import AbortController
    from pi_course.scripted_model import ScriptedModel

    signal, seen = AbortController().signal, []

    class Noting(ScriptedModel):
        def stream(self, context, *, signal=None):
            seen.append(signal)
            return super().stream(context, signal=signal)

    async def execute(context, path):
        seen.append(context.signal)
        seen.append(context.call_id)
        return path

    play(Noting([reply(call()), reply("ok")]), tool(execute), signal=signal)
    assert seen == [signal, signal, "call_1", signal]
    assert [one is signal for one in seen] == [True, True, False, True]


def test_without_a_signal_the_loop_makes_one():
    """Model and tool share a signal that nobody has aborted."""
    from pi_course.abort import AbortSignal

    seen = []

    async def execute(context, path):
        seen.append(context.signal)
        return path

    play([reply(call()), reply("ok")], tool(execute))
    assert [type(signal) for signal in seen] == [AbortSignal]
    assert seen[0].aborted is False


def test_the_executor_may_be_another_one():
    """execute_tool_call= is called with the call, the registry and the context."""
    from pi_course.tool import ToolContext, ToolRegistry

    seen = []

    async def execute(call, registry, context):
        seen.append((call, type(registry), type(context), context.call_id))
        return result_of(call, "from elsewhere")

    played = play([reply(call()), reply("ok")], execute_tool_call=execute)
    assert seen == [(call(), ToolRegistry, ToolContext, "call_1")]
    assert words(played.results[0]) == "from elsewhere"


def test_a_failed_tool_is_a_result_like_any_other():
    """The model is asked again and reads what went wrong."""

    async def execute(context, path):
        raise FileNotFoundError("there is no README.md")

    played = play([reply(call()), reply("I see.")], tool(execute))
    assert (played.reason, played.steps) == ("stop", 2)
    assert [found.is_error for found in played.results] == [True]
    assert "there is no README.md" in words(played.results[0])
    assert "ToolStart ToolEnd" in " ".join(played.told)


def test_an_unknown_tool_is_a_result_too():
    """A name that the registry does not have: the call is answered, the run goes on."""
    played = play([reply(call(name="grep")), reply("I see.")], says())
    assert [(found.tool_name, found.is_error) for found in played.results] == [("grep", True)]
    assert (played.reason, played.steps) == ("stop", 2)


def test_ids_of_earlier_turns_are_taken():
    """An id that a call or a result had, in this run or before it, is not used again."""
    given = (user(), reply(call("a")), result_of(call("a")), result_of(call("b")))
    turns = [reply(call("a")), reply(call("b")), reply(call("a")), reply("ok")]
    played = play(turns, says(), messages=given)
    assert [found.tool_call_id for found in played.results] == ["a-2", "b-2", "a-3"]


def test_a_reply_with_good_ids_is_saved_as_it_is():
    """Nothing to rename: the saved reply is the model's very object."""
    asks = reply("x", call("a"))
    assert play([asks, reply("ok")], says()).messages[1] is asks


def test_tools_run_in_the_callers_context():
    """A context variable that was set around the loop is there in the tool."""
    name = contextvars.ContextVar("name", default="nobody")
    seen = []

    async def execute(context, path):
        seen.append(name.get())
        return path

    async def main():
        name.set("the caller")
        return await loop([reply(call()), reply("ok")], tool(execute))

    run(main())
    assert seen == ["the caller"]


@pytest.mark.parametrize("turns", [3, 31])
def test_the_loop_goes_on_as_long_as_the_model_wants(turns):
    """Several round trips in a row: each request is all that was said before."""
    script = [reply(call(f"call_{n}")) for n in range(turns)] + [reply("done")]
    played = play(script, says())
    assert (played.reason, played.steps) == ("stop", turns + 1)
    assert [len(request.messages) for request in played.requests] == list(
        range(1, 2 * turns + 2, 2)
    )
    assert played.requests[-1].messages == played.messages[:-1]


# Lab 7.3: replies that may not run


SKIPS = [
    ("length", "length", "length"),
    ("error", "error", "error"),
    ("aborted", "aborted", "aborted"),
    ("stop", "error", "unexpected-stop"),
]


@pytest.mark.parametrize(("stop_reason", "reason", "skip"), SKIPS)
def test_calls_that_may_not_run_are_skipped(stop_reason, reason, skip):
    """No tool runs; each call has an error result that says why; there is no second request."""
    # Pi, report 6285
    # Pi, report 812
    read, paths = counting()
    asks = reply("x", call("a"), call("b", name="grep"), stop_reason=stop_reason)
    played = play([asks, reply("never")], read)
    assert paths == []
    assert (played.reason, played.steps) == (reason, 1)
    assert played.told == [
        "AssistantMessageSaved",
        "ToolSkipped",
        "ToolSkipped",
        "LoopEnd",
    ]
    assert [(found.tool_call_id, found.tool_name) for found in played.results] == [
        ("a", "read"),
        ("b", "grep"),
    ]
    for found in played.results:
        assert found.is_error is True
        assert dict(found.details) == {"skipped": True, "reason": skip}
        assert words(found).startswith(f"Tool {found.tool_name} was not run: ")
    assert played.messages[1] is asks


def test_each_reason_has_words_of_its_own():
    """The model reads why a call was not run, and the four texts differ."""
    said = {
        words(play([reply(call(), stop_reason=reason)]).results[0])
        for reason in ("length", "error", "aborted", "stop")
    }
    assert len(said) == 4


def test_a_result_of_a_skipped_call_has_a_time():
    """The timestamp is that of now, in milliseconds."""
    before = int(time.time() * 1000)
    found = play([reply(call(), stop_reason="length")]).results[0]
    assert before <= found.timestamp <= int(time.time() * 1000)


def test_tool_use_without_a_call_is_an_error():
    """There is nothing to run and no text to end with: asking again would never end."""
    played = play([reply("I will", stop_reason="toolUse"), reply("never")], says())
    assert (played.reason, played.steps, len(played.new)) == ("error", 1, 1)


def test_skipped_calls_have_ids_of_their_own_too():
    """A repeated id is renamed in a reply that may not run, or two results would have one id."""
    played = play([reply(call("a"), call("a"), stop_reason="length")])
    assert [found.tool_call_id for found in played.results] == ["a", "a-2"]


def test_a_model_that_raises_is_an_error_reply():
    """stream() itself raises: no text is lost, since there was none; the transcript says why."""

    def stream(context, signal):
        raise ConnectionError("no route to the model")

    played = play(Model(stream), says())
    assert (played.reason, played.steps, len(played.new)) == ("error", 1, 1)
    broken = played.new[0]
    assert (broken.stop_reason, broken.content) == ("error", ())
    assert (broken.provider, broken.model) == ("unknown", "unknown")
    assert broken.error_message == "ConnectionError: no route to the model"


def test_a_cancellation_from_inside_is_no_interrupt():
    """The model waits for a task of its own that is cancelled: nobody cancelled the run."""

    class Waiting:
        async def __aiter__(self):
            task = asyncio.create_task(asyncio.Event().wait())
            task.cancel()
            yield await task

    played = play(Model(lambda context, signal: Waiting()))
    assert (played.reason, played.new[0].stop_reason) == ("error", "error")
    assert played.new[0].error_message.startswith("CancelledError")


def half_a_call():
    """The events of a reply that has a text, a whole call and the beginning of a second one."""
    from pi_course.scripted_model import events_of

    whole = reply("I look.", call("a"), call("b"))
    return list(itertools.islice(events_of(whole, chunk_size=7), 9))


def test_a_stream_that_breaks_off_keeps_what_had_come():
    """Iteration raises in mid-reply: the text stays, the calls are skipped, the reason is told."""

    async def breaking():
        for event in half_a_call():
            yield event
        raise ConnectionError("line lost \ud83d")

    played = play(Model(lambda context, signal: breaking()), says())
    broken = played.new[0]
    assert (played.reason, played.steps) == ("error", 1)
    assert (words(broken), broken.stop_reason) == ("I look.", "error")
    assert broken.error_message == "ConnectionError: line lost \ufffd"
    assert (broken.provider, broken.model) == ("scripted", "scripted-v1")
    assert [found.tool_call_id for found in played.results] == ["a", "b"]
    assert {found.details["reason"] for found in played.results} == {"error"}
    assert played.told == ["AssistantMessageSaved", "ToolSkipped", "ToolSkipped", "LoopEnd"]


def test_a_break_in_the_second_request_keeps_the_first_turn():
    """User, call, result stay, and the error reply with its text stands behind them."""
    from pi_course.scripted_model import ScriptedFailure

    played = play([reply(call()), ScriptedFailure("error", "quota used up", "It is")], says())
    assert [message.role for message in played.messages] == [
        "user",
        "assistant",
        "toolResult",
        "assistant",
    ]
    assert (played.reason, played.steps, words(played.new[-1])) == ("error", 2, "It is")


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (lambda stream: stream.end(), "StreamClosed"),
        (lambda stream: stream.end("a text"), ""),
    ],
    ids=["no-result", "no-message"],
)
def test_a_stream_without_a_reply_is_an_error(end, says):
    """It ends without Done and Error, or its result is no message: an error reply."""
    played = play(streaming(*half_a_call()[:2], end=end))
    broken = played.new[0]
    assert (played.reason, words(broken), broken.stop_reason) == ("error", "I look.", "error")
    assert broken.error_message
    assert broken.error_message.startswith(says)


def test_a_stream_whose_result_comes_without_an_event():
    """result() is the final fact; what it gives is the reply."""
    answer = reply("Hello")
    played = play(streaming(end=lambda stream: stream.end(answer)))
    assert (played.reason, played.new) == ("stop", (answer,))


def test_before_request_that_raises_is_an_error_reply():
    """No request is made; the run ends in an error that says why."""
    from pi_course.agent_loop import LoopHooks

    async def before_request(request):
        raise LookupError("no model for this")

    model = played_by([reply("never")])
    played = play(model, hooks=LoopHooks(before_request=before_request))
    assert (played.reason, played.steps, model.requests) == ("error", 0, [])
    assert played.new[0].error_message == "LookupError: no model for this"


def test_next_messages_that_raises_is_an_error_reply():
    """What had come stays; the error stands behind it."""
    from pi_course.agent_loop import LoopHooks

    def next_messages(moment):
        if moment == "stop":
            raise LookupError("the queue is gone")
        return []

    answer = reply("Hello")
    played = play([answer], hooks=LoopHooks(next_messages=next_messages))
    assert (played.reason, played.steps, played.new[0]) == ("error", 1, answer)
    assert played.new[1].error_message == "LookupError: the queue is gone"


# Lab 7.4: several calls at once


class Gate:
    """Tools that wait for each other, so that the order in which they end is certain."""

    def __init__(self):
        self.begun, self.events = [], {}

    def tool(self, name, *, waits_for=None, sequential=False):
        async def execute(context, path):
            self.begun.append(name)
            if waits_for is not None:
                await self.events.setdefault(waits_for, asyncio.Event()).wait()
            self.events.setdefault(name, asyncio.Event()).set()
            return f"from {name}"

        return tool(execute, name, sequential=sequential)


def ends(events):
    return [event.result.tool_call_id for event in events if kind(event) == "ToolEnd"]


def test_two_tools_run_at_the_same_time():
    """a waits for b: ends come as b, a; the transcript and the next request have a, b."""
    # Pi, report 3503
    gate = Gate()
    tools = [gate.tool("slow", waits_for="quick"), gate.tool("quick")]
    asks = reply(call("a", name="slow"), call("b", name="quick"))
    played = play([asks, reply("ok")], *tools)
    assert gate.begun == ["slow", "quick"]
    assert ends(played.events) == ["b", "a"]
    assert [found.tool_call_id for found in played.results] == ["a", "b"]
    assert [words(found) for found in played.results] == ["from slow", "from quick"]
    assert played.requests[1].messages == played.messages[:4]


def test_starts_are_told_in_call_order():
    """ToolStart a, ToolStart b, and then the ends."""
    gate = Gate()
    asks = reply(call("a", name="slow"), call("b", name="quick"))
    played = play([asks, reply("ok")], gate.tool("slow", waits_for="quick"), gate.tool("quick"))
    starts = [event.call.id for event in played.events if kind(event) == "ToolStart"]
    assert starts == ["a", "b"]
    assert played.told[:5] == [
        "AssistantMessageSaved",
        "ToolStart",
        "ToolStart",
        "ToolEnd",
        "ToolEnd",
    ]


def test_sixty_four_calls_at_once():
    """All of them are running before the first one ends."""
    begun, all_begun = [], asyncio.Event()

    async def execute(context, path):
        begun.append(path)
        if len(begun) == 64:
            all_begun.set()
        await all_begun.wait()
        return path

    calls = [call(f"call_{n}", path=str(n)) for n in range(64)]
    played = play([reply(*calls), reply("ok")], tool(execute))
    assert [words(found) for found in played.results] == [str(n) for n in range(64)]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_sequential_tool_makes_its_batch_sequential(place):
    """One such tool anywhere in the reply: each call ends before the next one starts."""
    gate = Gate()
    names = ["a", "b", "c"]
    tools = [gate.tool(name, sequential=number == place) for number, name in enumerate(names)]
    asks = reply(*(call(f"id_{name}", name=name) for name in names))
    played = play([asks, reply("ok")], *tools)
    assert played.told == [
        "AssistantMessageSaved",
        *["ToolStart", "ToolEnd"] * 3,
        "AssistantMessageSaved",
        "LoopEnd",
    ]
    assert ends(played.events) == ["id_a", "id_b", "id_c"]
    assert gate.begun == ["a", "b", "c"]


def test_an_unknown_tool_disturbs_no_batch():
    """Its call has an error result; the sequential tool beside it runs."""
    asks = reply(call("a", name="nobody"), call("b"))
    played = play([asks, reply("ok")], says(sequential=True))
    assert [found.is_error for found in played.results] == [True, False]


def test_progress_of_two_tools_keeps_its_call():
    """Each ToolProgress names the call that it belongs to."""

    async def execute(context, path):
        context.report_progress(path)
        await asyncio.sleep(0)
        context.report_progress(path + path)
        return path

    calls = [call("a", path="x"), call("b", path="y")]
    played = play([reply(*calls), reply("ok")], tool(execute))
    progress = [event for event in played.events if kind(event) == "ToolProgress"]
    assert [(event.call_id, event.content[0].text) for event in progress] == [
        ("a", "x"),
        ("b", "y"),
        ("a", "xx"),
        ("b", "yy"),
    ]


def answering(what):
    """An executor that does with the call `bad` what is said, and answers all others."""

    async def execute(call, registry, context):
        return what(call) if call.id == "bad" else result_of(call)

    return execute


def raises(call):
    raise OSError("the disk is gone")


WRONG = {
    "raises": (raises, "the disk is gone"),
    "another-id": (lambda call: result_of(call, tool_call_id="good"), "'good'"),
    "another-name": (lambda call: result_of(call, tool_name="grep"), "'grep'"),
    "no-result": (lambda call: None, "NoneType"),
}


@pytest.mark.parametrize(("what", "says"), WRONG.values(), ids=WRONG)
def test_what_an_executor_does_wrong_stays_with_its_call(what, says):
    """It raises or answers for another call: an error result, and the sibling keeps its own."""
    calls = [call("bad"), call("good")]
    played = play([reply(*calls), reply("ok")], execute_tool_call=answering(what))
    bad, good = played.results
    assert (bad.tool_call_id, bad.tool_name, bad.is_error) == ("bad", "read", True)
    assert says in words(bad)
    assert good == result_of(call("good"))
    assert (played.reason, played.steps) == ("stop", 2)


def test_a_repeated_id_is_renamed_before_the_reply_is_saved():
    """Three calls with one id: three ids in the transcript, each with its own result."""
    calls = [call("a", path="1"), call("a", path="2"), call("b", path="3"), call("a", path="4")]
    read, paths = counting()
    played = play([reply("x", *calls), reply("ok")], read)
    saved = played.messages[1]
    assert [block.id for block in saved.content[1:]] == ["a", "a-2", "b", "a-3"]
    assert [(found.tool_call_id, words(found)) for found in played.results] == [
        ("a", "1"),
        ("a-2", "2"),
        ("b", "3"),
        ("a-3", "4"),
    ]
    assert [block.arguments["path"] for block in saved.content[1:]] == ["1", "2", "3", "4"]
    assert words(saved) == "x"


def test_a_new_id_is_free():
    """The new id is none that is used already, in this reply or before it."""
    calls = [call("a"), call("a-2"), call("a")]
    played = play([reply(*calls), reply("ok")], says())
    assert [found.tool_call_id for found in played.results] == ["a", "a-2", "a-3"]


def hooked(*calls, tools=None, **hooks):
    from pi_course.agent_loop import LoopHooks

    read, paths = counting()
    played = play([reply(*calls), reply("ok")], *(tools or [read]), hooks=LoopHooks(**hooks))
    return played, paths


def test_before_tool_call_may_change_the_arguments():
    """The tool and ToolStart get the changed call; the saved reply keeps the model's."""

    async def before_tool_call(asked):
        return asked.model_copy(update={"arguments": {"path": "docs/" + asked.arguments["path"]}})

    played, paths = hooked(call(), before_tool_call=before_tool_call)
    started = next(event.call for event in played.events if kind(event) == "ToolStart")
    assert paths == ["docs/README.md"]
    assert started.arguments["path"] == "docs/README.md"
    assert played.messages[1].content[0] == call()


def test_before_tool_call_may_refuse():
    """Refused: no ToolStart, nothing runs, the model reads the reason; the sibling runs."""
    from pi_course.agent_loop import Refused

    async def before_tool_call(asked):
        return Refused("not outside of the folder \ud83d") if asked.id == "a" else asked

    played, paths = hooked(
        call("a", path="1"), call("b", path="2"), before_tool_call=before_tool_call
    )
    refused, ran = played.results
    assert paths == ["2"]
    assert words(refused) == "Tool read was not run: not outside of the folder \ufffd"
    assert dict(refused.details) == {"skipped": True, "reason": "refused"}
    assert (refused.is_error, ran.is_error, played.steps) == (True, False, 2)
    assert [kind(event) for event in played.events if kind(event).startswith("Tool")] == [
        "ToolSkipped",
        "ToolStart",
        "ToolEnd",
    ]


async def hook_that_raises(asked):
    raise LookupError("the policy is gone")


async def hook_with_another_id(asked):
    return asked.model_copy(update={"id": "other"})


async def hook_with_another_name(asked):
    return asked.model_copy(update={"name": "grep"})


async def hook_that_forgets_to_return(asked):
    pass


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        (hook_that_raises, "the policy is gone"),
        (hook_with_another_id, ""),
        (hook_with_another_name, ""),
        (hook_that_forgets_to_return, ""),
    ],
    ids=["raises", "another-id", "another-name", "nothing"],
)
def test_before_tool_call_fails_closed(hook, says):
    """A hook that can't decide has not allowed the call, and the result says what it did."""
    played, paths = hooked(call(), before_tool_call=hook)
    assert paths == []
    assert dict(played.results[0].details) == {"skipped": True, "reason": "refused"}
    said, _, problem = words(played.results[0]).partition("before_tool_call failed: ")
    assert said == "Tool read was not run: "
    assert problem
    assert says in problem


def test_after_tool_result_that_raises_spares_the_siblings():
    """The result of that call is an error; the others have theirs, and the run goes on."""
    # Pi, report 3084

    async def after_tool_result(asked, found):
        if asked.id == "a":
            raise LookupError("the policy is gone")
        return found

    played, paths = hooked(
        call("a", path="1"), call("b", path="2"), after_tool_result=after_tool_result
    )
    assert paths == ["1", "2"]
    assert [found.is_error for found in played.results] == [True, False]
    assert "the policy is gone" in words(played.results[0])
    assert (played.reason, played.steps) == ("stop", 2)


def test_before_tool_call_is_asked_one_at_a_time():
    """It may ask a person: never two questions at once, in call order; earlier calls run."""
    asking, log = [], []

    async def before_tool_call(asked):
        asking.append(asked.id)
        assert len(asking) == 1
        log.append(f"asked {asked.id}")
        for _ in range(3):
            await asyncio.sleep(0)
        asking.remove(asked.id)
        return asked

    async def execute(context, path):
        log.append(f"ran {context.call_id}")
        return path

    calls = [call("a"), call("b"), call("c")]
    hooked(*calls, tools=[tool(execute)], before_tool_call=before_tool_call)
    assert log == ["asked a", "ran a", "asked b", "ran b", "asked c", "ran c"]


def test_after_tool_result_may_change_the_result():
    """The result that it returns is told, saved and in the next request; it sees what was run."""
    seen = []

    async def after_tool_result(asked, found):
        seen.append((asked, found.tool_call_id, words(found)))
        return result_of(asked, "changed")

    played, _ = hooked(call(), after_tool_result=after_tool_result)
    assert seen == [(call(), "call_1", "README.md")]
    assert [words(found) for found in played.results] == ["changed"]
    assert words(played.requests[1].messages[2]) == "changed"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda found: found.model_copy(update={"tool_call_id": "x"}), "'x'"),
        (lambda found: found.model_copy(update={"tool_name": "grep"}), "'grep'"),
        (lambda found: None, "NoneType"),
        (lambda found: raises(found), "the disk is gone"),
    ],
    ids=["another-id", "another-name", "no-result", "raises"],
)
def test_after_tool_result_fails_closed(change, says):
    """The tool's own words may be what must not get out: an error result stands in their place."""
    # Pi, report 3084

    async def after_tool_result(asked, found):
        return change(found)

    played, _ = hooked(call(), after_tool_result=after_tool_result)
    assert (played.results[0].is_error, played.reason) == (True, "stop")
    assert says in words(played.results[0])
    assert "README.md" not in words(played.results[0])


# Lab 7.5: aborts, limits, interrupts


def aborting(when):
    """A controller, and a listener that aborts it at each event for which `when` is true."""
    from pi_course.abort import AbortController

    controller = AbortController()

    def listen(event):
        if when(event):
            controller.abort("stop button")

    return controller.signal, listen


def is_a(name, call_id=None):
    def matches(event):
        found = getattr(event, "call", None) or getattr(event, "result", None)
        identity = getattr(found, "id", None) or getattr(found, "tool_call_id", None)
        return kind(event) == name and call_id in (None, identity)

    return matches


def test_an_abort_before_the_start_asks_nobody():
    """No request, steps 0, the caller's messages and one LoopEnd."""
    from pi_course.abort import AbortController

    controller = AbortController()
    controller.abort()
    model = played_by([reply("never")])
    played = play(model, says(), signal=controller.signal)
    assert (played.reason, played.steps, played.new, played.told) == (
        "aborted",
        0,
        (),
        ["LoopEnd"],
    )
    assert model.requests == []


def test_an_abort_in_mid_reply_keeps_what_had_come():
    """The model hears it and ends its reply; its calls are skipped."""
    signal, listen = aborting(is_a("ModelEventSeen:toolcall_end"))
    read, paths = counting()
    played = play([reply("x", call(), "y")], read, signal=signal, on_event=listen)
    assert (played.reason, played.steps, paths) == ("aborted", 1, [])
    assert (words(played.new[0]), played.new[0].stop_reason) == ("x", "aborted")
    assert played.new[0].error_message == "aborted: stop button"
    assert dict(played.results[0].details) == {"skipped": True, "reason": "aborted"}


REASONS = [("toolUse", "aborted"), ("stop", "unexpected-stop"), ("length", "length")]


@pytest.mark.parametrize("event", ["ModelEventSeen:done", "AssistantMessageSaved"])
@pytest.mark.parametrize(("stop_reason", "skip"), REASONS, ids=dict(REASONS))
def test_an_abort_before_the_tools_starts_none(event, stop_reason, skip):
    """The reply is whole, the signal is aborted: each call is skipped and no tool runs."""
    signal, listen = aborting(is_a(event))
    read, paths = counting()
    asks = reply(call("a"), call("b"), stop_reason=stop_reason)
    played = play([asks, reply("never")], read, signal=signal, on_event=listen)
    assert (played.reason, played.steps, paths) == ("aborted", 1, [])
    assert played.told == ["AssistantMessageSaved", "ToolSkipped", "ToolSkipped", "LoopEnd"]
    assert [found.details["reason"] for found in played.results] == [skip, skip]


def test_an_abort_goes_before_a_stop():
    """A whole text reply after an abort ends the run as aborted; nobody is asked for more."""
    from pi_course.agent_loop import LoopHooks

    signal, listen = aborting(is_a("AssistantMessageSaved"))
    asked = []

    def next_messages(moment):
        asked.append(moment)
        return []

    hooks = LoopHooks(next_messages=next_messages)
    played = play([reply("Hello")], signal=signal, on_event=listen, hooks=hooks)
    assert (played.reason, asked, words(played.new[0])) == ("aborted", ["request"], "Hello")


def test_an_abort_while_messages_are_added_makes_no_request():
    """Looked at once more right before the request."""
    from pi_course.agent_loop import LoopHooks

    signal, listen = aborting(is_a("MessageAdded"))
    hooks = LoopHooks(next_messages=lambda moment: [user("more")])
    played = play([reply("never")], signal=signal, on_event=listen, hooks=hooks)
    assert (played.reason, played.steps, played.new) == ("aborted", 0, (user("more"),))


def test_an_abort_during_before_request_makes_no_request():
    """The hook takes its time, and meanwhile somebody aborts."""
    from pi_course.abort import AbortController
    from pi_course.agent_loop import LoopHooks

    controller = AbortController()

    async def before_request(request):
        controller.abort()
        return request

    hooks = LoopHooks(before_request=before_request)
    played = play([reply("never")], signal=controller.signal, hooks=hooks)
    assert (played.reason, played.steps, played.new, played.requests) == ("aborted", 0, (), [])


def test_an_abort_during_a_tool_keeps_its_result():
    """The tool hears it and gives what it has; there is no second request."""
    from pi_course.abort import AbortController

    controller = AbortController()

    async def execute(context, path):
        controller.abort("stop button")
        await context.signal.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        return "half of it"

    played = play([reply(call()), reply("never")], tool(execute), signal=controller.signal)
    assert (played.reason, played.steps) == ("aborted", 1)
    assert [(words(found), found.is_error) for found in played.results] == [("half of it", False)]


def test_an_abort_at_tool_start_runs_nothing():
    """Who sees ToolStart may still stop it: the call ends in an error, the tool is not called."""
    signal, listen = aborting(is_a("ToolStart", "a"))
    read, paths = counting()
    asks = reply(call("a"), call("b"))
    played = play([asks, reply("never")], read, signal=signal, on_event=listen)
    assert paths == []
    assert played.told[1:] == ["ToolStart", "ToolEnd", "ToolSkipped", "LoopEnd"]
    assert [found.is_error for found in played.results] == [True, True]
    assert "aborted: stop button" in words(played.results[0])


def test_an_abort_in_a_sequential_batch_skips_the_rest():
    """What has run keeps its result, what is left is skipped."""
    signal, listen = aborting(is_a("ToolEnd", "a"))
    asks = reply(call("a"), call("b"), call("c"))
    played = play([asks], says(sequential=True), signal=signal, on_event=listen)
    assert played.told[1:] == ["ToolStart", "ToolEnd", "ToolSkipped", "ToolSkipped", "LoopEnd"]
    assert [found.is_error for found in played.results] == [False, True, True]


def cancels_itself():
    asyncio.current_task().cancel()


async def tool_that_cancels_itself(context, path):
    cancels_itself()
    await asyncio.sleep(0)


async def hook_that_cancels_itself(asked):
    cancels_itself()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("hook", "lost", "tools"),
    [(None, 1, ["ToolStart", "ToolEnd"]), (hook_that_cancels_itself, 0, ["ToolSkipped"])],
    ids=["tool", "hook"],
)
def test_calls_lost_to_a_cancellation_from_inside_are_told_the_truth(hook, lost, tools):
    """What runs the calls of a batch was cancelled, and nobody stopped the run: it goes on."""
    from pi_course.agent_loop import LoopHooks

    played = play(
        [reply(call("a", name="odd"), call("b"), call("c")), reply("I see")],
        tool(tool_that_cancels_itself, "odd", sequential=True),
        says(),
        hooks=LoopHooks(before_tool_call=hook),
    )
    assert (played.reason, played.steps) == ("stop", 2)
    assert played.told[1:-2] == [*tools, *["ToolSkipped"] * 2]
    for found in played.results[lost:]:
        assert dict(found.details) == {"skipped": True, "reason": "cancelled"}
        assert "cancelled" in words(found)
        assert "abort" not in words(found)


def test_a_tool_that_does_not_listen_is_cancelled():
    """After the grace its task is cancelled and the call has a result; the others keep theirs."""
    signal, listen = aborting(is_a("ToolEnd", "b"))
    cancelled = []
    asks = reply(call("a", name="deaf"), call("b"))
    played = play(
        [asks],
        deaf("deaf", cancelled),
        says(),
        signal=signal,
        on_event=listen,
        grace_seconds=0.01,
    )
    assert cancelled == ["a"]
    assert (played.reason, played.steps, ends(played.events)) == ("aborted", 1, ["b", "a"])
    late, quick = played.results
    assert (late.is_error, quick.is_error) == (True, False)
    assert "cancelled" in words(late)
    assert words(quick) == "# Project"


def test_a_deaf_tool_of_a_sequential_batch_holds_nobody_up():
    """It is cancelled, and the calls behind it are skipped."""
    from pi_course.abort import AbortController

    controller = AbortController()

    async def execute(context, path):
        controller.abort()
        await asyncio.Event().wait()

    played = play(
        [reply(call("a", name="deaf"), call("b"))],
        tool(execute, "deaf"),
        says(sequential=True),
        signal=controller.signal,
        grace_seconds=0.01,
    )
    assert played.told[1:] == ["ToolStart", "ToolEnd", "ToolSkipped", "LoopEnd"]
    assert played.results[1].details["reason"] == "aborted"


def test_the_grace_is_two_seconds():
    """A tool has two seconds to hear the signal, unless the caller says otherwise."""
    from pi_course.agent_loop import run_agent_loop
    from pi_course.grace import GRACE_SECONDS

    signal, listen = aborting(is_a("ToolStart"))
    defaults = inspect.signature(run_agent_loop).parameters
    assert play([reply(call())], says(), signal=signal, on_event=listen).reason == "aborted"
    assert GRACE_SECONDS == defaults["grace_seconds"].default == 2.0
    assert defaults["max_steps"].default == 32


def test_without_an_abort_a_tool_has_all_the_time():
    """The grace begins with the abort: with none of it, a tool still runs to its end."""

    async def execute(context, path):
        for _ in range(20):
            await asyncio.sleep(0)
        return "at last"

    played = play([reply(call()), reply("ok")], tool(execute), grace_seconds=0)
    assert [words(found) for found in played.results] == ["at last"]


def test_an_abort_may_meet_the_end_of_a_reply():
    """However many turns of the event loop lie between the two, nothing is raised elsewhere."""
    from pi_course.scripted_model import events_of

    class Ending:
        def __init__(self, ticks):
            self.ticks = ticks

        async def __aiter__(self):
            for event in events_of(reply("Hello")):
                yield event

        async def result(self):
            for _ in range(self.ticks):
                await asyncio.sleep(0)
            return reply("Hello")

    for ticks in range(8):
        signal, listen = aborting(is_a("ModelEventSeen:done"))
        model = Model(lambda context, signal, ticks=ticks: Ending(ticks))
        played = play(model, signal=signal, on_event=listen)
        assert (played.reason, [words(message) for message in played.new]) == ("aborted", ["Hello"])


def test_a_model_that_does_not_listen_is_cancelled_too():
    """The reply keeps what had come, its calls are skipped, the run ends as aborted."""
    signal, listen = aborting(is_a("ModelEventSeen:toolcall_delta"))
    played = play(streaming(*half_a_call()), signal=signal, on_event=listen, grace_seconds=0.01)
    broken = played.new[0]
    assert (played.reason, words(broken), broken.stop_reason) == ("aborted", "I look.", "aborted")
    assert broken.error_message == "aborted: stop button"
    assert [found.details["reason"] for found in played.results] == ["aborted", "aborted"]


def test_a_model_that_says_nothing_is_cancelled_too():
    """Nothing had come, so there is no reply to keep."""
    from pi_course.abort import AbortController

    controller = AbortController()
    model = streaming(end=lambda stream: controller.abort())
    played = play(model, signal=controller.signal, grace_seconds=0.01)
    assert (played.reason, played.steps, played.new) == ("aborted", 1, ())


def test_a_tool_that_cannot_be_cancelled_is_given_up():
    """Its call has a result all the same; what it says later is dropped."""
    from pi_course.abort import AbortController

    controller, let_go = AbortController(), asyncio.Event()
    tasks, late = [], []

    async def execute(call, registry, context):
        tasks.append(asyncio.current_task())
        controller.abort()
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        context.report_progress("too late")
        return result_of(call, "too late")

    async def main():
        from pi_course.agent_loop import run_agent_loop
        from pi_course.messages import AgentContext, unpaired_calls
        from pi_course.tool import ToolRegistry

        events = []
        result = await run_agent_loop(
            model=played_by([reply(call())]),
            tools=ToolRegistry([says()]),
            context=AgentContext([user()]),
            signal=controller.signal,
            on_event=events.append,
            execute_tool_call=execute,
            grace_seconds=0.01,
        )
        seen = len(events)
        let_go.set()
        await asyncio.wait(set(tasks))
        late.extend(events[seen:])
        return result.reason, unpaired_calls(result.messages), result.messages[2].is_error

    assert run(main()) == ("aborted", [], True)
    assert late == []


def test_progress_after_the_end_of_a_call_is_dropped():
    """A tool left a callback behind: its call is over, so nothing is told any more."""
    # Pi, report 5573
    reports = []

    async def execute(call, registry, context):
        reports.append(context.report_progress)
        context.report_progress("in time")
        return result_of(call)

    def turn(context):
        for report in reports:
            report("too late")
        return reply("ok")

    played = play([reply(call()), turn], execute_tool_call=execute)
    progress = [event.content[0].text for event in played.events if kind(event) == "ToolProgress"]
    assert progress == ["in time"]


def test_an_abort_from_another_thread_is_heard():
    """abort() is called where no event loop runs, while a tool waits for the signal."""
    from pi_course.abort import AbortController

    controller = AbortController()
    waiting = threading.Event()

    async def execute(context, path):
        waiting.set()
        await context.signal.wait()
        return "stopped"

    def stop():
        waiting.wait(2)
        controller.abort("from a thread")

    thread = threading.Thread(target=stop)
    thread.start()
    played = play([reply(call()), reply("never")], tool(execute), signal=controller.signal)
    thread.join()
    assert (played.reason, words(played.results[0])) == ("aborted", "stopped")


def test_before_tool_call_is_not_asked_after_an_abort():
    """The first question was answered by an abort: there is no second one, and nothing runs."""
    # Pi, report 4276
    from pi_course.abort import AbortController
    from pi_course.agent_loop import LoopHooks

    controller, asked = AbortController(), []

    async def before_tool_call(call):
        asked.append(call.id)
        controller.abort()
        await asyncio.sleep(0)
        return call

    read, paths = counting()
    hooks = LoopHooks(before_tool_call=before_tool_call)
    played = play([reply(call("a"), call("b"))], read, signal=controller.signal, hooks=hooks)
    assert (asked, paths) == (["a"], [])
    assert played.told[1:] == ["ToolSkipped", "ToolSkipped", "LoopEnd"]


def test_max_steps_ends_the_run_after_the_last_batch():
    """Two requests are allowed: the second reply's call still runs and its result is kept."""
    script = [reply(call("a")), reply(call("b")), reply("never")]
    played = play(script, says(), max_steps=2)
    assert (played.reason, played.steps, len(played.requests)) == ("max_steps", 2, 2)
    assert [found.tool_call_id for found in played.results] == ["a", "b"]
    assert [found.is_error for found in played.results] == [False, False]


def test_a_stop_at_the_limit_is_a_stop():
    """The last allowed reply is a text: nothing was cut short."""
    played = play([reply(call("a")), reply("done")], says(), max_steps=2)
    assert (played.reason, played.steps) == ("stop", 2)


def test_an_abort_at_the_limit_is_an_abort():
    """Both hold after the last batch: the abort is what a person wanted."""
    signal, listen = aborting(is_a("ToolEnd"))
    played = play([reply(call())], says(), signal=signal, on_event=listen, max_steps=1)
    assert (played.reason, played.steps) == ("aborted", 1)


def test_no_message_is_taken_that_nobody_would_answer():
    """At the limit the queue is not asked: what it holds stays with its owner."""
    from pi_course.agent_loop import LoopHooks

    asked = []

    def next_messages(moment):
        asked.append(moment)
        return []

    hooks = LoopHooks(next_messages=next_messages)
    assert play([reply("done")], hooks=hooks, max_steps=1).reason == "stop"
    assert play([reply(call())], says(), hooks=hooks, max_steps=1).reason == "max_steps"
    assert asked == ["request", "request"]


@pytest.mark.parametrize("error", [LookupError, asyncio.CancelledError])
def test_a_listener_that_raises_is_reported_once(error):
    """on_event raises at each event: the run is as without it, and the report comes once."""
    from pi_course.agent_loop import run_agent_loop
    from pi_course.messages import AgentContext
    from pi_course.scripted_model import ScriptedModel
    from pi_course.tool import ToolRegistry

    seen, reports = [], []

    def listen(event):
        seen.append(kind(event))
        raise error("the screen is gone")

    async def main():
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, problem: reports.append((problem["message"], problem["exception"]))
        )
        return await run_agent_loop(
            model=ScriptedModel([reply(call()), reply("ok")]),
            tools=ToolRegistry([says()]),
            context=AgentContext([user()]),
            on_event=listen,
        )

    result = run(main())
    assert (result.reason, len(result.messages)) == ("stop", 4)
    assert seen[-1] == "LoopEnd"
    assert [str(error) for _, error in reports] == ["the screen is gone"]
    assert reports[0][0].startswith("on_event raised")


def test_an_interrupt_in_mid_reply_settles_first():
    """What had come is saved as aborted, calls are skipped, then the cancellation goes on."""
    from pi_course.messages import unpaired_calls

    asks = reply("I look.", call("a"), "more")
    cancelled, events = run(interrupted([asks], says(), until=is_a("ModelEventSeen:toolcall_end")))
    saved, skipped = transcript(events)
    assert cancelled is True
    assert (words(saved), saved.stop_reason, saved.error_message) == (
        "I look.",
        "aborted",
        "interrupted",
    )
    assert skipped.details["reason"] == "aborted"
    assert unpaired_calls([saved, skipped]) == []
    assert told(events)[-1] == "LoopEnd"
    assert events[-1].reason == "aborted"


def test_an_interrupt_before_the_reply_leaves_nothing():
    """Nothing had come, so there is nothing to save; the run has its end all the same."""
    from pi_course.agent_loop import LoopHooks

    asked = []

    async def before_request(request):
        asked.append(request)
        await asyncio.Event().wait()

    async def main():
        from pi_course.agent_loop import run_agent_loop
        from pi_course.messages import AgentContext
        from pi_course.tool import ToolRegistry

        events = []
        task = asyncio.create_task(
            run_agent_loop(
                model=played_by([]),
                tools=ToolRegistry(),
                context=AgentContext([user()]),
                on_event=events.append,
                hooks=LoopHooks(before_request=before_request),
            )
        )
        while not asked:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled(), told(events)

    assert run(main()) == (True, ["LoopEnd"])


def test_an_interrupt_during_tools_cancels_and_joins_them():
    """One call is over, two run, one waits: all have a result, and the tools are gone."""
    from pi_course.messages import unpaired_calls

    joined = []

    async def execute(context, path):
        try:
            if path != "quick":
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            joined.append(path)

    calls = [call("a", path="quick"), call("b", path="x"), call("c", path="y")]
    cancelled, events = run(interrupted([reply(*calls)], tool(execute), until=is_a("ToolEnd", "a")))
    messages = transcript(events)
    assert (cancelled, sorted(joined)) == (True, ["quick", "x", "y"])
    assert unpaired_calls(messages) == []
    assert [found.is_error for found in results(messages)] == [False, True, True]
    assert told(events) == [
        "AssistantMessageSaved",
        *["ToolStart"] * 3,
        *["ToolEnd"] * 3,
        "LoopEnd",
    ]


def test_an_interrupt_in_a_sequential_batch_skips_the_rest():
    """The call that runs ends, those behind it are skipped: no ToolStart after the interrupt."""
    asks = reply(call("a", name="deaf"), call("b"))
    cancelled, events = run(
        interrupted([asks], deaf("deaf"), says(sequential=True), until=is_a("ToolStart"))
    )
    assert cancelled is True
    assert told(events) == [
        "AssistantMessageSaved",
        "ToolStart",
        "ToolEnd",
        "ToolSkipped",
        "LoopEnd",
    ]
    assert events[-2].result.details["reason"] == "aborted"


def test_a_second_interrupt_does_not_tear_the_settling():
    """Impatience while a tool cleans up: it is still waited for, and each call has its result."""
    from pi_course.messages import unpaired_calls

    cleaning, joined = asyncio.Event(), []

    async def execute(context, path):
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            for _ in range(10):
                await asyncio.sleep(0)
            joined.append(context.call_id)

    async def again(task):
        await cleaning.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert task.done() is False

    cancelled, events = run(
        interrupted([reply(call())], tool(execute), until=is_a("ToolStart"), again=again)
    )
    assert (cancelled, joined) == (True, ["call_1"])
    assert unpaired_calls(transcript(events)) == []
    assert told(events)[-2:] == ["ToolEnd", "LoopEnd"]


def test_an_interrupt_after_an_abort_is_not_lost():
    """The tool is being cancelled after the grace when the interrupt comes: it still goes on."""
    from pi_course.abort import AbortController

    controller, cleaning = AbortController(), asyncio.Event()

    async def execute(context, path):
        controller.abort()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            for _ in range(10):
                await asyncio.sleep(0)

    async def main():
        from pi_course.agent_loop import run_agent_loop
        from pi_course.messages import AgentContext
        from pi_course.tool import ToolRegistry

        events = []
        task = asyncio.create_task(
            run_agent_loop(
                model=played_by([reply(call())]),
                tools=ToolRegistry([tool(execute)]),
                context=AgentContext([user()]),
                signal=controller.signal,
                on_event=events.append,
                grace_seconds=0.01,
            )
        )
        await cleaning.wait()
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled(), told(events)[-2:]

    assert run(main()) == (True, ["ToolEnd", "LoopEnd"])


def test_a_time_limit_around_the_loop_works():
    """asyncio.timeout cancels the task: the run settles, and the caller gets TimeoutError."""
    events, started = [], is_a("ToolStart")

    async def main():
        async def limited():
            async with asyncio.timeout(None) as limit:

                def listen(event):
                    events.append(event)
                    if started(event):
                        limit.reschedule(asyncio.get_running_loop().time())

                await loop([reply(call())], deaf("read"), on_event=listen)

        with pytest.raises(TimeoutError):
            await limited()
        return told(events), asyncio.current_task().cancelling()

    assert run(main()) == (["AssistantMessageSaved", "ToolStart", "ToolEnd", "LoopEnd"], 0)


def test_an_interrupt_from_before_is_heard():
    """A task that was told to stop at its next wait does so, although the run began later."""
    events = []

    async def main():
        async def stop_and_run():
            asyncio.current_task().cancel()
            await loop([reply("Hello")], on_event=events.append)

        task = asyncio.create_task(stop_and_run())
        await asyncio.wait({task})
        return task.cancelled(), told(events)[-1:]

    assert run(main()) == (True, ["LoopEnd"])


def test_an_interrupt_that_somebody_caught_is_over():
    """An old cancellation of the same task says nothing about this run."""

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await loop([reply(call()), reply("ok")], says())

    async def main():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    played = run(main())
    assert (played.reason, played.steps, words(played.results[0])) == ("stop", 2, "# Project")


def test_after_the_end_nothing_is_told_and_nothing_runs():
    """A tool that could not be cancelled ends at last: the call behind it stays skipped."""
    from pi_course.abort import AbortController
    from pi_course.agent_loop import LoopHooks

    let_go, tasks, asked, ran, told_late = asyncio.Event(), [], [], [], []

    async def before_tool_call(call):
        asked.append(call.id)
        return call

    async def execute(call, registry, context):
        ran.append(call.id)
        tasks.append(asyncio.current_task())
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        return result_of(call)

    async def main():
        from pi_course.agent_loop import run_agent_loop
        from pi_course.messages import AgentContext
        from pi_course.tool import ToolRegistry

        events = []

        def listen(event):
            events.append(event)
            if kind(event) == "ToolStart":
                task.cancel()

        task = asyncio.create_task(
            run_agent_loop(
                model=played_by([reply(call("a"), call("b"))]),
                tools=ToolRegistry([says(sequential=True)]),
                context=AgentContext([user()]),
                signal=AbortController().signal,
                on_event=listen,
                execute_tool_call=execute,
                hooks=LoopHooks(before_tool_call=before_tool_call),
                grace_seconds=0.01,
            )
        )
        await asyncio.wait({task})
        seen = len(events)
        let_go.set()
        await asyncio.wait(set(tasks))
        told_late.extend(told(events[seen:]))
        return task.cancelled(), told(events[:seen])

    assert run(main()) == (
        True,
        ["AssistantMessageSaved", "ToolStart", "ToolEnd", "ToolSkipped", "LoopEnd"],
    )
    assert (told_late, asked, ran) == ([], ["a"], ["a"])


def test_an_interrupted_call_does_not_start_later():
    """A hook that can't be cancelled allows the call when all is over: it does not run any more."""
    from pi_course.abort import AbortController
    from pi_course.agent_loop import LoopHooks

    let_go, tasks, ran, events = asyncio.Event(), [], [], []

    async def before_tool_call(call):
        tasks.append(asyncio.current_task())
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        return call

    async def execute(context, path):
        ran.append(path)
        return "too late"

    async def main():
        task = asyncio.create_task(
            loop(
                [reply(call())],
                tool(execute),
                signal=AbortController().signal,
                on_event=events.append,
                hooks=LoopHooks(before_tool_call=before_tool_call),
                grace_seconds=0.01,
            )
        )
        while not tasks:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        let_go.set()
        await asyncio.wait(set(tasks))
        return task.cancelled()

    assert run(main()) is True
    assert told(events) == ["AssistantMessageSaved", "ToolSkipped", "LoopEnd"]
    assert ran == []


def test_an_interrupt_aborts_the_loops_own_signal():
    """Without a signal of the caller nobody else could stop the model's own task."""
    model = Model(None)
    inner = played_by([reply("Hello")])
    model._stream = lambda context, signal: inner.stream(context, signal=signal)
    cancelled, _ = run(interrupted(model, until=is_a("ModelEventSeen:start")))
    assert cancelled is True
    assert [(signal.aborted, signal.reason) for signal in model.signals] == [(True, "interrupted")]


# Lab 7.5: every script, an abort at every event, an interrupt at every event


def script_tools():
    async def good(context, path):
        context.report_progress("on it")
        await asyncio.sleep(0)
        return "ok"

    async def bad(context, path):
        raise LookupError("no such thing")

    async def patient(context, path):
        for _ in range(20):
            if context.signal.aborted:
                return "stopped"
            await asyncio.sleep(0)
        return "ok"

    return [tool(good, "good"), tool(bad, "bad"), tool(patient, "patient")]


def turns():
    from pi_course.scripted_model import ScriptedFailure

    def ask(*names, **options):
        return reply("x", *(call(f"{name}_1", name=name) for name in names), **options)

    return {
        "text": reply("x"),
        "good": ask("good"),
        "bad": ask("bad", "nobody"),
        "patient": ask("good", "patient", "good"),
        "length": ask("good", "bad", stop_reason="length"),
        "stop": ask("good", stop_reason="stop"),
        "nothing": reply("x", stop_reason="toolUse"),
        "failure": ScriptedFailure("error", "line lost", "He"),
    }


SCRIPTS = [
    ["text"],
    ["length"],
    ["stop"],
    ["nothing"],
    ["failure"],
    ["good", "text"],
    ["bad", "failure"],
    ["patient", "text"],
    ["good", "patient"],
    ["patient", "length"],
]


@pytest.mark.parametrize("names", SCRIPTS, ids="-".join)
def test_each_call_has_its_result_wherever_the_abort_comes(names):
    """This script, aborted at its first event, its second, and so on to the last."""
    from pi_course.abort import AbortController

    made, tools = turns(), script_tools()
    script = [made[name] for name in names]
    aborted = 0

    async def main():
        nonlocal aborted
        for number in itertools.count(1):
            controller, left = AbortController(), number

            def listen(event, controller=controller):
                nonlocal left
                left -= 1
                if left == 0:
                    controller.abort()

            signal = controller.signal
            played = await loop(script, *tools, signal=signal, on_event=listen, max_steps=3)
            aborted += played.reason == "aborted"
            if left > 0:
                return number

    assert run(main()) > 1
    assert aborted >= 1


@pytest.mark.parametrize("names", SCRIPTS, ids="-".join)
def test_each_call_has_its_result_wherever_the_interrupt_comes(names):
    """The task is cancelled at the first event, the second, and so on: it settles and goes on."""
    from pi_course.messages import unpaired_calls

    made, tools = turns(), script_tools()
    script = [made[name] for name in names]

    async def main():
        for number in itertools.count(1):
            left = number

            def until(event):
                nonlocal left
                left -= 1
                return left == 0

            cancelled, events = await interrupted(script, *tools, until=until, max_steps=3)
            messages = transcript(events)
            ids = [found.tool_call_id for found in results(messages)]
            assert (number, cancelled) == (number, left <= 0)
            assert (number, told(events).count("LoopEnd")) == (number, 1)
            assert (number, kind(events[-1])) == (number, "LoopEnd")
            assert (number, unpaired_calls(messages)) == (number, [])
            assert (number, len(set(ids))) == (number, len(ids))
            if left > 0:
                return number

    assert run(main()) > 1
