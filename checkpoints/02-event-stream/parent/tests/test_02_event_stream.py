"""Focused test of chapter 02: one stream that gives the items in order and one final result."""

import asyncio
import gc

import pytest

MANY = 300_000
AWAKE = "asks again and again: let it await a future that push() and end() set"
SLOW = "300,000 events took more than 4 s: does taking the first one move all the others?"


class EqualToAll:
    """Tells nothing about who it is when it is compared with ==."""

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__

    def __repr__(self):
        return "equal to all"


# Each is a result like any other.
RESULTS = [None, False, 0, "", [], (), ValueError("a value, not a failure"), EqualToAll()]


def run(coro, seconds=1, sentence=None):
    """Run to the end; a time-out becomes a failed assert that says where to look."""

    async def limited():
        return await asyncio.wait_for(coro, seconds)

    try:
        return asyncio.run(limited())
    except TimeoutError:
        raise AssertionError(
            sentence
            or f"nothing arrived within {seconds} s: does every push() and every end() "
            "wake whoever waits in the iteration and in result()?"
        ) from None


def make_stream():
    """A stream of texts; "done:…" is the terminal event and what follows the colon the result."""
    from pi_course.event_stream import EventStream

    return EventStream[str, str](
        lambda event: event.startswith("done:"), lambda event: event.removeprefix("done:")
    )


async def read(stream):
    return [event async for event in stream]


async def let_others_run():
    """Give every task that can go on a few turns of the event loop."""
    for _ in range(10):
        await asyncio.sleep(0)


async def gave(tasks):
    """What each task gave, after all had time to run; one that still waits is cancelled."""
    await let_others_run()
    results = [task.result() if task.done() else "still waits" for task in tasks]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return results


async def outcome(awaitable):
    """The value, or the exception that came instead."""
    try:
        return await awaitable
    except Exception as error:
        return error


# Lab 2.1: the queue path


def test_events_pushed_before_reading_are_kept_in_order():
    """Events wait for their reader; the iteration ends after the terminal event."""
    stream = make_stream()
    for event in ["one", "two", "two", "done:3"]:
        stream.push(event)
    assert run(read(stream)) == ["one", "two", "two", "done:3"]


def test_result_comes_from_the_terminal_event():
    """result() gives what extract_result takes from the terminal event, with nobody iterating."""

    async def scenario():
        stream = make_stream()
        for event in ["one", "done:3"]:
            stream.push(event)
        return await stream.result()

    assert run(scenario()) == "3"


def test_stream_needs_no_running_loop():
    """A stream is made and pushed to without an event loop, and read in one later."""
    stream = make_stream()
    stream.push("one")
    stream.push("done:1")

    async def scenario():
        return await stream.result(), await read(stream)

    assert run(scenario()) == ("1", ["one", "done:1"])


def test_push_after_the_terminal_event_is_ignored():
    """There is no second fact: later pushes reach neither the iteration nor the result."""

    async def scenario():
        stream = make_stream()
        for event in ["one", "done:first", "late", "done:second"]:
            stream.push(event)
        return await read(stream), await stream.result()

    assert run(scenario()) == (["one", "done:first"], "first")


def test_terminal_event_alone_is_delivered():
    """A stream of one event, the terminal one, delivers it and settles the result."""

    async def scenario():
        stream = make_stream()
        stream.push("done:at once")
        return await read(stream), await stream.result()

    assert run(scenario()) == (["done:at once"], "at once")


def test_falsy_events_and_results_count():
    """An event of None, 0 or "" is an event like any other, read late or waited for."""
    from pi_course.event_stream import EventStream

    async def scenario(early):
        stream = EventStream(lambda event: event == "", lambda event: None)
        reader = asyncio.create_task(read(stream)) if early else None
        for event in [None, 0, ""]:
            await let_others_run()
            stream.push(event)
        return await (reader or read(stream)), await stream.result()

    assert run(scenario(early=False)) == ([None, 0, ""], None)
    assert run(scenario(early=True)) == ([None, 0, ""], None)


def test_any_value_may_be_the_result():
    """None, False, an empty list, an exception as a value: result() gives what was extracted."""
    from pi_course.event_stream import EventStream

    async def scenario(value):
        stream = EventStream(lambda event: True, lambda event: value)
        stream.push("done")
        return await stream.result() is value

    kept = [repr(value) for value in RESULTS if run(scenario(value))]
    assert kept == [repr(value) for value in RESULTS]


def test_docstring_says_one_consumer():
    """Whoever uses the class can read in its docstring that it is for one consumer only."""
    from pi_course.event_stream import EventStream

    said = " ".join((EventStream.__doc__ or "").lower().split())
    assert ("one consumer" in said) is True, "write `One consumer only` into the docstring"


def test_result_is_the_same_object_before_during_and_after_reading():
    """extract_result runs once; whoever awaits result(), and whenever, gets the same object."""
    from pi_course.event_stream import EventStream

    made = []

    def extract(event):
        made.append(object())
        return made[-1]

    async def scenario():
        stream = EventStream(lambda event: event == "done", extract)
        stream.push("one")
        stream.push("done")
        results = [await stream.result()]
        async for _ in stream:
            results.append(await stream.result())
        results += await asyncio.gather(stream.result(), stream.result())
        return results

    results = run(scenario())
    assert (len(results), len(made)) == (5, 1)
    assert [result is made[0] for result in results] == [True] * 5


def test_leaving_the_iteration_early_keeps_the_result():
    """After a break result() works, and a new iteration goes on at the next event."""

    async def scenario():
        stream = make_stream()
        for event in ["one", "two"]:
            stream.push(event)
        async for event in stream:
            first = event
            break
        stream.push("done:2")
        return first, await stream.result(), await read(stream)

    assert run(scenario()) == ("one", "2", ["two", "done:2"])


def test_reading_again_after_the_end_gives_nothing():
    """Each event is delivered once; a second iteration of a finished stream ends at once."""

    async def scenario():
        stream = make_stream()
        stream.push("done:1")
        return await read(stream), await read(stream), await stream.result()

    assert run(scenario()) == (["done:1"], [], "1")


# Lab 2.2: the waiter path and end


def test_waiting_reader_is_woken_by_the_next_push():
    """A reader that came first gets each pushed event, and gets it before the next push."""

    async def scenario():
        stream, seen = make_stream(), []

        async def reader():
            async for event in stream:
                seen.append(event)

        task = asyncio.create_task(reader())
        await let_others_run()
        steps = [list(seen)]
        for event in ["one", "two", "done:2"]:
            stream.push(event)
            await let_others_run()
            steps.append(list(seen))
        await task
        return steps

    assert run(scenario()) == [[], ["one"], ["one", "two"], ["one", "two", "done:2"]]


def test_burst_reaches_a_waiting_reader_in_order():
    """Several pushes while the reader is still asleep lose nothing and keep their order."""

    async def scenario():
        stream = make_stream()
        task = asyncio.create_task(read(stream))
        await let_others_run()
        for event in ["one", "two", "three", "done:3"]:
            stream.push(event)
        return await task

    assert run(scenario()) == ["one", "two", "three", "done:3"]


def test_waiting_reader_gets_the_very_event():
    """What the reader gets is the pushed object itself, not an equal one."""
    from pi_course.event_stream import EventStream

    async def scenario():
        stream = EventStream(lambda event: True, lambda event: event)
        event = ["a fact"]
        task = asyncio.create_task(read(stream))
        await let_others_run()
        stream.push(event)
        (got,) = await task
        return got is event, await stream.result() is event

    assert run(scenario()) == (True, True)


def test_end_with_a_result_finishes_without_an_event():
    """end(result) ends the iteration, adds no event and settles result()."""

    async def scenario():
        stream = make_stream()
        stream.push("one")
        stream.end("given")
        return await read(stream), await stream.result()

    assert run(scenario()) == (["one"], "given")


def test_end_needs_no_running_loop():
    """A stream can be ended without an event loop, too."""
    stream = make_stream()
    stream.push("one")
    stream.end("given")

    async def scenario():
        return await stream.result(), await read(stream)

    assert run(scenario()) == ("given", ["one"])


def test_end_with_none_is_a_result():
    """end(None) gives None, end(value) that very value; only end() without one has none."""

    async def scenario(value):
        stream = make_stream()
        stream.end(value)
        assert await read(stream) == []
        try:
            return await stream.result() is value
        except Exception:
            return False

    kept = [repr(value) for value in RESULTS if run(scenario(value))]
    assert kept == [repr(value) for value in RESULTS]


def test_end_wakes_a_waiting_reader():
    """A reader that waits when end(result) comes is woken and finishes with what it has."""

    async def scenario():
        stream = make_stream()
        task = asyncio.create_task(read(stream))
        await let_others_run()
        stream.push("one")
        await let_others_run()
        stream.end("given")
        return await task

    assert run(scenario()) == ["one"]


def test_terminal_event_wakes_everyone_who_awaits_the_result():
    """Several awaiters that wait from the start all get the same object from the terminal event."""
    from pi_course.event_stream import EventStream

    async def scenario():
        stream = EventStream(lambda event: event == "done", lambda event: [event])
        tasks = [asyncio.create_task(stream.result()) for _ in range(3)]
        await let_others_run()
        stream.push("one")
        await let_others_run()
        early = [task.done() for task in tasks]
        stream.push("done")
        results = await asyncio.gather(*tasks)
        return early, results, [result is results[0] for result in results]

    assert run(scenario()) == ([False] * 3, [["done"]] * 3, [True] * 3)


def test_end_wakes_everyone_who_awaits_the_result():
    """Several awaiters that wait when end(result) comes all get that very object."""

    async def scenario():
        stream, given = make_stream(), ["given"]
        tasks = [asyncio.create_task(stream.result()) for _ in range(3)]
        await let_others_run()
        stream.end(given)
        results = await asyncio.gather(*tasks)
        return [result is given for result in results]

    assert run(scenario()) == [True] * 3


@pytest.mark.parametrize("how", ["push", "end"])
def test_a_reader_and_an_awaiter_wait_together(how):
    """One reader and one awaiter wait at once: a push wakes the reader, the end wakes both."""

    async def scenario(reader_first):
        stream, tasks = make_stream(), {}
        for name in ("reader", "awaiter") if reader_first else ("awaiter", "reader"):
            wait = read(stream) if name == "reader" else stream.result()
            tasks[name] = asyncio.create_task(wait)
            await let_others_run()
        stream.push("one")
        await let_others_run()
        if how == "push":
            stream.push("done:1")
        else:
            stream.end("1")
        return await gave([tasks["reader"], tasks["awaiter"]])

    events = ["one", "done:1"] if how == "push" else ["one"]
    assert run(scenario(reader_first=True)) == [events, "1"]
    assert run(scenario(reader_first=False)) == [events, "1"]


def test_first_terminal_fact_stands():
    """After a terminal push end() changes nothing; after end() neither push nor end() does."""

    async def scenario():
        pushed, ended = make_stream(), make_stream()
        pushed.push("done:pushed")
        pushed.end("late")
        pushed.end()
        ended.end("first")
        ended.end("second")
        ended.end()
        ended.push("late")
        ended.push("done:late")
        return [(await read(stream), await stream.result()) for stream in (pushed, ended)]

    assert run(scenario()) == [(["done:pushed"], "pushed"), ([], "first")]


def test_cancelled_reader_loses_no_event():
    """A reader cancelled while it waits takes nothing along: the next reader gets the event."""

    async def scenario():
        stream = make_stream()
        task = asyncio.create_task(read(stream))
        await let_others_run()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        stream.push("one")
        stream.push("done:1")
        return task.cancelled(), await read(stream)

    assert run(scenario()) == (True, ["one", "done:1"])


def test_reader_cancelled_in_the_moment_of_a_push_loses_no_event():
    """A push and a cancel in one turn of the event loop: the next reader still gets the event."""

    async def scenario():
        stream = make_stream()
        task = asyncio.create_task(read(stream))
        await let_others_run()
        stream.push("one")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        stream.push("done:1")
        return task.cancelled(), await read(stream)

    assert run(scenario()) == (True, ["one", "done:1"])


def test_cancelled_awaiter_does_not_disturb_the_others():
    """Who stops waiting for result() leaves the stream and the other awaiters as they were."""

    async def scenario():
        stream = make_stream()
        gone, stays = (asyncio.create_task(stream.result()) for _ in range(2))
        await let_others_run()
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        stream.push("done:1")
        return gone.cancelled(), await stays, await stream.result(), await read(stream)

    assert run(scenario()) == (True, "1", "1", ["done:1"])


def test_push_and_a_cancelled_awaiter_in_one_turn():
    """A terminal push right after the cancel of an awaiter reaches the other one all the same."""

    async def scenario():
        stream = make_stream()
        gone, stays = (asyncio.create_task(stream.result()) for _ in range(2))
        await let_others_run()
        gone.cancel()
        stream.push("done:1")
        await asyncio.gather(gone, return_exceptions=True)
        return await stays

    assert run(scenario()) == "1"


def test_served_waiters_are_not_kept():
    """A hundred waits that are over, served or cancelled, leave no future behind in the stream."""

    def futures():
        gc.collect()
        return sum(issubclass(type(thing), asyncio.Future) for thing in gc.get_objects())

    async def scenario():
        stream = make_stream()
        reader = asyncio.create_task(read(stream))
        await let_others_run()
        before = futures()
        for _ in range(100):
            awaiter = asyncio.create_task(stream.result())
            stream.push("one")
            await asyncio.sleep(0)
            awaiter.cancel()
            await asyncio.gather(awaiter, return_exceptions=True)
        kept = futures() - before
        stream.push("done:1")
        return kept < 10, len(await reader)

    assert run(scenario()) == (True, 101)


@pytest.mark.parametrize(
    ("wait", "got"),
    [(read, ["done:1"]), (lambda stream: stream.result(), "1")],
    ids=["iteration", "result"],
)
def test_waiting_costs_no_turns(wait, got):
    """Who waits in the iteration or in result() sleeps: no turn, no timer until a push."""

    async def scenario():
        stream, counts = make_stream(), {"call_soon": 0, "call_at": 0}
        loop = asyncio.get_running_loop()
        plain = {name: getattr(loop, name) for name in counts}

        def counted(name):
            def call(*args, **options):
                counts[name] += 1
                return plain[name](*args, **options)

            return call

        loop.call_at = counted("call_at")  # call_later() uses it, and so does asyncio.sleep()
        task = asyncio.create_task(wait(stream))
        await let_others_run()
        loop.call_soon = counted("call_soon")
        await asyncio.sleep(0.05)  # one timer, and its end is one turn
        quiet = "asleep" if counts["call_soon"] <= 2 and counts["call_at"] == 1 else AWAKE
        for name, method in plain.items():
            setattr(loop, name, method)
        stream.push("done:1")
        return quiet, await task

    assert run(scenario()) == ("asleep", got)


def test_stream_runs_ahead_of_its_reader_and_a_generator_does_not():
    """After two steps a generator has made at most three pieces; the stream's producer all four."""
    pieces = ["start", "text_delta", "text_delta", "done:4"]

    def produce(made):
        for piece in pieces:
            made.append(piece)
            yield piece

    async def generator(made):
        for piece in produce(made):
            yield piece

    async def two_steps(source):
        reader = aiter(source)
        return [await anext(reader), await anext(reader)]

    async def scenario():
        pulled, pushed, stream = [], [], make_stream()

        async def producer():
            for piece in produce(pushed):
                stream.push(piece)
                await asyncio.sleep(0)

        task = asyncio.create_task(producer())
        source = generator(pulled)
        steps = [await two_steps(source), await two_steps(stream)]
        await let_others_run()
        await source.aclose()
        await task
        return steps, len(pulled) <= 3, len(pushed), await stream.result()

    assert run(scenario()) == ([["start", "text_delta"]] * 2, True, 4, "4")


# Lab 2.3: nobody hangs


def make_failing_stream(error):
    from pi_course.event_stream import EventStream

    def extract(event):
        raise error

    return EventStream(lambda event: event == "done", extract)


def test_failing_extract_result_ends_the_iteration():
    """If extract_result raises, push() does not: the terminal event is still delivered."""

    async def scenario():
        stream = make_failing_stream(Exception("no result in it"))
        task = asyncio.create_task(read(stream))
        await let_others_run()
        for event in ["one", "done", "late"]:
            stream.push(event)
        return await task, await read(stream)

    assert run(scenario()) == (["one", "done"], [])


def test_failing_extract_result_raises_in_result():
    """result() raises the error of extract_result, to who waits already and who comes later."""
    error = LookupError("no result in it")

    async def scenario():
        stream = make_failing_stream(error)
        tasks = [asyncio.create_task(outcome(stream.result())) for _ in range(2)]
        await let_others_run()
        stream.push("done")
        stream.end("too late")
        return [await task for task in tasks] + [await outcome(stream.result())]

    assert [got is error for got in run(scenario())] == [True, True, True]


def test_failing_extract_result_after_the_end_changes_nothing():
    """After end(result) a terminal event is ignored, and so is an extract_result that raises."""

    async def scenario():
        stream = make_failing_stream(LookupError("no result in it"))
        stream.end("given")
        stream.push("done")
        return await read(stream), await outcome(stream.result())

    assert run(scenario()) == ([], "given")


def test_end_without_a_result_raises_stream_closed():
    """end() without a result ends the iteration; result() raises StreamClosed and says why."""
    from pi_course.event_stream import StreamClosed

    async def scenario():
        stream = make_stream()
        stream.push("one")
        stream.end()
        return await read(stream), await outcome(stream.result()), await outcome(stream.result())

    events, first, second = run(scenario())
    assert (events, type(first), type(second)) == (["one"], StreamClosed, StreamClosed)
    assert "end() without a result" in str(first)


def test_end_without_a_result_wakes_every_waiter():
    """A reader and two awaiters that wait when end() comes are all woken."""
    from pi_course.event_stream import StreamClosed

    async def scenario():
        stream = make_stream()
        reader = asyncio.create_task(read(stream))
        tasks = [asyncio.create_task(outcome(stream.result())) for _ in range(2)]
        await let_others_run()
        stream.end()
        return await reader, [type(await task) for task in tasks]

    assert run(scenario()) == ([], [StreamClosed, StreamClosed])


def test_closed_stays_closed():
    """After end() without a result no later push or end(result) can supply one."""
    from pi_course.event_stream import StreamClosed

    async def scenario():
        stream = make_stream()
        stream.end()
        stream.end("late")
        stream.push("done:late")
        return await read(stream), type(await outcome(stream.result()))

    assert run(scenario()) == ([], StreamClosed)


def test_stream_closed_belongs_to_the_error_tree():
    """`except PiError` catches StreamClosed."""
    from pi_course.errors import PiError
    from pi_course.event_stream import StreamClosed

    assert StreamClosed.__mro__[:2] == (StreamClosed, PiError)


@pytest.mark.parametrize("how", ["extract", "end"])
def test_failure_that_nobody_reads_is_silent(how):
    """A failed stream that is thrown away logs no "exception was never retrieved"."""

    async def scenario():
        logged = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: logged.append(context["message"]))
        stream = make_failing_stream(LookupError("no result in it"))
        reader = asyncio.create_task(read(stream))
        awaiter = asyncio.create_task(stream.result())
        await let_others_run()
        awaiter.cancel()
        await asyncio.gather(awaiter, return_exceptions=True)
        if how == "extract":
            stream.push("done")
        else:
            stream.end()
        await reader
        del stream, reader, awaiter
        for _ in range(2):
            gc.collect()
            await let_others_run()
        return logged

    assert run(scenario()) == []


def test_many_events_wait_for_a_late_reader():
    """300,000 pushes with nobody reading, then one reader: all arrive, in linear time."""
    from pi_course.event_stream import EventStream

    async def scenario():
        stream = EventStream(lambda event: event == MANY - 1, lambda event: event)
        for event in range(MANY):
            stream.push(event)
            if event % 1000 == 0:
                await asyncio.sleep(0)  # so that the time-out can act
        seen = []
        async for event in stream:
            seen.append(event)
            if event % 1000 == 0:
                await asyncio.sleep(0)
        return seen == list(range(MANY)), await stream.result()

    assert run(scenario(), 4, SLOW) == (True, MANY - 1)
