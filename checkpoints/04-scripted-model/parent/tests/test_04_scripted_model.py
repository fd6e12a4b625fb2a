"""Chapter 04: a model that plays a script, and a conversation with it."""

import asyncio
import contextlib
import gc
import json
import threading
import weakref
from dataclasses import FrozenInstanceError
from itertools import groupby
from pathlib import Path

import pytest

HANGS = "nothing arrived within 1 s: does each stream end with Done or Error?"


def run(coro, sentence=HANGS, seconds=1, debug=False):
    async def limited():
        try:
            return await asyncio.wait_for(coro, seconds)
        except TimeoutError:
            raise AssertionError(sentence) from None

    return asyncio.run(limited(), debug=debug)


def say(value, stop_reason="stop", **overrides):
    from pi_course.messages import assistant_message, text

    return assistant_message([text(value)], stop_reason, **{"timestamp": 1010, **overrides})


def readme():
    """A text and a call, as in chapter 03."""
    from pi_course.messages import ToolCall, Usage, assistant_message, text

    call = ToolCall(id="call_1", name="read", arguments={"path": "README.md"})
    return assistant_message(
        [text("The README should say."), call],
        "toolUse",
        usage=Usage(input=18, output=12, total_tokens=30),
        timestamp=1010,
    )


def asking(*texts):
    from pi_course.messages import AgentContext, user_message

    return AgentContext([user_message(value) for value in texts])


def trace(message, chunk_size=None):
    from pi_course.scripted_model import events_of

    return list(events_of(message, chunk_size))


async def play(model, context=None, signal=None):
    """All events of one reply, and its result."""
    stream = model.stream(context or asking("go on"), signal=signal)
    events = [event async for event in stream]
    return events, await stream.result()


def types(events):
    return [event.type for event in events]


def words(message):
    from pi_course.messages import text_of

    return text_of(message)


async def each(events):
    for event in events:
        yield event


def screen(stream):
    """What render_stream writes, and what it returns."""
    from pi_course.chat import render_stream

    written = []
    message = run(render_stream(stream, written.append))
    return written, message


# Lab 4.1: from a final message to its events


def test_text_and_call_become_five_events():
    """A message with a text and a call: start, text_delta, toolcall_delta, toolcall_end, done."""
    assert [
        (event.type, getattr(event, "content_index", None), getattr(event, "delta", None))
        for event in trace(readme())
    ] == [
        ("start", None, None),
        ("text_delta", 0, "The README should say."),
        ("toolcall_delta", 1, '{"path":"README.md"}'),
        ("toolcall_end", 1, None),
        ("done", None, None),
    ]


def test_start_shows_an_empty_reply():
    """Start's partial has no content, no usage and the stop reason "stop"; the rest is known."""
    from pi_course.messages import EMPTY_USAGE, assistant_message

    message = readme().model_copy(update={"provider": "p", "model": "m", "error_message": "late"})
    start = trace(message)[0]
    assert start.partial == assistant_message(
        [], "stop", provider="p", model="m", usage=EMPTY_USAGE, timestamp=1010
    )


def test_a_call_shows_its_raw_text_until_it_ends():
    """toolcall_delta: arguments {} and the raw text so far. toolcall_end: the call as it is."""
    message = readme()
    text_block, call = message.content
    _, _, delta, end, _ = trace(message)
    growing = call.model_copy(update={"arguments": {}, "raw_arguments": '{"path":"README.md"}'})
    assert delta.partial.content == (text_block, growing)
    assert (end.tool_call, end.partial.content) == (call, message.content)


@pytest.mark.parametrize("raw", ['{ "path": "a" }', '{"pa', ""], ids=["spaced", "cut", "empty"])
def test_raw_arguments_are_sent_as_they_came(raw):
    """A call that has raw_arguments sends them, not its arguments written anew."""
    from pi_course.messages import ToolCall, assistant_message

    call = ToolCall(id="c", name="read", arguments={"path": "a"}, raw_arguments=raw)
    events = trace(assistant_message([call], "toolUse"))
    assert [event.delta for event in events if event.type == "toolcall_delta"] == [raw]
    assert events[-2].tool_call == call


def test_arguments_are_written_as_compact_json():
    """The arguments' JSON keeps its order, has no spaces between parts; text stays readable."""
    from pi_course.messages import ToolCall, assistant_message

    arguments = {"text": "\u4f60\u597d", "a": [1, {"z": None, "b": True}]}
    call = ToolCall(id="c", name="write", arguments=arguments)
    delta = trace(assistant_message([call], "toolUse"))[1].delta
    assert delta == '{"text":"\u4f60\u597d","a":[1,{"z":null,"b":true}]}'
    assert json.loads(delta) == arguments


def test_text_comes_in_pieces():
    """With a chunk size of 2, "Hello" comes as He, ll, o; without one, a text comes whole."""
    deltas = [event.delta for event in trace(say("Hello"), 2) if event.type == "text_delta"]
    assert deltas == ["He", "ll", "o"]
    assert trace(say("one\ntwo three"))[1].delta == "one\ntwo three"


def test_arguments_come_in_pieces_and_end_once():
    """The chunk size cuts a call's JSON too; one toolcall_end comes after the last piece."""
    events = trace(readme(), 8)[4:-1]
    assert [(event.type, getattr(event, "delta", None)) for event in events] == [
        ("toolcall_delta", '{"path":'),
        ("toolcall_delta", '"README.'),
        ("toolcall_delta", 'md"}'),
        ("toolcall_end", None),
    ]
    assert [event.partial.content[1].raw_arguments for event in events] == [
        '{"path":',
        '{"path":"README.',
        '{"path":"README.md"}',
        None,
    ]


def test_each_partial_is_the_message_of_its_moment():
    """A partial shows what had come by then, and still shows only that when all is over."""
    from pi_course.scripted_model import events_of

    events, then = [], []
    for event in events_of(say("Hello"), 2):
        events.append(event)
        then.append(words(event.message if event.type == "done" else event.partial))
    assert then == ["", "He", "Hell", "Hello", "Hello"]
    assert [words(event.partial) for event in events[:-1]] == ["", "He", "Hell", "Hello"]


def test_content_index_is_the_blocks_place():
    """Blocks come one after another; a partial holds the finished ones and the open one."""
    from pi_course.messages import ToolCall, assistant_message, text

    first = ToolCall(id="a", name="read", arguments={})
    last = ToolCall(id="b", name="read", arguments={})
    events = trace(assistant_message([first, text("then"), last], "toolUse"))[1:-1]
    assert [(event.type, event.content_index) for event in events] == [
        ("toolcall_delta", 0),
        ("toolcall_end", 0),
        ("text_delta", 1),
        ("toolcall_delta", 2),
        ("toolcall_end", 2),
    ]
    assert events[2].partial.content == (first, text("then"))


def test_an_empty_block_has_one_empty_piece():
    """An empty text is still a block: one delta "". A message without blocks is start, done."""
    from pi_course.messages import assistant_message

    assert [getattr(event, "delta", None) for event in trace(say(""), 1)] == [None, "", None]
    assert types(trace(assistant_message([]))) == ["start", "done"]


@pytest.mark.parametrize("reason", ["stop", "length", "toolUse"])
def test_done_carries_that_very_message(reason):
    """A message that ended well ends in Done with the same object and its reason."""
    message = say("ok", reason)
    end = trace(message)[-1]
    assert (end.type, end.reason, end.message is message) == ("done", reason, True)


@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_a_failed_message_ends_in_error(reason):
    """A message that failed is played as far as it goes; Error carries the same object."""
    message = say("half", reason, error_message="line lost")
    events = trace(message)
    assert types(events) == ["start", "text_delta", "error"]
    assert (events[-1].reason, events[-1].error is message) == (reason, True)
    with_call = trace(readme().model_copy(update={"stop_reason": reason}))
    assert types(with_call) == ["start", "text_delta", "toolcall_delta", "toolcall_end", "error"]


# Lab 4.2: the signal


def test_a_new_signal_is_quiet():
    """Before abort(): not aborted, no reason, and raise_if_aborted() lets pass."""
    from pi_course.abort import AbortController

    signal = AbortController().signal
    assert (signal.aborted, signal.reason, signal.raise_if_aborted()) == (False, None, None)


def test_abort_shows_on_the_one_signal():
    """The controller has one signal, and abort() shows on it with its reason."""
    from pi_course.abort import AbortController

    controller = AbortController()
    signal = controller.signal
    controller.abort("stop button")
    assert (signal.aborted, signal.reason) == (True, "stop button")
    assert controller.signal is signal


def test_who_holds_the_signal_can_only_look():
    """The signal has no abort(), and its two properties can't be set: only the controller stops."""
    from pi_course.abort import AbortController

    signal = AbortController().signal
    assert hasattr(signal, "abort") is False
    for name in ("aborted", "reason"):
        with pytest.raises(AttributeError):
            setattr(signal, name, True)
    assert (signal.aborted, signal.reason) == (False, None)


@pytest.mark.parametrize(
    "first", ["stop button", None, "", 0], ids=["text", "none", "empty", "zero"]
)
def test_the_first_reason_stays(first):
    """A second abort() changes nothing, whatever the first reason was."""
    from pi_course.abort import AbortController

    controller = AbortController()
    controller.abort(first)
    controller.abort("late")
    assert (controller.signal.aborted, controller.signal.reason) == (True, first)


def test_abort_needs_no_reason():
    """abort() alone will do; the reason is then None."""
    from pi_course.abort import AbortController

    controller = AbortController()
    controller.abort()
    assert (controller.signal.aborted, controller.signal.reason) == (True, None)


@pytest.mark.parametrize(
    ("reason", "message"),
    [(None, "aborted"), ("stop button", "aborted: stop button"), (0, "aborted: 0")],
    ids=["no-reason", "reason", "zero"],
)
def test_raise_if_aborted_says_why(reason, message):
    """After abort() it raises Aborted, a PiError whose text holds the reason."""
    from pi_course.abort import AbortController, Aborted
    from pi_course.errors import PiError

    controller = AbortController()
    controller.abort(reason)
    with pytest.raises(Aborted) as raised:
        controller.signal.raise_if_aborted()
    assert (str(raised.value), isinstance(raised.value, PiError)) == (message, True)


def test_wait_returns_at_once_after_abort():
    """Who waits on a signal that is aborted already does not wait."""
    from pi_course.abort import AbortController

    controller = AbortController()
    controller.abort()
    assert run(controller.signal.wait(), "wait() hangs, though abort() came before it") is None


def test_abort_wakes_everybody_who_waits():
    """Three tasks wait on one signal: none returns before abort(), all return after it."""
    from pi_course.abort import AbortController

    async def main():
        controller = AbortController()
        tasks = [asyncio.create_task(controller.signal.wait()) for _ in range(3)]
        for _ in range(3):
            await asyncio.sleep(0)
        early = [task.done() for task in tasks]
        controller.abort()
        return early, await asyncio.gather(*tasks)

    assert run(main(), "wait() still waits 1 s after abort()") == ([False] * 3, [None] * 3)


def woken_in_threads(controller, count, press):
    """What `count` waiters say, each in a thread and a loop of its own, when press() is called."""
    all_wait = threading.Barrier(count + 1, timeout=1)
    said = ["still waits"] * count

    async def waiting():
        task = asyncio.create_task(controller.signal.wait())
        await asyncio.sleep(0)
        all_wait.wait()
        await task
        return "woken"

    def thread(place):
        try:  # in debug mode asyncio refuses calls that come from another thread
            said[place] = run(waiting(), "still waits", debug=True)
        except (AssertionError, RuntimeError) as error:
            said[place] = str(error)

    # Daemons: a loop that was woken by an unsafe call may hang for ever.
    threads = [threading.Thread(target=thread, args=[n], daemon=True) for n in range(count)]
    for one in threads:
        one.start()
    all_wait.wait()
    press()
    for one in threads:
        one.join(1.5)
    return said


def test_abort_from_another_thread_wakes_the_loop():
    """A loop sleeps in wait(), another thread calls abort(): it wakes the loop, by a safe call."""
    from pi_course.abort import AbortController

    controller = AbortController()
    raised = []

    def press():
        try:
            controller.abort("thread")
        except Exception as error:
            raised.append(repr(error))

    said = woken_in_threads(controller, 1, press)
    assert (raised, said, controller.signal.reason) == ([], ["woken"], "thread")


def test_abort_wakes_two_loops_in_two_threads():
    """Two threads wait, each in a loop of its own: an abort() in a third loop wakes both."""
    from pi_course.abort import AbortController

    controller = AbortController()

    async def stopping():
        controller.abort()

    said = woken_in_threads(controller, 2, lambda: run(stopping()))
    assert said == ["woken", "woken"]


def test_waiting_for_the_signal_costs_no_turns():
    """Who waits sleeps: it takes no turn of the loop and sets no timer until abort() wakes it."""
    from pi_course.abort import AbortController

    async def main():
        counts = {"call_soon": 0, "call_at": 0}
        loop = asyncio.get_running_loop()
        plain = {name: getattr(loop, name) for name in counts}

        def counted(name):
            def call(*args, **options):
                counts[name] += 1
                return plain[name](*args, **options)

            return call

        controller = AbortController()
        loop.call_at = counted("call_at")  # call_later() uses it, and so does asyncio.sleep()
        task = asyncio.create_task(controller.signal.wait())
        for _ in range(3):
            await asyncio.sleep(0)
        loop.call_soon = counted("call_soon")
        await asyncio.sleep(0.05)  # one timer, and its end is one turn
        asleep = counts["call_soon"] <= 2 and counts["call_at"] == 1
        for name, method in plain.items():
            setattr(loop, name, method)
        controller.abort()
        await task
        return "asleep" if asleep else "asks again and again: await a future that abort() sets"

    assert run(main(), "wait() still waits 1 s after abort()") == "asleep"


def test_a_cancelled_waiter_leaves_the_others_alone():
    """Cancelling one task that waits neither aborts the signal nor breaks a later abort()."""
    from pi_course.abort import AbortController

    async def main():
        controller = AbortController()
        first, second = (asyncio.create_task(controller.signal.wait()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        early = controller.signal.aborted, second.done()
        controller.abort()
        return early, await second, first.cancelled()

    assert run(main(), "wait() still waits 1 s after abort()") == ((False, False), None, True)


def test_an_abort_and_a_cancellation_may_meet():
    """A waiter that is cancelled right after abort() is cancelled, and the loop sees no error."""
    from pi_course.abort import AbortController

    async def main():
        problems = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, problem: problems.append(problem["message"]))
        controller = AbortController()
        task = asyncio.create_task(controller.signal.wait())
        await asyncio.sleep(0)
        controller.abort()
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(0)
        return problems, task.cancelled()

    assert run(main()) == ([], True)


def test_a_signal_keeps_nothing_of_a_wait_that_is_over():
    """A long run waits on its signal many times; what has stopped waiting is forgotten."""
    from pi_course.abort import AbortController

    made = []

    async def main():
        loop = asyncio.get_running_loop()
        create = loop.create_future

        def noted():
            future = create()
            made.append(weakref.ref(future))
            return future

        loop.create_future = noted
        signal = AbortController().signal
        for _ in range(20):
            task = asyncio.create_task(signal.wait())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
        del task
        gc.collect(0)
        return sum(future() is not None for future in made), signal.aborted

    kept, aborted = run(main())
    assert (kept < 10, aborted) == (True, False)


def test_abort_passes_over_a_loop_that_is_closed():
    """A waiter whose loop was closed can't be woken: abort() passes it over and wakes the rest."""
    from pi_course.abort import AbortController

    controller = AbortController()
    gone = asyncio.new_event_loop()
    gone.set_exception_handler(lambda *_: None)
    forgotten = [gone.create_task(controller.signal.wait()) for _ in range(3)]
    gone.run_until_complete(asyncio.sleep(0))
    gone.close()

    async def main():
        tasks = [asyncio.create_task(controller.signal.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        controller.abort()
        return await asyncio.gather(*tasks)

    assert run(main(), "wait() still waits 1 s after abort()") == [None] * 3
    assert [task.done() for task in forgotten] == [False] * 3


# Lab 4.2: the model


@pytest.mark.parametrize("chunk_size", [None, 4])
def test_a_turn_is_played_as_its_trace(chunk_size):
    """The stream yields the events of lab 4.1, and its result is the scripted message itself."""
    from pi_course.scripted_model import ScriptedModel

    message = readme()
    events, result = run(play(ScriptedModel([message], chunk_size=chunk_size)))
    assert events == trace(message, chunk_size)
    assert result is message


def test_the_result_needs_no_reader():
    """result() gives the message though nobody iterates."""
    from pi_course.scripted_model import ScriptedModel

    async def main():
        return await ScriptedModel([say("ok")]).stream(asking("go")).result()

    assert run(main()) == say("ok")


def test_requests_keep_what_was_passed():
    """A request is noted at the call, as it was then; the caller's list may grow afterwards."""
    from pi_course.messages import AgentContext, user_message
    from pi_course.scripted_model import ScriptedModel

    async def main():
        model = ScriptedModel([say("1"), say("2")])
        messages = [user_message("first")]
        await play(model, AgentContext(messages))
        messages.append(user_message("second"))
        context = AgentContext(messages)
        stream = model.stream(context)
        noted = len(model.requests), model.requests[-1] is context
        await stream.result()
        return noted, model.requests

    noted, requests = run(main())
    assert noted == (2, True)
    assert [[words(message) for message in request.messages] for request in requests] == [
        ["first"],
        ["first", "second"],
    ]


def test_each_call_takes_the_next_turn():
    """Turns go to calls in the order of the calls, also when two streams are open at once."""
    from pi_course.scripted_model import ScriptedModel

    async def main():
        turns = [say("one"), say("two"), say("three")]
        model = ScriptedModel(turns)
        turns.clear()
        streams = [model.stream(asking("go")) for _ in range(3)]
        return [words(await stream.result()) for stream in reversed(streams)]

    assert run(main()) == ["three", "two", "one"]


def test_a_turn_may_be_a_function_of_the_context():
    """A function gets the context of its call and returns the message or the failure to play."""
    from pi_course.scripted_model import ScriptedFailure, ScriptedModel

    async def main():
        model = ScriptedModel(
            [
                lambda context: say(f"{len(context.messages)} messages"),
                lambda context: ScriptedFailure("error", words(context.messages[0])),
            ]
        )
        _, first = await play(model, asking("a", "b"))
        _, second = await play(model, asking("too long"))
        return words(first), second.error_message

    assert run(main()) == ("2 messages", "too long")


def test_a_function_that_raises_is_an_error_event():
    """What a turn raises travels inside the stream: one Error that names the exception."""
    from pi_course.scripted_model import ScriptedModel

    def broken(context):
        raise KeyError("reply")

    events, result = run(play(ScriptedModel([broken])))
    assert types(events) == ["error"]
    assert (result.stop_reason, result.content) == ("error", ())
    assert result.error_message == "KeyError: 'reply'"


def test_what_is_raised_in_mid_reply_keeps_what_had_come():
    """Raised after half a reply: an Error event that keeps the partial, and nobody hangs."""
    from pi_course.scripted_model import ScriptedModel

    async def sleep(seconds):
        paused.append(seconds)
        if len(paused) == 2:
            raise ConnectionError("line lost")

    paused = []
    events, result = run(play(ScriptedModel([say("Hello")], chunk_size=2, sleep=sleep)))
    assert types(events) == ["start", "text_delta", "error"]
    assert (words(result), result.stop_reason) == ("He", "error")
    assert result.error_message == "ConnectionError: line lost"


@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_a_failing_turn_keeps_its_partial_text(reason):
    """start, text_delta, error; the result has the text, the reason and the message."""
    from pi_course.scripted_model import ScriptedFailure, ScriptedModel

    events, result = run(play(ScriptedModel([ScriptedFailure(reason, "line lost", "Hel")])))
    assert types(events) == ["start", "text_delta", "error"]
    assert events[-1].error is result
    assert (words(result), result.stop_reason, result.error_message) == ("Hel", reason, "line lost")


def test_a_failing_turn_without_text():
    """start, error; no block is made for a text that never came."""
    from pi_course.scripted_model import ScriptedFailure, ScriptedModel

    events, result = run(play(ScriptedModel([ScriptedFailure("error", "no network")])))
    assert types(events) == ["start", "error"]
    assert (result.content, result.error_message) == ((), "no network")


def test_a_failure_is_a_value():
    """ScriptedFailure is frozen and slotted, compares by value, and its text is optional."""
    from pi_course.scripted_model import ScriptedFailure

    failure = ScriptedFailure("error", "line lost")
    assert failure == ScriptedFailure(
        stop_reason="error", error_message="line lost", partial_text=""
    )
    assert hasattr(failure, "__dict__") is False
    with pytest.raises(FrozenInstanceError):
        failure.error_message = "other"


def test_an_exhausted_script_is_one_error():
    """A call without a turn yields exactly one event, an Error that names the call's number."""
    from pi_course.scripted_model import ScriptedModel

    async def main():
        model = ScriptedModel([say("only")])
        await play(model)
        return await play(model), await play(model), len(model.requests)

    (events, result), (_, again), requests = run(main())
    assert (types(events), requests) == (["error"], 3)
    assert (result.stop_reason, result.content) == ("error", ())
    assert result.error_message == "call 2 has no turn: the script ends after turn 1"
    assert again.error_message == "call 3 has no turn: the script ends after turn 1"


@pytest.mark.parametrize("when", ["before", "right-after"])
def test_an_aborted_signal_gives_one_error_and_asks_nobody(when):
    """Aborted before the first event: one Error, reason aborted; a function turn is not called."""
    from pi_course.abort import AbortController
    from pi_course.scripted_model import ScriptedModel

    asked = []

    async def main():
        controller = AbortController()
        model = ScriptedModel([asked.append])
        if when == "before":
            controller.abort("too late")
        stream = model.stream(asking("go on"), signal=controller.signal)
        controller.abort("too late")
        return [event async for event in stream], await stream.result()

    events, result = run(main())
    assert (types(events), events[0].reason, asked) == (["error"], "aborted", [])
    assert (result.content, result.error_message) == ((), "aborted: too late")


def test_an_aborted_call_is_a_call():
    """It is noted in requests and has used up its turn: the next call gets the second one."""
    from pi_course.abort import AbortController
    from pi_course.scripted_model import ScriptedModel

    async def main():
        controller = AbortController()
        controller.abort()
        model = ScriptedModel([say("one"), say("two")])
        await play(model, asking("a"), controller.signal)
        _, result = await play(model, asking("b"))
        return words(result), [words(request.messages[0]) for request in model.requests]

    assert run(main()) == ("two", ["a", "b"])


def test_abort_lands_between_any_two_events():
    """An abort at event k: what had come by k, then one Error that keeps the partial of k."""
    from pi_course.abort import AbortController
    from pi_course.scripted_model import ScriptedModel

    message = readme().model_copy(update={"provider": "p", "model": "m"})

    async def until(k):
        controller = AbortController()
        model = ScriptedModel([message], chunk_size=6)
        events = []
        async for event in model.stream(asking("go"), signal=controller.signal):
            events.append(event)
            if len(events) == k:
                controller.abort()
        return events

    whole = trace(message, 6)
    assert len(whole) == 11  # start, 4 pieces of text, 4 of the call, its end, done
    for k in range(1, len(whole)):
        events = run(until(k))
        assert events[:-1] == whole[:k]
        assert (events[-1].type, events[-1].reason) == ("error", "aborted")
        assert events[-1].error == whole[k - 1].partial.model_copy(
            update={"stop_reason": "aborted", "error_message": "aborted"}
        )


def test_abort_after_the_end_changes_nothing():
    """An abort that comes with the Done event comes too late."""
    from pi_course.abort import AbortController
    from pi_course.scripted_model import ScriptedModel

    async def main():
        controller = AbortController()
        events = []
        stream = ScriptedModel([say("ok")]).stream(asking("go"), signal=controller.signal)
        async for event in stream:
            events.append(event)
            if event.type == "done":
                controller.abort()
        return events, await stream.result()

    assert run(main()) == (trace(say("ok")), say("ok"))


def test_events_are_made_as_they_are_read():
    """The model gives way after each event: the reader has it before the next one is made."""
    from pi_course.scripted_model import ScriptedModel

    log = []

    class Probe:
        reason = None

        @property
        def aborted(self):
            log.append("look at the signal")
            return False

    async def main():
        model = ScriptedModel([say("Hi")], chunk_size=1)
        async for event in model.stream(asking("go"), signal=Probe()):
            log.append(event.type)

    run(main())
    assert [kind for kind, _ in groupby(log)] == [
        *("look at the signal", "start"),
        *("look at the signal", "text_delta"),
        *("look at the signal", "text_delta"),
        *("look at the signal", "done"),
    ]


@pytest.mark.parametrize(
    ("given", "used"), [({"delay": 0.3}, 0.3), ({}, 0.0)], ids=["given", "default"]
)
def test_the_delay_lies_between_events(given, used):
    """The model sleeps `delay` seconds between two events, and not after the last one."""
    from pi_course.scripted_model import ScriptedModel

    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        await asyncio.sleep(0)

    run(play(ScriptedModel([say("Hi")], chunk_size=1, sleep=sleep, **given)))
    assert slept == [used] * 3


def test_nothing_is_left_running_after_the_end():
    """When the reader has the last event, the model's task is over."""
    from pi_course.scripted_model import ScriptedModel

    async def main():
        before = asyncio.all_tasks()
        await play(ScriptedModel([say("Hi")]))
        return asyncio.all_tasks() - before

    assert run(main()) == set()


@pytest.mark.parametrize("chunk_size", [0, -1])
def test_a_chunk_has_at_least_one_character(chunk_size):
    """A chunk size below 1 is refused when the model is made, not in the middle of a reply."""
    from pi_course.scripted_model import ScriptedModel

    with pytest.raises(ValueError, match=f"chunk_size is {chunk_size}"):
        ScriptedModel([], chunk_size=chunk_size)


# Lab 4.3: the screen


def test_each_delta_is_written_as_it_is():
    """The prefix, each delta without a newline, and after done a blank line."""
    message = say("He\n\n o")
    written, returned = screen(each(trace(message, 2)))
    assert written == ["assistant> ", "He", "\n\n", " o", "\n\n"]
    assert returned is message


def test_an_error_without_text_stands_on_the_prefix_line():
    """No text had come: `assistant> [error] …`. Nothing is returned."""
    written, message = screen(each(trace(say("", "error", error_message="quota used up"))))
    assert ("".join(written), message) == ("assistant> [error] quota used up\n\n", None)


def test_an_error_after_text_stands_on_its_own_line():
    """Half a sentence had come: the error begins a new line. Nothing is returned."""
    written, message = screen(each(trace(say("Hel", "aborted", error_message="aborted"), 2)))
    assert ("".join(written), message) == ("assistant> Hel\n[error] aborted\n\n", None)


def test_a_lone_error_has_no_prefix():
    """A stream that fails before its start writes the error alone."""
    written, message = screen(each(trace(say("", "error", error_message="no turn"))[-1:]))
    assert ("".join(written), message) == ("[error] no turn\n\n", None)


@pytest.mark.parametrize("reason", ["error", "aborted"])
def test_an_error_without_a_message_names_its_reason(reason):
    """error_message may be absent: the reason stands in for it, never the word None."""
    written, _ = screen(each(trace(say("", reason))))
    assert "".join(written) == f"assistant> [error] {reason}\n\n"


def test_the_screen_shows_the_text_of_the_message():
    """Calls are not written; a second text begins a line, as in text_of(), the first one never."""
    from pi_course.messages import ToolCall, assistant_message, text

    call = ToolCall(id="call_1", name="read", arguments={})
    message = assistant_message([text("read first"), call, text("then answer")], "toolUse")
    written, returned = screen(each(trace(message, 5)))
    assert "".join(written) == "assistant> read first\nthen answer\n\n"
    assert returned is message
    written, _ = screen(each(trace(assistant_message([call, text("then answer")], "toolUse"), 5)))
    assert "".join(written) == "assistant> then answer\n\n"


def test_an_event_is_written_before_the_next_one_is_made():
    """The first character is on the screen before the last one exists."""
    from pi_course.chat import render_stream
    from pi_course.scripted_model import ScriptedModel

    log = []

    async def sleep(seconds):
        await asyncio.sleep(0)
        log.append("pause")

    model = ScriptedModel([say("Hi")], chunk_size=1, delay=0.03, sleep=sleep)

    async def main():
        await render_stream(model.stream(asking("go")), log.append)

    run(main())
    assert log == ["assistant> ", "pause", "H", "pause", "i", "pause", "\n\n"]


def test_a_model_that_raises_leaves_half_a_sentence():
    """render_stream does not catch: the exception goes on, half a line stays on the screen."""
    from pi_course.chat import render_stream

    async def raising():
        for event in trace(say("Hello"), 2)[:2]:
            yield event
        raise ConnectionError("line lost")

    written = []
    with pytest.raises(ConnectionError):
        run(render_stream(raising(), written.append))
    assert "".join(written) == "assistant> He"


def test_what_is_no_event_is_refused():
    """Something that is none of the six events ends in assert_never and is not passed over."""
    with pytest.raises(AssertionError, match="Expected code to be unreachable"):
        screen(each(["Hello"]))


def test_a_stream_that_just_stops_gives_no_message():
    """Without Done there is nothing that could go into the history."""
    assert screen(each(trace(say("Hello"), 2)[:2])) == (["assistant> ", "He"], None)


def test_type_out_flushes_and_adds_nothing():
    """type_out writes to standard output without a newline and flushes: no rhythm without it."""
    from pi_course.chat import type_out

    log = []

    class Terminal:
        def write(self, text):
            log.extend([text] if text else [])

        def flush(self):
            log.append("<flush>")

    with contextlib.redirect_stdout(Terminal()):
        type_out("He")
        type_out("llo\n\n")
    assert log == ["He", "<flush>", "llo\n\n", "<flush>"]


# Lab 4.3: folding the stream into the history


def watch_history(conversation, line):
    """Say a line; at each write note how long the history is and what its last message says."""
    seen = []

    def write(text):
        messages = conversation.messages
        seen.append((text, len(messages), words(messages[-1])))

    return run(conversation.say(line, write)), seen


def test_on_done_the_history_stands_still_while_it_streams():
    """on_done: the user's line goes in at once, the reply as a whole after Done."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    reply = say("Hello")
    conversation = Conversation(ScriptedModel([reply], chunk_size=3))
    returned, seen = watch_history(conversation, "hi")
    assert seen == [(piece, 1, "hi") for piece in ["assistant> ", "Hel", "lo", "\n\n"]]
    assert [words(message) for message in conversation.messages] == ["hi", "Hello"]
    assert (returned is reply, conversation.messages[1] is reply) == (True, True)


def test_from_start_the_history_grows_with_the_reply():
    """from_start: the partial goes in at Start and is replaced at each event, before it is seen."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    reply = say("Hello")
    conversation = Conversation(ScriptedModel([reply], chunk_size=3), history="from_start")
    returned, seen = watch_history(conversation, "hi")
    assert seen == [
        ("assistant> ", 2, ""),
        ("Hel", 2, "Hel"),
        ("lo", 2, "Hello"),
        ("\n\n", 2, "Hello"),
    ]
    assert (returned is reply, conversation.messages[1] is reply) == (True, True)


def three_lines(**options):
    """Three lines, of which the second one's answer breaks off."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedFailure, ScriptedModel

    script = [say("one"), ScriptedFailure("error", "line lost", "tw"), say("three")]

    async def main():
        conversation = Conversation(ScriptedModel(script, chunk_size=1), **options)
        answers = [await conversation.say(line, lambda text: None) for line in "abc"]
        return conversation.messages, [answer is not None for answer in answers]

    return run(main())


@pytest.mark.parametrize("options", [{}, {"history": "on_done"}], ids=["default", "on_done"])
def test_on_done_drops_the_half_reply(options):
    """Three lines with one failure leave 5 messages; say() returns None for the failed one."""
    messages, answered = three_lines(**options)
    assert [words(message) for message in messages] == ["a", "one", "b", "c", "three"]
    assert (type(messages), answered) == (tuple, [True, False, True])


def test_from_start_keeps_the_half_reply():
    """Three lines with one failure leave 6 messages; the half one says that it failed."""
    messages, answered = three_lines(history="from_start")
    assert [words(message) for message in messages] == ["a", "one", "b", "tw", "c", "three"]
    assert (messages[3].stop_reason, messages[3].error_message) == ("error", "line lost")
    assert answered == [True, False, True]


def test_from_start_keeps_a_failure_without_start():
    """The script has no turn: the failed reply stands in the history, not in the line's place."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    async def main():
        conversation = Conversation(ScriptedModel([]), history="from_start")
        await conversation.say("a", lambda text: None)
        return conversation.messages

    assert [(message.role, words(message)) for message in run(main())] == [
        ("user", "a"),
        ("assistant", ""),
    ]


def test_the_history_word_is_checked():
    """Any other word for `history` is refused when the conversation is made."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    with pytest.raises(ValueError, match="on_done.*from_start"):
        Conversation(ScriptedModel([]), history="never")


def test_an_abort_keeps_the_conversation():
    """Aborted in mid-answer: the screen says so, the half reply is dropped, the next line works."""
    from pi_course.abort import AbortController
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    async def main():
        model = ScriptedModel([say("Hello"), say("again")], chunk_size=2)
        conversation = Conversation(model)
        controller = AbortController()
        written = []

        def write(text):
            written.append(text)
            if text == "He":
                controller.abort("Ctrl-C")

        first = await conversation.say("a", write, signal=controller.signal)
        await conversation.say("b", lambda text: None)
        return "".join(written), first, conversation.messages, model.requests[1].messages

    written, first, messages, request = run(main())
    assert (written, first) == ("assistant> He\n[error] aborted: Ctrl-C\n\n", None)
    assert [words(message) for message in messages] == ["a", "b", "again"]
    assert request == messages[:2]


@pytest.mark.parametrize("history", ["on_done", "from_start"])
def test_the_signal_goes_to_the_model_as_it_is(history):
    """say() hands over the very signal that it was given, or None, however it folds."""
    from pi_course.abort import AbortController
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    handed = []

    class Noting(ScriptedModel):
        def stream(self, context, *, signal=None):
            handed.append(signal)
            return super().stream(context, signal=signal)

    async def main():
        conversation = Conversation(Noting([say("one"), say("two")]), history=history)
        signal = AbortController().signal
        await conversation.say("a", lambda text: None, signal=signal)
        await conversation.say("b", lambda text: None)
        return ["the signal itself" if one is signal else one for one in handed]

    assert run(main()) == ["the signal itself", None]


@pytest.mark.parametrize("line", ["  two\n lines \n", " ", ""], ids=["lines", "blank", "empty"])
def test_a_line_goes_in_as_it_was_typed(line):
    """The user's text is kept and sent whole: nothing is stripped, and nothing is too short."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    async def main():
        model = ScriptedModel([say("ok")])
        conversation = Conversation(model)
        await conversation.say(line, lambda text: None)
        return [words(message) for message in conversation.messages], model.requests[0].messages

    said, request = run(main())
    assert said == [line, "ok"]
    assert [words(message) for message in request] == [line]


@pytest.mark.parametrize("history", ["on_done", "from_start"])
def test_an_interrupt_leaves_a_settled_history(history):
    """Jupyter's stop button cancels the task: no half reply is left that looks like a whole one."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    async def main():
        model = ScriptedModel([say("Hello"), say("again")], chunk_size=2)
        conversation = Conversation(model, history=history)
        written = asyncio.Event()
        task = asyncio.create_task(
            conversation.say("a", lambda text: written.set() if text == "He" else None)
        )
        await written.wait()
        task.cancel()
        await asyncio.wait({task})
        await conversation.say("b", lambda text: None)
        return task.cancelled(), conversation.messages

    cancelled, messages = run(main())
    half = [] if history == "on_done" else [("He", "aborted", "interrupted")]
    assert cancelled is True
    assert [
        (words(m), getattr(m, "stop_reason", None), getattr(m, "error_message", None))
        for m in messages
    ] == [("a", None, None), *half, ("b", None, None), ("again", "stop", None)]


@pytest.mark.parametrize("history", ["on_done", "from_start"])
def test_an_interrupt_before_the_reply_leaves_the_line(history):
    """Cancelled before anything came: the cancellation goes on, the user's line stays alone."""
    from pi_course.chat import Conversation
    from pi_course.event_stream import AssistantMessageEventStream

    class Silent:
        def stream(self, context, *, signal=None):
            return AssistantMessageEventStream()

    async def main():
        conversation = Conversation(Silent(), history=history)
        task = asyncio.create_task(conversation.say("a", lambda text: None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled(), [words(message) for message in conversation.messages]

    assert run(main()) == (True, ["a"])


@pytest.mark.parametrize(
    ("breaks_at", "reply"),
    [("He", ("He", "aborted")), ("\n\n", ("Hello", "stop"))],
    ids=["in-mid-reply", "after-done"],
)
def test_a_screen_that_breaks_leaves_a_settled_history(breaks_at, reply):
    """write() raises: the error goes on, and only a reply that had not ended counts as cut off."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    def write(text):
        if text == breaks_at:
            raise BrokenPipeError("the terminal is gone")

    conversation = Conversation(ScriptedModel([say("Hello")], chunk_size=2), history="from_start")
    with pytest.raises(BrokenPipeError):
        run(conversation.say("a", write))
    assert [(words(m), m.stop_reason) for m in conversation.messages[1:]] == [reply]


# Lab 4.4: rules


def answers(rules, *texts, **options):
    """The message that a RuleModel gives to these user texts."""
    from pi_course.rule_model import RuleModel

    return run(play(RuleModel(rules, **options), asking(*texts)))[1]


def test_the_first_rule_that_matches_answers():
    """A rule matches if its text stands so in the user's, capitals too; of two, the first does."""
    from pi_course.rule_model import Rule

    rules = [
        Rule("HELLO", "capitals"),
        Rule("stream", "first"),
        Rule("streaming", "second"),
        Rule("hello", "third"),
    ]
    assert words(answers(rules, "what is streaming?")) == "first"
    assert words(answers(rules, "well, hello")) == "third"
    assert words(answers(rules, "well, HELLO")) == "capitals"
    assert words(answers(rules, "Hello")) == "No rule matches 'Hello', and there is no fallback."


def test_an_empty_reply_is_a_reply():
    """A rule that says "" answers with that: the rules after it are not asked."""
    from pi_course.rule_model import Rule

    message = answers([Rule("hello", ""), Rule(None, "fallback")], "hello")
    assert (words(message), message.stop_reason) == ("", "stop")


def test_the_fallback_answers_what_no_rule_matches():
    """match=None matches everything, also when it stands before others."""
    from pi_course.rule_model import Rule

    rules = [Rule("hello", "hi"), Rule(None, "fallback"), Rule("bye", "too late")]
    assert [words(answers(rules, line)) for line in ["hello", "bye", "?"]] == [
        "hi",
        "fallback",
        "fallback",
    ]


@pytest.mark.parametrize("rules", [[], [("bye", "see you")]], ids=["none", "other"])
def test_no_rule_at_all_says_so(rules):
    """Without a match and a fallback the reply is an ordinary one that says what was asked."""
    from pi_course.rule_model import Rule

    message = answers([Rule(*rule) for rule in rules], "hello")
    assert message.stop_reason == "stop"
    assert words(message) == "No rule matches 'hello', and there is no fallback."


def test_only_the_last_user_text_counts():
    """Earlier lines and other roles do not match; all blocks of the last line do, as in text_of."""
    from pi_course.messages import (
        AgentContext,
        ToolResultMessage,
        UserMessage,
        text,
        user_message,
    )
    from pi_course.rule_model import Rule, RuleModel

    result = ToolResultMessage(
        tool_call_id="c", tool_name="read", content=(text("red"),), is_error=False, timestamp=1
    )
    last = UserMessage(content=(text(" blue"), text("sky")), timestamp=1)
    context = AgentContext([user_message("red"), last, say("red"), result])
    rules = [Rule("red", "wrong"), Rule(" blue\nsky", "right"), Rule(None, "neither")]
    assert words(run(play(RuleModel(rules), context))[1]) == "right"


def test_without_a_user_text_the_fallback_answers():
    """Without any user message the text to match is empty, and there is still an answer."""
    from pi_course.messages import AgentContext
    from pi_course.rule_model import Rule, RuleModel

    rules, nobody = [Rule("a", "wrong"), Rule(None, "fallback")], AgentContext([])
    assert words(run(play(RuleModel(rules), nobody))[1]) == "fallback"
    assert words(run(play(RuleModel([]), nobody))[1]).startswith("No rule matches '', ")


def test_a_reply_may_read_the_context():
    """A reply that is a function gets the whole context."""
    from pi_course.rule_model import Rule

    rule = Rule(None, lambda context: f"{len(context.messages)} messages")
    assert words(answers([rule], "a", "b")) == "2 messages"


@pytest.mark.parametrize(
    ("reply", "events"),
    [
        (None, ["start", "error"]),
        ("Hel", ["start", "text_delta", "text_delta", "error"]),
        (lambda context: words(context.messages[0]), ["start", "text_delta", "error"]),
    ],
    ids=["at-once", "after-half-a-reply", "after-a-function"],
)
def test_an_error_rule_fails_inside_the_stream(reply, events):
    """An error rule ends in an Error event; what its reply says comes before it."""
    from pi_course.rule_model import Rule, RuleModel

    played, result = run(play(RuleModel([Rule("x", reply, "quota used up")]), asking("x")))
    assert types(played) == events
    said = "x" if callable(reply) else reply or ""
    assert (words(result), result.stop_reason) == (said, "error")
    assert result.error_message == "quota used up"


def test_a_rule_has_something_to_say():
    """A rule without a reply and without an error is refused when it is made."""
    from pi_course.rule_model import Rule

    with pytest.raises(ValueError, match="'hello'"):
        Rule("hello")
    assert Rule("hello", "").reply == ""


def test_a_rule_is_a_value():
    """Rules are frozen and slotted and compare by value; all three fields have names."""
    from pi_course.rule_model import Rule

    rule = Rule("a", "b", "c")
    assert rule == Rule(match="a", reply="b", error="c")
    assert hasattr(rule, "__dict__") is False
    with pytest.raises(FrozenInstanceError):
        rule.reply = "other"


@pytest.mark.parametrize(
    ("options", "deltas"),
    [({}, ["He", "ll", "o"]), ({"chunk_size": 4}, ["Hell", "o"])],
    ids=["default", "given"],
)
def test_rules_stream_two_characters_at_a_time(options, deltas):
    """chunk_size is 2 unless given."""
    from pi_course.rule_model import Rule, RuleModel

    events, _ = run(play(RuleModel([Rule(None, "Hello")], **options)))
    assert [event.delta for event in events if event.type == "text_delta"] == deltas


def test_a_rule_model_streams_abortably_and_with_delay():
    """delay, sleep and the signal do what they do in ScriptedModel."""
    from pi_course.abort import AbortController
    from pi_course.rule_model import Rule, RuleModel

    slept = []
    controller = AbortController()

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            controller.abort()
        await asyncio.sleep(0)

    model = RuleModel([Rule(None, "Hello")], delay=0.03, sleep=sleep)
    _, result = run(play(model, signal=controller.signal))
    assert (slept, words(result), result.stop_reason) == ([0.03, 0.03], "He", "aborted")


def test_rules_answer_every_call():
    """A RuleModel is not used up: the same call is answered again and again."""
    from pi_course.rule_model import Rule, RuleModel

    async def main():
        rules = [Rule(None, "ok")]
        model = RuleModel(rules)
        rules.clear()
        return [words(await model.stream(asking("go")).result()) for _ in range(3)]

    assert run(main()) == ["ok", "ok", "ok"]


# Lab 4.4: a conversation


def second_point(context):
    """A reply that can only be given by who sees the earlier answer."""
    points = [words(m) for m in context.messages if m.role == "assistant"]
    return f"More on{points[-1].split('2.')[1].split('3.')[0]}" if points else "What second point?"


def test_a_model_has_no_memory():
    """Three calls: a question; "the second point" alone; the same after question and answer."""
    from pi_course.messages import AgentContext, user_message
    from pi_course.rule_model import Rule, RuleModel

    model = RuleModel([Rule("types", "1. str 2. int 3. bool"), Rule("second", second_point)])
    question, more = user_message("Which types are there?"), user_message("And the second point?")

    async def main():
        _, answer = await play(model, AgentContext([question]))
        _, without = await play(model, AgentContext([more]))
        _, with_history = await play(model, AgentContext([question, answer, more]))
        return [words(message) for message in (answer, without, with_history)]

    assert run(main()) == ["1. str 2. int 3. bool", "What second point?", "More on int "]


@pytest.mark.parametrize("history", ["on_done", "from_start"])
def test_the_third_request_holds_messages_0_to_4(history):
    """Each request is everything said so far; the third one holds five of the six messages."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    async def main():
        model = ScriptedModel([say("1. str 2. int"), say("int is"), say("no limit")])
        conversation = Conversation(model, history=history)
        for line in ["Which types?", "Tell me about int", "How large can it be?"]:
            await conversation.say(line, lambda text: None)
        return conversation.messages, [request.messages for request in model.requests]

    messages, requests = run(main())
    assert [(message.role, words(message)) for message in messages] == [
        ("user", "Which types?"),
        ("assistant", "1. str 2. int"),
        ("user", "Tell me about int"),
        ("assistant", "int is"),
        ("user", "How large can it be?"),
        ("assistant", "no limit"),
    ]
    assert requests == [messages[:1], messages[:3], messages[:5]]


def test_a_system_prompt_is_the_first_message():
    """system= puts one system message with timestamp 0 in front, and every request holds it."""
    from pi_course.chat import Conversation
    from pi_course.messages import SystemMessage
    from pi_course.scripted_model import ScriptedModel

    async def main():
        model = ScriptedModel([say("1"), say("2")])
        conversation = Conversation(model, system=" Be brief.\n")
        before = conversation.messages
        for line in "ab":
            await conversation.say(line, lambda text: None)
        return before, [request.messages[0] for request in model.requests]

    prompt = SystemMessage(content=" Be brief.\n", timestamp=0)
    assert run(main()) == ((prompt,), [prompt, prompt])


@pytest.mark.parametrize("system", [None, ""], ids=["none", "empty"])
def test_without_a_system_prompt_the_history_begins_empty(system):
    """No system message stands for no prompt or an empty one."""
    from pi_course.chat import Conversation
    from pi_course.scripted_model import ScriptedModel

    assert Conversation(ScriptedModel([]), system=system).messages == ()


def demo():
    from pi_course.streaming_demo import streaming_demo

    written = []
    run(streaming_demo(written.append))
    return "".join(written)


def test_the_demo_equals_the_kept_file():
    """The demo prints what 04-streaming-demo.txt holds, byte for byte, and ends "5 messages"."""
    kept = Path(__file__).with_name("04-streaming-demo.txt").read_bytes().decode()
    assert demo() == kept
    assert kept.split("\n")[-2:] == ["5 messages", ""]


def test_the_demo_is_the_same_each_time():
    """Two runs of the demo print the same."""
    assert demo() == demo()
