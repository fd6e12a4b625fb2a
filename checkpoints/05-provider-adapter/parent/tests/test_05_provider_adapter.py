"""Focused test of chapter 05: outbound mapping, adapter, SSE, HTTP, and a second provider.

Test names start with outbound, normalized_transport, sse, fetch_transport and anthropic, so that
`-k sse` runs one lab. No network beyond 127.0.0.1, no key, no cost.
"""

import asyncio
import contextlib
import dataclasses
import gzip
import json
import logging
import time
import traceback

import httpx
import pytest
from pydantic import ValidationError

KEY = "sk-test-0123456789abcdef"
SMILE = "\U0001f600"
HIGH, LOW = "\ud83d", "\ude00"  # the two halves of SMILE; neither can be encoded alone


def run(coro, sentence="nothing arrived within 2 s: does every path push a last event?", seconds=2):
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


def call(call_id="call-1", name="read", arguments=None, raw=None):
    from pi_course.messages import ToolCall

    arguments = {"path": "README.md"} if arguments is None else arguments
    return ToolCall(id=call_id, name=name, arguments=arguments, raw_arguments=raw)


def result(call_id="call-1", name="read", content="# Project", is_error=False):
    from pi_course.messages import ToolResultMessage, text

    return ToolResultMessage(
        tool_call_id=call_id,
        tool_name=name,
        content=[text(content)],
        is_error=is_error,
        timestamp=1,
    )


def system(content, timestamp=1, **sections):
    from pi_course.messages import SystemMessage

    return SystemMessage(content=content, sections=sections or None, timestamp=timestamp)


def user(*blocks):
    from pi_course.messages import UserMessage, text

    return UserMessage(content=[text(block) for block in blocks], timestamp=1)


def assistant(*blocks, stop_reason="stop", error_message=None):
    from pi_course.messages import assistant_message, text

    content = [text(block) if isinstance(block, str) else block for block in blocks]
    return assistant_message(content, stop_reason, error_message=error_message, timestamp=1)


def tool(name="read"):
    from pi_course.messages import ToolDefinition

    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    }
    return ToolDefinition(name=name, description="Read a file", parameters=parameters)


def wrapped_tool():
    return {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Read a file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        },
    }


def context(*messages, tools=None):
    from pi_course.messages import AgentContext

    return AgentContext(messages, tools)


def main_line():
    """The context of the running example: the file was asked for, called for and read."""
    return context(
        system("Answer briefly."),
        user("读取 README.md"),
        assistant(call(raw='{"path":"README.md"}'), stop_reason="toolUse"),
        result(),
    )


def outbound(*messages):
    from pi_course.providers.openai_compatible import to_provider_messages

    return to_provider_messages(context(*messages))


# Lab 5.1: outbound


def test_outbound_gives_the_four_roles():
    """System, user, assistant and tool, each in the provider's own shape."""
    from pi_course.providers.openai_compatible import to_provider_messages

    assert to_provider_messages(main_line()) == [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": "读取 README.md"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call-1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"README.md"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call-1", "name": "read", "content": "# Project"},
    ]


@pytest.mark.parametrize(
    ("arguments", "raw", "sent"),
    [
        ({"a": 1}, '{ "a" :1 }', '{ "a" :1 }'),
        ({}, '{"path":"REA', '{"path":"REA'),
        ({"a": 1}, "", ""),
        ({"路径": ["a", "b"], "n": 1.5}, None, '{"路径":["a","b"],"n":1.5}'),
        ({}, None, "{}"),
    ],
    ids=["as-sent", "cut-off", "empty", "no-raw-text", "no-arguments"],
)
def test_outbound_arguments(arguments, raw, sent):
    """The raw text goes back as it came; without one the arguments are written compactly."""
    (message,) = outbound(assistant(call(arguments=arguments, raw=raw), stop_reason="toolUse"))

    assert message["tool_calls"][0]["function"]["arguments"] == sent


def test_outbound_arguments_that_history_lost_are_an_empty_object():
    """A stored call whose arguments are null is sent with {}; other JSON is sent as it is."""
    from pi_course.messages import ToolCall

    stored = [ToolCall(id="c", name="read", arguments=value) for value in (None, [], 0)]
    (message,) = outbound(assistant(*stored, stop_reason="toolUse"))

    sent = [entry["function"]["arguments"] for entry in message["tool_calls"]]
    assert sent == ["{}", "[]", "0"]


def test_outbound_text_blocks_join_by_newline():
    """The text blocks of one message become one string; calls stand beside it in their order."""
    from pi_course.messages import ToolResultMessage, text

    answer = ToolResultMessage(
        tool_call_id="b",
        tool_name="grep",
        content=[text("1"), text("2")],
        is_error=True,  # the format has no field for it, and the text stays the tool's own
        timestamp=1,
    )
    sent = outbound(
        user("one", "two"),
        assistant("first", call("a"), "then", call("b", "grep"), stop_reason="toolUse"),
        answer,
    )

    assert sent[0] == {"role": "user", "content": "one\ntwo"}
    assert sent[1]["content"] == "first\nthen"
    assert [(c["id"], c["function"]["name"]) for c in sent[1]["tool_calls"]] == [
        ("a", "read"),
        ("b", "grep"),
    ]
    assert sent[2] == {"role": "tool", "tool_call_id": "b", "name": "grep", "content": "1\n2"}


def test_outbound_text_alone_has_no_tool_calls():
    """A reply without calls has no tool_calls key; an empty text is a text, and not null."""
    assert outbound(assistant("Hello")) == [{"role": "assistant", "content": "Hello"}]
    (asked,) = outbound(assistant("", call("a"), stop_reason="toolUse"))
    assert asked["content"] == ""


def test_outbound_system_messages_fold_into_one():
    """Wherever they stand, system messages become one leading message: the replayed prompt."""
    from pi_course.messages import current_system_prompt

    messages = [
        system("You are Pi.", 10, rules="RULE v1", scratch="x"),
        user("hi"),
        system("", 20, rules="RULE v2", scratch=None),
        system("Prefer small diffs.", 30),
    ]

    assert outbound(*messages) == [
        {"role": "system", "content": "You are Pi.\n\nPrefer small diffs.\n\nRULE v2"},
        {"role": "user", "content": "hi"},
    ]
    assert outbound(*messages)[0]["content"] == current_system_prompt(messages)
    assert outbound(system(" A \n")) == [{"role": "system", "content": " A \n"}]


@pytest.mark.parametrize("with_empty", [False, True], ids=["none", "empty"])
def test_outbound_without_a_prompt_there_is_no_system_message(with_empty):
    """No instruction, no system message."""
    messages = [system("")] if with_empty else []

    assert outbound(*messages, user("hi")) == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
def test_outbound_failed_reply_with_nothing_to_show_is_not_sent(stop_reason):
    """A failed reply without text and without an answered call is left out."""
    empty = assistant(stop_reason=stop_reason, error_message="socket reset")
    half = assistant(call(raw='{"pa'), "", stop_reason=stop_reason)

    assert outbound(user("hi"), empty, half, user("again")) == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "again"},
    ]


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
def test_outbound_failed_reply_keeps_its_text_and_its_answered_calls(stop_reason):
    """What was said stays, and calls that have a result; a call without one is dropped."""
    said = assistant("half", call("lost"), stop_reason=stop_reason)
    answered = assistant(call("a"), call("lost"), stop_reason=stop_reason)
    sent = outbound(said, answered, result("a"))

    assert sent[0] == {"role": "assistant", "content": "half"}
    assert sent[1]["content"] is None
    assert [c["id"] for c in sent[1]["tool_calls"]] == ["a"]
    assert sent[2]["tool_call_id"] == "a"


def test_outbound_whole_reply_keeps_every_call():
    """Only failed replies lose calls: a missing result in a good one must not be hidden."""
    (sent,) = outbound(assistant(call("a"), call("b"), stop_reason="toolUse"))

    assert [c["id"] for c in sent["tool_calls"]] == ["a", "b"]


def test_outbound_reply_without_content_is_not_sent():
    """A reply that says nothing and calls nothing is left out; a user's line never is."""
    assert outbound(assistant(), assistant(""), user("hi"), user("")) == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": ""},
    ]


def test_outbound_tools_are_wrapped():
    """Each definition is put into the provider's function envelope, in the order given."""
    from pi_course.providers.openai_compatible import to_provider_tools

    assert to_provider_tools([tool()]) == [wrapped_tool()]
    named = to_provider_tools([tool("read"), tool("edit")])
    assert [entry["function"]["name"] for entry in named] == ["read", "edit"]


@pytest.mark.parametrize("tools", [None, [], ()], ids=["none", "list", "tuple"])
def test_outbound_no_tools_is_none(tools):
    """Without a tool there is nothing to send, not an empty list."""
    # Pi, report 3650
    from pi_course.providers.openai_compatible import to_provider_tools

    assert to_provider_tools(tools) is None


def test_outbound_definition_is_a_frozen_value():
    """A definition copies its schema; the context copies the list of tools."""
    from pi_course.messages import AgentContext, ToolDefinition

    schema = {"type": "object", "properties": {}}
    definition = ToolDefinition(name="read", description="", parameters=schema)
    tools = [definition]
    made = AgentContext([], tools)
    schema["type"] = "array"
    tools.clear()

    assert definition.parameters == {"type": "object", "properties": {}}
    assert made.tools == (definition,)
    assert AgentContext([]).tools is None
    with pytest.raises(ValidationError, match="parameters"):
        ToolDefinition(name="read", description="", parameters=["no", "object"])
    with pytest.raises(ValidationError):
        definition.name = "write"


def test_outbound_leaves_the_context_as_it_was():
    """Mapping reads the context; not even the returned lists are shared with it."""
    from pi_course.providers.openai_compatible import to_provider_messages, to_provider_tools

    before = main_line()
    definition = tool()
    sent = to_provider_messages(before)
    sent[2]["tool_calls"].clear()
    tools = to_provider_tools([definition])
    tools[0]["function"]["parameters"]["properties"].clear()

    assert before.messages == main_line().messages
    assert definition == tool()


# Lab 5.2: the adapter on fixed chunks


def text_chunk(delta):
    from pi_course.providers.chunks import TextChunk

    return TextChunk(delta)


def tool_chunk(index, arguments_delta=None, id=None, name=None):
    from pi_course.providers.chunks import ToolChunk

    return ToolChunk(index, id, name, arguments_delta)


def finish(reason="stop", **usage):
    from pi_course.providers.chunks import FinishChunk

    return FinishChunk(reason, usage or None)


def make_model(transport):
    from pi_course.providers.openai_compatible import create_openai_compatible_model

    return create_openai_compatible_model(provider="local", model="tiny-1", transport=transport)


async def settle(stream):
    """Every event of a stream, its result, and that both agree on the end."""
    events = [event async for event in stream]
    final = await stream.result()
    last = events[-1]
    assert [event.type for event in events[:-1] if event.type in ("done", "error")] == []
    assert (last.message if last.type == "done" else last.error) == final
    return events, final


def run_in_loop(start):
    """Call `start` inside a running loop; the events and the final message of its stream."""

    async def inside():
        return await settle(start())

    return run(inside())


def streamed(transport, *messages, signal=None):
    """The events and the final message that a transport gives."""
    return run_in_loop(lambda: make_model(transport).stream(context(*messages), signal=signal))


def reply(*chunks, messages=()):
    """The events and the final message that fixed chunks give."""
    from pi_course.providers.openai_compatible import fixed_transport

    return streamed(fixed_transport(chunks), *messages)


def final(*chunks, messages=()):
    return reply(*chunks, messages=messages)[1]


def calls(message):
    return [block for block in message.content if block.type == "toolCall"]


def two_pieces():
    return [
        tool_chunk(0, '{"path":', id="call-1", name="read"),
        tool_chunk(0, '"README.md"}'),
        finish("tool_calls", output=2),
    ]


class Steps:
    """A transport of steps: a chunk is yielded, an exception raised, a function awaited."""

    def __init__(self, *steps):
        self.steps = steps
        self.asked = []
        self.closed = False

    async def stream(self, request, *, signal=None):
        self.asked.append((request, signal))
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
                if callable(step):
                    await step()
                else:
                    yield step
        finally:
            await asyncio.sleep(0)  # closing a connection takes a turn of the loop
            self.closed = True


def test_normalized_transport_main_line():
    """Two argument pieces become two deltas, one end and one whole call."""
    events, message = reply(*two_pieces())

    assert [event.type for event in events] == [
        "start",
        "toolcall_delta",
        "toolcall_delta",
        "toolcall_end",
        "done",
    ]
    assert [(e.content_index, e.delta) for e in events[1:3]] == [
        (0, '{"path":'),
        (0, '"README.md"}'),
    ]
    assert events[3].content_index == 0
    assert events[3].tool_call == call(raw='{"path":"README.md"}')
    assert events[4].reason == "toolUse"
    assert message.content == (call(raw='{"path":"README.md"}'),)
    assert message.stop_reason == "toolUse"
    assert (message.provider, message.model) == ("local", "tiny-1")
    assert (message.usage.input, message.usage.output, message.usage.total_tokens) == (0, 2, 2)


def test_normalized_transport_text_partials():
    """Each partial is the whole message of its moment, not the last piece."""
    events, message = reply(text_chunk("正在"), text_chunk("读取"), finish("stop", output=2))

    assert [event.type for event in events] == ["start", "text_delta", "text_delta", "done"]
    assert events[0].partial.content == ()
    assert [e.partial.content[0].text for e in events[1:3]] == ["正在", "正在读取"]
    assert [(e.content_index, e.delta) for e in events[1:3]] == [(0, "正在"), (0, "读取")]
    assert message.content[0].text == "正在读取"
    assert message.stop_reason == "stop"
    assert message.error_message is None


def test_normalized_transport_partials_of_a_call():
    """While a call streams its arguments are {} and its raw text grows."""
    events, _ = reply(*two_pieces())
    shown = [event.partial.content[0] for event in events[1:4]]

    assert [(c.id, c.name, c.raw_arguments) for c in shown] == [
        ("call-1", "read", '{"path":'),
        ("call-1", "read", '{"path":"README.md"}'),
        ("call-1", "read", '{"path":"README.md"}'),
    ]
    assert [c.arguments for c in shown] == [{}, {}, {"path": "README.md"}]


def test_normalized_transport_raw_text_can_be_previewed():
    """A view of unfinished arguments is read from the raw text; the partial itself holds {}."""
    from pydantic_core import from_json

    events, _ = reply(
        tool_chunk(0, '{"path":"README.md","li', id="call-1", name="read"), finish("length")
    )
    shown = events[1].partial.content[0]

    assert from_json(shown.raw_arguments, allow_partial=True) == {"path": "README.md"}
    assert shown.arguments == {}


def test_normalized_transport_order_is_first_appearance():
    """Tool 4, text, tool 2: content is in the order in which each first appeared."""
    events, message = reply(
        tool_chunk(4, '{"path":', id="a", name="read"),
        text_chunk("先读"),
        tool_chunk(2, '{"query":', id="b", name="grep"),
        tool_chunk(4, '"README.md"}'),
        text_chunk("，再查"),
        tool_chunk(2, '"pi"}'),
        finish("tool_calls"),
    )

    assert [getattr(e, "content_index", None) for e in events] == [
        *[None, 0, 1, 2, 0, 1, 2],
        *[0, 2, None],
    ]
    assert [event.type for event in events[-3:]] == ["toolcall_end", "toolcall_end", "done"]
    assert message.content[0] == call("a", raw='{"path":"README.md"}')
    assert message.content[1].text == "先读，再查"
    assert message.content[2] == call("b", "grep", {"query": "pi"}, '{"query":"pi"}')


def test_normalized_transport_events_point_at_the_block_they_change():
    """The block at content_index is there in the event's own partial."""
    events, _ = reply(
        tool_chunk(4, '{"path":', id="a", name="read"),
        text_chunk("先读"),
        tool_chunk(2, "{}", id="b", name="grep"),
        finish("tool_calls"),
    )

    for event in events[1:-1]:
        block = event.partial.content[event.content_index]
        kind = "text" if event.type == "text_delta" else "toolCall"
        assert block.type == kind


def test_normalized_transport_earlier_partials_never_change():
    """Reading each partial as it comes and all of them at the end gives the same values."""
    from pi_course.providers.openai_compatible import fixed_transport

    chunks = [
        text_chunk("a"),
        tool_chunk(3, "{", id="x", name="read"),
        text_chunk("b"),
        tool_chunk(3, "}"),
        finish("tool_calls"),
    ]

    async def follow():
        transport = fixed_transport(chunks, pause=lambda: asyncio.sleep(0))
        seen = []
        async for event in make_model(transport).stream(context()):
            if event.type != "done":
                seen.append((event, event.partial))
        return seen

    seen = run(follow())
    assert len(seen) == 6
    for event, then in seen:
        assert event.partial == then


BAD_ARGUMENTS = {
    "cut-in-a-string": ('{"path":"READ', "Unterminated string"),
    "cut-at-the-brace": ('{"path":"a"', "delimiter"),
    "nan": ('{"n":NaN}', "NaN"),
    "infinity": ('{"n":-Infinity}', "-Infinity"),
    "too-large": ('{"n":1e999}', "1e999"),
    "endless": ('{"n":' + "9" * 5000 + "}", "an integer of 5000 digits is too long"),
    "same-key-twice": ('{"a":1,"a":2}', "same key twice"),
    "same-key-inside": ('{"o":{"a":1,"a":2}}', "same key twice"),
    "list": ('["README.md"]', "found list"),
    "string": ('"README.md"', "found str"),
    "null": ("null", "found NoneType"),
    "number": ("7", "found int"),
    "two-values": ('{"a":1} {"b":2}', "Extra data"),
    "comma": ('{"a":1,}', ""),
    "bottomless": ("[" * 200_000, "nested too deeply"),
    "deep": ('{"a":' * 300 + "1" + "}" * 300, "nested"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_normalized_transport_bad_arguments_end_in_error(name):
    """Arguments are parsed strictly at the end; the error names the tool and keeps the text."""
    raw, reason = BAD_ARGUMENTS[name]
    events, message = reply(
        tool_chunk(0, "{}", id="call-1", name="ls"),
        tool_chunk(1, raw, id="call-2", name="read"),
        finish("tool_calls", output=3),
    )

    assert [event.type for event in events] == [
        "start",
        "toolcall_delta",
        "toolcall_delta",
        "error",
    ]
    assert message.stop_reason == "error"
    assert "'read'" in message.error_message
    assert "content[1]" in message.error_message
    assert reason in message.error_message
    assert [c.raw_arguments for c in calls(message)] == ["{}", raw]
    assert [c.arguments for c in calls(message)] == [{}, {}]
    assert message.usage.output == 3


def test_normalized_transport_arguments_keep_their_types():
    """Numbers, truth values, null and nested values come out as JSON has them."""
    raw = '{"n": 1.5, "i": -7, "e": 1e3, "b": true, "z": null, "l": [{"a": "读"}]}'
    message = final(tool_chunk(0, raw, id="call-1", name="read"), finish("tool_calls"))

    assert message.content[0].arguments == {
        "n": 1.5,
        "i": -7,
        "e": 1000.0,
        "b": True,
        "z": None,
        "l": ({"a": "读"},),
    }
    assert message.content[0].raw_arguments == raw


@pytest.mark.parametrize("raw", [None, "", " \n"], ids=["absent", "empty", "blank"])
def test_normalized_transport_empty_arguments_are_an_empty_object(raw):
    """A call without arguments is whole; sent back it reads {}, which every server takes."""
    events, message = reply(tool_chunk(0, raw, id="call-1", name="ls"), finish("tool_calls"))

    assert [event.type for event in events] == ["start", "toolcall_delta", "toolcall_end", "done"]
    assert events[1].delta == (raw or "")
    assert message.content[0].arguments == {}
    (sent,) = outbound(message)
    assert sent["tool_calls"][0]["function"]["arguments"] == "{}"


def test_normalized_transport_length_parses_nothing():
    """A reply cut at the limit keeps the raw text, ends no call and stays length."""
    events, message = reply(
        tool_chunk(0, '{"path":"RE', id="call-1", name="read"),
        tool_chunk(1, "{}", id="call-2", name="ls"),
        finish("length", input=5, output=7),
    )

    assert [event.type for event in events] == [
        "start",
        "toolcall_delta",
        "toolcall_delta",
        "done",
    ]
    assert events[-1].reason == "length"
    assert [(c.arguments, c.raw_arguments) for c in calls(message)] == [
        ({}, '{"path":"RE'),
        ({}, "{}"),
    ]
    assert message.usage.total_tokens == 12


def test_normalized_transport_stop_with_calls_is_tool_use():
    """Several local servers finish with stop although calls came: it is normalized here."""
    chunks = two_pieces()[:2]

    assert final(*chunks, finish("stop")).stop_reason == "toolUse"
    assert final(*chunks, finish("stop")).content == final(*two_pieces()).content
    assert final(chunks[0], finish("stop")).stop_reason == "error"


def test_normalized_transport_tool_calls_without_a_call_is_kept():
    """What to make of it is for the loop to decide."""
    events, message = reply(text_chunk("ok"), finish("tool_calls"))

    assert message.stop_reason == "toolUse"
    assert [block.type for block in message.content] == ["text"]
    assert [event.type for event in events] == ["start", "text_delta", "done"]


def test_normalized_transport_exception_keeps_the_partial():
    """A transport that breaks gives an error with what had come, and no raise."""
    broken = Steps(text_chunk("half"), tool_chunk(0, '{"pa'), ConnectionError("socket reset"))
    events, message = streamed(broken)

    assert [event.type for event in events] == ["start", "text_delta", "toolcall_delta", "error"]
    assert events[-1].reason == "error"
    assert message.stop_reason == "error"
    assert "socket reset" in message.error_message
    assert message.content[0].text == "half"
    assert calls(message)[0].raw_arguments == '{"pa'
    assert broken.closed is True


def test_normalized_transport_exception_after_finish_is_an_error():
    """A reply counts only when its transport ended well."""
    message = streamed(Steps(finish(), OSError("late")))[1]

    assert message.stop_reason == "error"


def test_normalized_transport_that_raises_at_once_is_an_error():
    """stream() itself never raises: neither a bad transport nor a bad request gets out."""
    from pi_course.messages import AgentContext

    class Broken:
        def stream(self, request, *, signal=None):
            raise RuntimeError("no transport")

    _, message = streamed(Broken())
    assert "no transport" in message.error_message

    bad = AgentContext(["no message"])
    _, message = run_in_loop(lambda: make_model(Steps(finish())).stream(bad))
    assert message.stop_reason == "error"


def test_normalized_transport_must_finish():
    """A reply that just stops is an error, with its text kept."""
    # Pi, report 5526
    message = final(text_chunk("half"))

    assert message.stop_reason == "error"
    assert message.error_message == "The reply ended without a finish chunk (retryable)"
    assert message.content[0].text == "half"
    assert "ended without a finish chunk" in final().error_message


def test_normalized_transport_nothing_may_follow_the_finish():
    """Exactly one finish chunk, and it is the last."""
    late = final(text_chunk("a"), finish(), text_chunk("b"))
    twice = final(text_chunk("a"), finish(), finish("length"))

    for message in (late, twice):
        assert message.stop_reason == "error"
        assert "after the finish chunk" in message.error_message
        assert message.content[0].text == "a"


def test_normalized_transport_abort_keeps_the_partial():
    """An abort between two chunks ends in aborted, with what had come until then."""
    from pi_course.abort import AbortController

    controller = AbortController()

    async def abort():
        controller.abort("enough")

    transport = Steps(text_chunk("kept"), abort, text_chunk(" dropped"), finish())
    events, message = streamed(transport, signal=controller.signal)

    assert [event.type for event in events] == ["start", "text_delta", "error"]
    assert events[-1].reason == "aborted"
    assert message.stop_reason == "aborted"
    assert message.content[0].text == "kept"
    assert transport.closed is True


def test_normalized_transport_abort_interrupts_a_waiting_transport():
    """A transport that waits for bytes is stopped, closed, and leaves no task behind."""
    from pi_course.abort import AbortController
    from pi_course.providers.openai_compatible import fixed_transport

    forever = asyncio.Event

    async def wait_and_abort():
        before = asyncio.all_tasks()
        controller = AbortController()
        asyncio.get_running_loop().call_later(0.02, controller.abort)
        pause = forever().wait
        model = make_model(fixed_transport([text_chunk("kept")], pause=pause))
        events, message = await settle(model.stream(context(), signal=controller.signal))
        return events, message, asyncio.all_tasks() - before

    started = time.monotonic()
    events, message, others = run(wait_and_abort(), "an abort must end a waiting transport")
    assert time.monotonic() - started < 1
    assert [event.type for event in events] == ["start", "text_delta", "error"]
    assert message.stop_reason == "aborted"
    assert message.content[0].text == "kept"
    assert others == set()


def test_normalized_transport_already_aborted_sends_nothing():
    """With a signal that is already set there is one error event and no request."""
    from pi_course.abort import AbortController

    controller = AbortController()
    controller.abort()
    transport = Steps(finish())
    events, message = streamed(transport, signal=controller.signal)

    assert [event.type for event in events] == ["error"]
    assert message.stop_reason == "aborted"
    assert message.content == ()
    assert transport.asked == []


def test_normalized_transport_any_signal_will_do():
    """A signal needs `aborted` and `reason` only; it is looked at before each chunk."""

    class Flag:
        aborted = False
        reason = None

    flag = Flag()

    async def abort():
        flag.aborted = True

    transport = Steps(text_chunk("kept"), abort, text_chunk("dropped"), finish())
    _, message = streamed(transport, signal=flag)

    assert (message.stop_reason, message.content[0].text) == ("aborted", "kept")


def test_normalized_transport_cancelled_task_settles_the_stream():
    """When the loop goes down in mid-reply, the reply is aborted and nobody hangs."""

    from pi_course.abort import AbortController

    async def cancel_everything(signal):
        before = asyncio.all_tasks()
        transport = Steps(text_chunk("kept"), asyncio.Event().wait)
        stream = make_model(transport).stream(context(), signal=signal)
        async for event in stream:
            if event.type == "text_delta":
                break
        tasks = asyncio.all_tasks() - before
        for task in tasks:
            task.cancel()
        return await stream.result(), [task.cancelled() for task in tasks]

    for signal in (None, AbortController().signal):
        message, cancelled = run(cancel_everything(signal))
        assert message.stop_reason == "aborted"
        assert message.content[0].text == "kept"
        assert all(cancelled)  # who cancelled them is told so


def test_normalized_transport_gets_the_request_and_the_signal():
    """The request holds model, messages and tools; without tools the key is absent."""
    from pi_course.abort import AbortController
    from pi_course.providers.openai_compatible import to_provider_messages

    signal = AbortController().signal
    transport = Steps(finish())
    model = make_model(transport)
    with_tools = context(user("hi"), tools=[tool()])
    run_in_loop(lambda: model.stream(with_tools, signal=signal))
    run_in_loop(lambda: model.stream(main_line()))

    (first, got), (second, nothing) = transport.asked
    assert first == {
        "model": "tiny-1",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [wrapped_tool()],
    }
    assert got is signal
    assert second == {"model": "tiny-1", "messages": to_provider_messages(main_line())}
    assert nothing is None


@pytest.mark.parametrize("end", ["done", "late-chunk", "abort", "exception"])
def test_normalized_transport_is_closed_before_the_last_event(end):
    """Who sees the end may rely on it: the connection is closed already."""
    from pi_course.abort import AbortController

    controller = AbortController()

    async def abort():
        controller.abort()

    ends = {
        "done": [finish()],
        "late-chunk": [finish(), text_chunk("late"), text_chunk("never asked for")],
        "abort": [abort, text_chunk("late"), finish()],
        "exception": [OSError("reset")],
    }
    transport = Steps(text_chunk("hi"), *ends[end])

    async def watch():
        async for event in make_model(transport).stream(context(), signal=controller.signal):
            if event.type in ("done", "error"):
                return transport.closed

    assert run(watch()) is True


def test_normalized_transport_streams_are_independent():
    """Two replies of one model at once share nothing."""
    from pi_course.providers.openai_compatible import fixed_transport

    async def both():
        chunks = [text_chunk("a"), tool_chunk(0, "{}", id="x", name="ls"), finish("tool_calls")]
        model = make_model(fixed_transport(chunks, pause=lambda: asyncio.sleep(0)))
        streams = [model.stream(context()) for _ in range(2)]
        return await asyncio.gather(*map(settle, streams))

    (_, one), (_, two) = run(both())
    assert one.content == two.content
    assert len(one.content) == 2


def test_normalized_transport_streams_while_it_waits():
    """A delta is out as soon as its chunk came, before the next one is asked for."""
    from pi_course.providers.openai_compatible import fixed_transport

    async def first_delta():
        pause = asyncio.Event().wait
        stream = make_model(fixed_transport([text_chunk("now")], pause=pause)).stream(context())
        async for event in stream:
            if event.type == "text_delta":
                return event.delta

    assert run(first_delta()) == "now"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, (0, 0, 0)),
        ({"output": 2}, (0, 2, 2)),
        ({"input": 10, "output": 2}, (10, 2, 12)),
        ({"input": 10, "output": 2, "total_tokens": 999}, (10, 2, 12)),
        ({"total_tokens": 9}, (0, 0, 9)),
    ],
    ids=["none", "output", "both", "sum-wins", "total-only"],
)
def test_normalized_transport_usage(usage, expected):
    """What never came is zero; the total is input and output added up."""
    got = final(text_chunk("a"), finish("stop", **usage)).usage

    assert (got.input, got.output, got.total_tokens) == expected


def test_normalized_transport_empty_pieces_make_no_event():
    """An empty text opens no block; an empty piece of a known call says nothing new."""
    events, message = reply(
        text_chunk(""),
        tool_chunk(0, "", id="call-1", name="ls"),
        tool_chunk(0, ""),
        tool_chunk(0, "{}"),
        text_chunk(""),
        finish("tool_calls"),
    )

    assert [event.type for event in events] == [
        "start",
        "toolcall_delta",
        "toolcall_delta",
        "toolcall_end",
        "done",
    ]
    assert len(message.content) == 1


def named(message):
    return [(c.id, c.name, c.raw_arguments) for c in calls(message)]


def test_normalized_transport_repeated_id_and_name_are_not_appended():
    """Servers that send id and name with every piece still make one call."""
    events, message = reply(
        tool_chunk(0, "{", id="a", name="read"),
        tool_chunk(0, "}", id="a", name="read"),
        tool_chunk(0, "", id="a", name="reader"),
        finish("tool_calls"),
    )

    assert named(message) == [("a", "read", "{}")]
    assert [event.type for event in events].count("toolcall_delta") == 2


def test_normalized_transport_later_id_without_a_name_is_the_same_call():
    """Some servers make up a new id for each piece: the first one counts."""
    # Pi, report 3576
    message = final(
        tool_chunk(0, "{", id="a", name="read"),
        tool_chunk(0, "}", id="b"),
        tool_chunk(0, " ", id="c", name=""),
        finish("tool_calls"),
    )

    assert named(message) == [("a", "read", "{} ")]


def test_normalized_transport_new_id_and_name_start_a_new_call():
    """Servers that number every call 0 are understood: id and name together open a call."""
    message = final(
        tool_chunk(0, "{", id="a", name="read"),
        tool_chunk(0, "}"),
        tool_chunk(0, '{"q":', id="b", name="grep"),
        tool_chunk(0, "1}", id="b", name="grep"),
        finish("tool_calls"),
    )

    assert named(message) == [("a", "read", "{}"), ("b", "grep", '{"q":1}')]


def test_normalized_transport_late_id_and_name_are_filled_in():
    """A name or an id that comes later belongs to the call; earlier partials stay as they were."""
    events, message = reply(
        tool_chunk(0, '{"a":'),
        tool_chunk(0, "1", name="read"),
        tool_chunk(0, None, id="x"),
        tool_chunk(0, "}", id="x", name="read"),
        finish("tool_calls"),
    )

    assert named(message) == [("x", "read", '{"a":1}')]
    assert message.content[0].arguments == {"a": 1}
    assert [(e.delta, *named(e.partial)[0]) for e in events[1:5]] == [
        ('{"a":', "call-1", "", '{"a":'),
        ("1", "call-1", "read", '{"a":1'),
        ("", "x", "read", '{"a":1'),
        ("}", "x", "read", '{"a":1}'),
    ]


def test_normalized_transport_call_without_a_name_is_an_error():
    """Nothing can be called that has no name."""
    message = final(tool_chunk(0, "{}", id="a"), finish("tool_calls"))

    assert message.stop_reason == "error"
    assert "content[0]" in message.error_message
    assert "name" in message.error_message


def test_normalized_transport_missing_ids_are_numbered():
    """A call without an id gets the first free call-<n>, also one whose id is empty."""
    message = final(
        tool_chunk(0, "{}", name="a"),
        tool_chunk(1, "{}", id="call-1", name="b"),
        tool_chunk(2, "{}", id="", name="c"),
        finish("tool_calls"),
    )

    assert [c.id for c in calls(message)] == ["call-1", "call-2", "call-3"]
    second = final(
        tool_chunk(0, "{}", id="x", name="a"), tool_chunk(1, "{}", name="b"), finish("tool_calls")
    )
    assert [c.id for c in calls(second)] == ["x", "call-1"]


def test_normalized_transport_used_ids_are_replaced():
    """An id of the request or of this reply is not used twice, or a result had two calls."""
    history = [
        assistant("text", call("call-1"), call("seen"), call("open"), stop_reason="toolUse"),
        result("call-1"),
        result("seen"),
        result("call-3"),
    ]
    message = final(
        tool_chunk(0, "{}", id="seen", name="a"),
        tool_chunk(1, "{}", id="new", name="b"),
        tool_chunk(2, "{}", id="new", name="c"),
        tool_chunk(2, "", id="new", name="c"),
        tool_chunk(3, "{}", name="d"),
        tool_chunk(3, "", id="seen"),
        tool_chunk(4, "{}", id="open", name="e"),
        finish("tool_calls"),
        messages=history,
    )

    assert [c.id for c in calls(message)] == ["call-2", "new", "call-4", "call-5", "call-6"]


@pytest.mark.parametrize("kind", ["text", "call"])
def test_normalized_transport_surrogate_pair_in_two_pieces_is_joined(kind):
    """A character cut in two by the provider's JSON is one character again."""
    pieces = ['{"a":"' + HIGH, LOW + '"}']
    if kind == "text":
        chunks = [text_chunk(piece) for piece in pieces]
    else:
        chunks = [tool_chunk(0, piece, id="a", name="ls") for piece in pieces]
    events, message = reply(*chunks, finish())

    deltas = [event.delta for event in events if hasattr(event, "delta")]
    assert deltas == ['{"a":"', SMILE + '"}']
    block = message.content[0]
    assert (block.text if kind == "text" else block.raw_arguments) == '{"a":"' + SMILE + '"}'


def test_normalized_transport_lone_surrogates_become_replacement_characters():
    """What is stored can always be encoded."""
    events, message = reply(
        text_chunk("a" + LOW + "b"),
        text_chunk(HIGH),
        tool_chunk(0, json.dumps({HIGH: [LOW, {"k": "x" + HIGH + "y"}]}), id=HIGH, name="l" + LOW),
        text_chunk("c"),
        text_chunk("d" + HIGH),
        finish(),
    )

    assert [e.delta for e in events if e.type == "text_delta"] == ["a�b", "�c", "d", "�"]
    assert message.content[0].text == "a�b�cd�"
    assert message.content[1].arguments == {"�": ("�", {"k": "x�y"})}
    assert (message.content[1].id, message.content[1].name) == ("�", "l�")
    assert "\\ud83d" in message.content[1].raw_arguments


def test_normalized_transport_held_half_is_given_out_in_the_block_it_belongs_to():
    """At the end a half that waits for its other half becomes U+FFFD, in text and in calls."""
    events, message = reply(
        tool_chunk(0, '{"a', id="a", name="ls"),
        tool_chunk(0, HIGH),
        text_chunk("t" + HIGH),
        finish("length"),
    )

    assert calls(message)[0].raw_arguments == '{"a�'
    assert message.content[1].text == "t�"
    assert [(e.content_index, e.delta) for e in events[3:5]] == [(0, "�"), (1, "�")]


def test_normalized_transport_error_text_can_be_stored():
    """An error message holds no lone surrogate either, and is never empty."""
    broken = streamed(Steps(ValueError("bad " + HIGH)))[1]
    silent = streamed(Steps(TimeoutError()))[1]

    assert "bad �" in broken.error_message
    assert "TimeoutError" in silent.error_message


def test_normalized_transport_chunks_are_frozen_values_with_a_type():
    """Three kinds, told apart by `type`; equal by value."""
    chunks = [text_chunk("a"), tool_chunk(0), finish()]

    assert [chunk.type for chunk in chunks] == ["text", "tool", "finish"]
    assert chunks == [text_chunk("a"), tool_chunk(0), finish()]
    for chunk in chunks:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(chunk, dataclasses.fields(chunk)[0].name, None)


def test_normalized_transport_errors_of_ours_say_whether_to_retry():
    """A retryable failure says so in its text, with the wait that the server asked for."""
    from pi_course.errors import PiError
    from pi_course.providers.chunks import ProviderError

    assert issubclass(ProviderError, PiError)
    plain = ProviderError("no")
    again = ProviderError("busy", retryable=True)
    later = ProviderError("busy", retryable=True, retry_after=7.0)
    assert (plain.retryable, plain.retry_after, str(plain)) == (False, None, "no")
    assert (again.retryable, str(again)) == (True, "busy (retryable)")
    assert (later.retry_after, str(later)) == (7.0, "busy (retryable after 7 s)")
    message = streamed(Steps(later))[1]
    assert message.error_message == "busy (retryable after 7 s)"


# Lab 5.3: SSE and the unknown border


def decode(*pieces):
    from pi_course.providers.sse import SseDecoder

    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


def every_cut(body, read):
    """What `read` gives for the whole body; each cut in two and each single byte agree."""
    whole = read(body)
    for cut in range(len(body) + 1):
        assert read(body[:cut], body[cut:]) == whole
    assert read(*(body[i : i + 1] for i in range(len(body)))) == whole
    return whole


SSE_BODIES = {
    "lf": (b"data: a\n\ndata: b\n\n", ["a", "b"]),
    "crlf": (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    "cr": (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    "mixed": (b"data: a\r\ndata: b\n\rdata: c\r\n\n", ["a\nb", "c"]),
    "several-data-lines": (b"data: a \ndata:  b\ndata:\ndata: c\n\n", ["a \n b\n\nc"]),
    "no-space": (b"data:a\n\n", ["a"]),
    "comments": (b": ping\n\n:data: no\ndata: a\n:x\n\n:\n\n", ["a"]),
    "no-colon": (b"data\n\ndata\ndata\n\n", ["", "\n"]),
    "unknown-field": (b"datum: x\nData: y\n data: z\ndata: a\n\n", ["a"]),
    "bom": (b"\xef\xbb\xbfdata: a\n\ndata: \xef\xbb\xbfb\n\n", ["a", "\ufeffb"]),
    "bom-later": (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", ["a"]),
    "bom-twice": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    "no-data": (b"event: x\nid: 1\n\nretry: 5\n\n\n\n", []),
    "unterminated": (b"data: a\n\ndata: b\n", ["a"]),
    "no-last-newline": (b"data: a\n\ndata: b", ["a"]),
    "colons": (b"data: a: b\n\ndata::\n\n", ["a: b", ":"]),
    "not-line-ends": (
        "data: a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\n\n".encode(),
        ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei"],
    ),
    "cjk-and-emoji": (f"data: 读取 {SMILE}\n\n".encode(), [f"读取 {SMILE}"]),
    "bad-utf-8": (b"data: a\xffb\xe8\xaf\n\n", ["a\ufffdb\ufffd"]),
    "nul": (b"data: a\x00b\n\n", ["a\x00b"]),
}


@pytest.mark.parametrize("name", SSE_BODIES)
def test_sse_decoder_gives_the_data(name):
    """The same events, however the network cuts the bytes."""
    body, expected = SSE_BODIES[name]

    assert [event.data for event in every_cut(body, decode)] == expected


def test_sse_fields_of_an_event():
    """event is reset after each event, the last id persists, retry holds digits only."""
    from pi_course.providers.sse import ServerSentEvent

    body = (
        b"event: ping\nid: 7\nretry: 1500\ndata: a\n\n"
        b"data: b\n\n"
        b"event: lost\n\n"
        b"data: c\nid: 8\x00\nretry: 1e3\nevent:\n\n"
        b"id\nretry: \xd9\xa3\ndata: d\n\n"
        b"event: x\nevent: y\nretry:\ndata: e\n\n"
        b"event: \xff\nid: \xff\ndata: f\n\n"
    )

    assert every_cut(body, decode) == [
        ServerSentEvent(event="ping", data="a", id="7", retry=1500),
        ServerSentEvent(event="message", data="b", id="7", retry=None),
        ServerSentEvent(event="message", data="c", id="7", retry=None),
        ServerSentEvent(event="message", data="d", id="", retry=None),
        ServerSentEvent(event="y", data="e", id="", retry=None),
        ServerSentEvent(event="\ufffd", data="f", id="\ufffd", retry=None),
    ]
    assert ServerSentEvent() == ServerSentEvent(event="message", data="", id="", retry=None)


def test_sse_retry_belongs_to_its_own_block():
    """A retry line without data is gone with its block."""
    assert [event.retry for event in decode(b"retry: 9\n\ndata: a\n\n")] == [None]
    assert [event.retry for event in decode(b"retry: " + b"9" * 5000 + b"\ndata: a\n\n")] == [None]


def test_sse_event_is_out_at_the_first_byte_that_ends_it():
    """Nobody waits for a byte more than the format needs."""
    from pi_course.providers.sse import SseDecoder

    for body in (b"data: a\n\n", b"data: a\r\r", b"data: a\r\n\r"):
        decoder = SseDecoder()
        early = [event for byte in body[:-1] for event in decoder.feed(bytes([byte]))]
        assert early == []
        assert [event.data for event in decoder.feed(body[-1:])] == ["a"]
        assert decoder.feed(b"\n") == []  # the rest of a CRLF, or one more blank line


def test_sse_close_drops_what_no_blank_line_ended():
    """After close() the half event is gone, and the decoder is as new."""
    from pi_course.providers.sse import SseDecoder

    decoder = SseDecoder()
    assert decoder.feed(b"id: 1\nevent: x\ndata: half\r") == []
    decoder.close()
    assert decoder.feed(b"\n\n\n") == []
    decoder.feed(b"data: cut")
    decoder.close()
    (event,) = decoder.feed(b"\xef\xbb\xbfdata: new\n\n")
    assert (event.event, event.data, event.id) == ("message", "new", "")


def test_sse_event_size_has_a_limit(monkeypatch):
    """A body that never ends an event can't fill the memory: the limit is named."""
    from pi_course.errors import PiError
    from pi_course.providers import sse

    assert sse.MAX_EVENT_BYTES >= 16 * 1024 * 1024
    limit = 1000
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", limit)
    line = sse.SseDecoder()
    assert line.feed(b"x" * limit) == []
    with pytest.raises(PiError, match=str(limit)):
        line.feed(b"x")
    half = b"data:" + b"x" * (limit // 2) + b"\n"
    lines = sse.SseDecoder()
    assert lines.feed(half) == []
    assert lines.feed(half) == []
    assert len(lines.feed(b"\n")) == 1
    assert lines.feed(half + half) == []
    with pytest.raises(PiError, match=str(limit)):
        lines.feed(b"data:x\n")


def test_sse_limit_counts_one_event_only(monkeypatch):
    """Many events of a good size are no problem, however long the body; comments do not count."""
    from pi_course.providers import sse

    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    decoder = sse.SseDecoder()
    block = b":" + b"c" * 900 + b"\ndata: " + b"x" * 900 + b"\n\n"
    assert [len(decoder.feed(block * 3)) for _ in range(3)] == [3] * 3


def test_sse_long_line_in_small_reads_takes_linear_time():
    """Four megabytes in reads of one kilobyte: no read looks at all bytes again."""
    from pi_course.providers.sse import SseDecoder

    def seconds(size):
        decoder = SseDecoder()
        decoder.feed(b"data: ")
        started = time.perf_counter()
        for _ in range(size):
            decoder.feed(b"x" * 1024)
        assert len(decoder.feed(b"\n\n")) == 1
        return time.perf_counter() - started

    assert min(seconds(4096) for _ in range(2)) < 1


def sse(*payloads, done=True):
    """A body of JSON payloads; a string goes into the data line as it is."""
    lines = [p if isinstance(p, str) else json.dumps(p) for p in payloads]
    lines += ["[DONE]"] * done
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def delta(finish_reason=None, **fields):
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def piece(arguments=None, id=None, name=None, index=0):
    """One entry of delta.tool_calls; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    entry = {
        "index": index,
        "id": id,
        "type": "function",
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in entry.items() if value is not None}


def read_openai(*pieces):
    """The chunks of a body, as a transport reads them: decoder first, then the reader."""
    from pi_course.providers.openai_payload import OpenAIPayloadReader

    return read_with(OpenAIPayloadReader(), pieces)


def read_with(reader, pieces):
    from pi_course.providers.sse import SseDecoder

    decoder = SseDecoder()
    chunks = []
    for bytes_ in pieces:
        for event in decoder.feed(bytes_):
            if not reader.done:
                chunks += reader.read(event)
    return chunks + reader.close()


def refused(*payloads, read=None):
    """The error text that a body of payloads ends in."""
    from pi_course.providers.chunks import ProviderError

    try:
        chunks = (read or read_openai)(sse(*payloads))
    except ProviderError as error:
        return str(error)
    return f"accepted as {chunks}"


def openai_main_line():
    return sse(
        delta(tool_calls=[piece('{"path":', id="call-1", name="read")]),
        delta(tool_calls=[piece('"README.md"}')]),
        delta("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}},
    )


def test_sse_main_line_cut_at_every_byte():
    """The running example gives two tool chunks and one finish, wherever the body is cut."""
    assert every_cut(openai_main_line(), read_openai) == [
        tool_chunk(0, '{"path":', id="call-1", name="read"),
        tool_chunk(0, '"README.md"}'),
        finish("tool_calls", input=9, output=2, total_tokens=11),
    ]


def test_sse_cjk_and_emoji_cut_at_every_byte():
    """A character cut in two by the network is whole again."""
    # Pi, report 608
    texts = ["读取", f"{SMILE} café", "\u2028\u2029\x85", "好"]
    body = sse(*(json.dumps(delta(content=t), ensure_ascii=False) for t in texts), delta("stop"))

    assert every_cut(body, read_openai) == [*map(text_chunk, texts), finish("stop")]


A_COUNT = "must be a non-negative integer"
A_CALL = "choices[0].delta.tool_calls[0]"
A_REASON = "choices[0].finish_reason must be 'stop', 'length' or 'tool_calls'"
BAD_PAYLOADS = {
    "content-number": (delta(content=42), "choices[0].delta.content must be a string"),
    "content-list": (delta(content=["a"]), "choices[0].delta.content must be a string"),
    "calls-object": (delta(tool_calls={"0": 1}), "choices[0].delta.tool_calls must be a list"),
    "call-string": (delta(tool_calls=["x"]), f"{A_CALL} must be an object"),
    "index-string": (
        delta(tool_calls=[piece("{}", "a", "b"), piece(index="1")]),
        f"choices[0].delta.tool_calls[1].index {A_COUNT}",
    ),
    "index-bool": (delta(tool_calls=[piece(index=True)]), f"{A_CALL}.index {A_COUNT}"),
    "index-negative": (delta(tool_calls=[piece(index=-1)]), f"{A_CALL}.index {A_COUNT}"),
    "index-float": (delta(tool_calls=[piece(index=1.0)]), f"{A_CALL}.index {A_COUNT}"),
    "id-number": (delta(tool_calls=[piece(id=7)]), f"{A_CALL}.id must be a string"),
    "function-string": (
        delta(tool_calls=[{"index": 0, "function": "read"}]),
        f"{A_CALL}.function must be an object",
    ),
    "name-list": (
        delta(tool_calls=[piece(name=["read"])]),
        f"{A_CALL}.function.name must be a string",
    ),
    "arguments-object": (
        delta(tool_calls=[piece({"path": "a"})]),
        f"{A_CALL}.function.arguments must be a string",
    ),
    "reason-unknown": (delta("content_filter"), A_REASON),
    "reason-list": (delta(["stop"]), A_REASON),
    "choices-object": ({"choices": {}}, "choices must be a list"),
    "choice-string": ({"choices": ["x"]}, "choices[0] must be an object"),
    "delta-string": ({"choices": [{"delta": "x"}]}, "choices[0].delta must be an object"),
    "two-choices": ({"choices": [{}, {}]}, "choices must hold one choice"),
    "usage-number": ({"choices": [], "usage": 7}, "usage must be an object"),
    "input-string": ({"usage": {"prompt_tokens": "9"}}, f"usage.prompt_tokens {A_COUNT}"),
    "output-negative": (
        {"usage": {"completion_tokens": -1}},
        f"usage.completion_tokens {A_COUNT}",
    ),
    "total-bool": ({"usage": {"total_tokens": True}}, f"usage.total_tokens {A_COUNT}"),
    "choice-usage": ({"choices": [{"usage": 7}]}, "choices[0].usage must be an object"),
    "choice-input": (
        {"choices": [{"usage": {"prompt_tokens": "9"}}]},
        f"choices[0].usage.prompt_tokens {A_COUNT}",
    ),
    "list": (["no object"], "the payload must be an object"),
    "number": ("7", "the payload must be an object"),
}


@pytest.mark.parametrize("name", BAD_PAYLOADS)
def test_sse_payload_checks_name_the_path(name):
    """Unknown JSON is narrowed field by field; a wrong type says where and what was found."""
    payload, problem = BAD_PAYLOADS[name]
    text = refused(payload)

    assert text.startswith(f"Invalid provider chunk: {problem}, found ")


def test_sse_payload_checks_show_what_was_found_and_cut_it():
    """The found value is shown in short."""
    assert refused(delta(content=42)).endswith("must be a string, found 42")
    long = refused(delta(content=["x" * 10_000]))
    assert long.endswith("xxx…")
    assert len(long) < 200


def test_sse_finish_rules_have_errors_of_their_own():
    """After the finish reason neither content nor another reason may come."""
    late = refused(delta("stop"), delta(content="more"))
    late_call = refused(delta("stop"), delta(tool_calls=[piece("{}")]))
    changed = refused(delta("stop"), delta("length"))

    assert late.startswith("Invalid provider chunk: choices[0].delta.content came after")
    assert late_call.startswith("Invalid provider chunk: choices[0].delta.tool_calls came after")
    assert changed.startswith("Invalid provider chunk: choices[0].finish_reason changed")
    assert "'stop'" in changed and "'length'" in changed


@pytest.mark.parametrize(
    "body",
    [b"data: {\n\n", b"data: hello\n\n", b'data: {"usage": NaN}\n\n', b"data: " + b"[" * 200_000],
    ids=["cut", "text", "nan", "bottomless"],
)
def test_sse_payload_must_be_json(body):
    """Text that is no JSON is an error that shows its beginning."""
    from pi_course.providers.chunks import ProviderError

    with pytest.raises(ProviderError, match="Invalid provider chunk: .*not JSON"):
        read_openai(body.strip() + b"\n\n")


REPORTS = {
    "wrong-model": ({"error": {"message": "no model", "code": 404}}, "no model", False),
    "limit": ({"error": {"message": "slow down", "code": 429}}, "slow down", True),
    "busy": ({"error": {"message": "busy", "code": 503}, "choices": [{}, {}]}, "busy", True),
    "kind": ({"error": {"message": "full", "type": "overloaded_error"}}, "full", True),
    "kind-api": ({"error": {"message": "odd", "type": "api_error"}}, "odd", True),
    "kind-limit": ({"error": {"message": "slow", "type": "rate_limit_error"}}, "slow", True),
    "kind-server": ({"error": {"message": "odd", "type": "server_error"}}, "odd", True),
    "kind-time": ({"error": {"message": "late", "type": "timeout_error"}}, "late", True),
    "odd-code": ({"error": {"message": "no", "code": True, "type": ["x"]}}, "no", False),
    "string": ({"error": "boom"}, ": boom", False),
    "no-message": ({"error": {"code": "x", "where": "路"}}, '{"code": "x", "where": "路"}', False),
    "empty-message": ({"error": {"message": "", "code": 1}}, '{"message": "", "code": 1}', False),
}


@pytest.mark.parametrize("name", REPORTS)
def test_sse_error_payload_is_an_error(name):
    """An error inside the stream ends it, with the provider's own words."""
    from pi_course.providers.chunks import ProviderError

    payload, shown, retryable = REPORTS[name]
    with pytest.raises(ProviderError) as caught:
        read_openai(sse(delta(content="a"), payload))
    assert str(caught.value).startswith("The provider reported an error: ")
    assert shown in str(caught.value)
    assert caught.value.retryable is retryable


def test_sse_error_event_is_an_error_by_its_name():
    """An event named error counts, whatever its data are."""
    from pi_course.providers.chunks import ProviderError

    for data in ('{"message": "gone"}', '{"error": {"message": "gone"}}', "gone"):
        with pytest.raises(ProviderError) as caught:
            read_openai(f"event: error\ndata: {data}\n\n".encode())
        assert str(caught.value) == "The provider reported an error: gone"


TOLERATED = {
    "null-content": [delta(content=None), delta(content="a")],
    "null-everything": [delta(content="a", tool_calls=None, role=None, refusal=None)],
    "role-and-text": [delta(role="assistant", content="a")],
    "unknown-fields": [{"id": "x", "new": {"a": [1]}, **delta(content="a", mood="good")}],
    "reasoning": [delta(reasoning_details=[{"type": "reasoning.encrypted"}]), delta(content="a")],
    "null-choices": [{"choices": None}, delta(content="a")],
    "no-choices": [{"prompt_filter_results": []}, delta(content="a")],
    "null-delta": [{"choices": [{"delta": None}]}, delta(content="a")],
    "no-delta": [{"choices": [{"index": 0}]}, delta(content="a")],
    "null-usage": [{**delta(content="a"), "usage": None}],
    "null-error": [{**delta(content="a"), "error": None}],
    "no-tool-calls": [delta(content="a", tool_calls=[])],
    "blank-event": ["", delta(content="a"), " "],
}


@pytest.mark.parametrize("name", TOLERATED)
def test_sse_harmless_payloads_are_tolerated(name):
    """What says nothing, or nothing that we read, does no harm."""
    # Pi, report 5819
    # Pi, report 5114
    chunks = read_openai(sse(*TOLERATED[name], delta("stop", content="")))

    assert [chunk for chunk in chunks if chunk != text_chunk("")] == [
        text_chunk("a"),
        finish("stop"),
    ]


def test_sse_other_event_names_are_tolerated():
    """Names are not looked at, but what holds no choices is skipped when it has one."""
    body = (
        b"event: ping\ndata: pong\n\n"
        b'event: metrics\ndata: {"ms": 3}\n\n'
        b"id: 7\nretry: 10\n: comment\n\n"
        b"event: chunk\n" + sse(delta("stop", content="a"))
    )

    assert read_openai(body) == [text_chunk("a"), finish("stop")]


@pytest.mark.parametrize(
    "payloads",
    [
        [delta("stop"), {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}],
        [{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}, delta("stop")],
        [{**delta("stop"), "usage": {"prompt_tokens": 3, "completion_tokens": 1}}],
        [
            {"usage": {"prompt_tokens": 3}},
            {**delta("stop"), "usage": {"completion_tokens": 1, "prompt_tokens": None}},
            {"choices": [], "usage": None},
        ],
        [
            {
                "choices": [
                    {"finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
                ]
            }
        ],
    ],
    ids=["trailing", "first", "beside-the-reason", "in-parts", "in-the-choice"],
)
def test_sse_usage_is_merged_wherever_it_comes(payloads):
    """Usage joins the one finish chunk; null never overwrites a number."""
    # Pi, report 2017
    assert read_openai(sse(*payloads)) == [finish("stop", input=3, output=1)]


def test_sse_finish_chunk_comes_once_and_at_the_end():
    """At [DONE] or at the end of the body; empty content may follow the reason it waits for."""
    reason = delta("stop", content="a")

    assert read_openai(sse(reason)) == [text_chunk("a"), finish("stop")]
    assert read_openai(sse(reason, done=False)) == [text_chunk("a"), finish("stop")]
    assert read_openai(sse(reason, delta("stop"))) == [text_chunk("a"), finish("stop")]
    assert read_openai(sse(reason, delta(content=""))) == [text_chunk("a"), finish("stop")]
    assert read_openai(sse(delta(content="a"))) == [text_chunk("a")]
    assert read_openai(b"") == []
    assert read_openai(sse(delta(content="a"), done=False) + b"data: {") == [text_chunk("a")]


def test_sse_nothing_is_read_after_done():
    """Whatever follows [DONE] is not even looked at."""
    body = sse(delta("stop")) + b"data: rubbish\n\n" + sse(delta("length"))

    assert read_openai(body) == [finish("stop")]


def tool_chunks(*deltas):
    """(index, id, name, arguments) of the tool chunks of deltas that hold tool_calls."""
    chunks = read_openai(sse(*(delta(tool_calls=entries) for entries in deltas)))
    return [(c.index, c.id, c.name, c.arguments_delta) for c in chunks]


def test_sse_tool_pieces_keep_the_providers_index():
    """Indexes may start at 1 and come in any order; null arguments are no arguments."""
    null = {"index": 2, "id": "b", "function": {"name": "ls", "arguments": None}}

    assert tool_chunks([piece("{}", "a", "read", index=1), null]) == [
        (1, "a", "read", "{}"),
        (2, "b", "ls", None),
    ]


def test_sse_piece_without_a_function_is_skipped():
    """There is nothing in it to add to a call."""
    assert tool_chunks([{"index": 0, "id": "a"}, {"index": 0, "function": None}]) == []


def test_sse_missing_index_falls_back_to_the_id_then_to_the_position():
    """Tolerated, although the format demands an index: id first, then the place in the list."""
    bare = {"index": None}

    assert tool_chunks(
        [piece("{", "a", "read") | bare, piece("[", "b", "grep") | bare],
        [piece("1") | bare, piece("2") | bare],
        [piece("3", "b") | bare],
        [piece("4", "b") | bare, piece("5", "a") | bare],
    ) == [
        (0, "a", "read", "{"),
        (1, "b", "grep", "["),
        (0, None, None, "1"),
        (1, None, None, "2"),
        (1, "b", None, "3"),
        (1, "b", None, "4"),
        (0, "a", None, "5"),
    ]


def test_sse_calls_without_an_index_one_after_the_other():
    """A new id opens a new call although it stands at the first place; its pieces follow it."""
    bare = {"index": None}

    assert tool_chunks(
        [piece("{", "a", "read") | bare],
        [piece("}") | bare],
        [piece("[", "b", "grep") | bare],
        [piece("]") | bare],
        [piece("{}", name="ls") | bare, piece("{}", name="ls") | bare],
    ) == [
        (0, "a", "read", "{"),
        (0, None, None, "}"),
        (1, "b", "grep", "["),
        (1, None, None, "]"),
        (1, None, "ls", "{}"),
        (2, None, "ls", "{}"),
    ]


def test_sse_and_adapter_together_read_the_example():
    """From bytes to the final message, offline."""
    chunks = read_openai(openai_main_line())
    message = final(*chunks)

    assert message.content == (call(raw='{"path":"README.md"}'),)
    assert message.usage.total_tokens == 11


# Lab 5.4: the HTTP request and the key


def openai_transport(handler=None, **options):
    """A transport whose client calls `handler` in place of a network."""
    from pi_course.providers.openai_compatible import create_openai_compatible_transport

    options = {"base_url": "http://model.test/v1", "api_key": KEY} | options
    if handler is not None:
        options["client"] = httpx.AsyncClient(transport=httpx.MockTransport(handler))
    return create_openai_compatible_transport(**options)


REQUEST = {"model": "tiny-1", "messages": [{"role": "user", "content": "hi"}]}


async def gather(transport, request=None, signal=None):
    return [chunk async for chunk in transport.stream(request or REQUEST, signal=signal)]


def answer(body=b"", status=200, **options):
    """A handler that always answers with this, and keeps the requests."""
    asked = []

    def handler(request):
        asked.append(request)
        return httpx.Response(status, content=body, **options)

    handler.asked = asked
    return handler


def failure(handler=None, **options):
    """The error that a stream of this transport ends in."""
    from pi_course.providers.chunks import ProviderError

    try:
        chunks = run(gather(openai_transport(handler, **options)))
    except ProviderError as error:
        return error
    raise AssertionError(f"no error came, but {chunks}")


@pytest.mark.parametrize("slashes", ["", "/", "///"], ids=["none", "one", "three"])
def test_fetch_transport_sends_the_request(slashes):
    """POST to the base without trailing slashes, three headers, the request and two more keys."""
    handler = answer(sse(delta("stop", content="a")))
    chunks = run(gather(openai_transport(handler, base_url="http://model.test/v1" + slashes)))
    (asked,) = handler.asked

    assert chunks == [text_chunk("a"), finish("stop")]
    assert (asked.method, str(asked.url)) == ("POST", "http://model.test/v1/chat/completions")
    assert asked.headers["accept"] == "text/event-stream"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == "application/json"
    assert json.loads(asked.content) == {
        **REQUEST,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream" not in REQUEST


def test_fetch_transport_speaks_https_as_well():
    """The scheme of the base URL is kept."""
    handler = answer(sse(delta("stop")))
    run(gather(openai_transport(handler, base_url="https://model.test/v1")))

    assert str(handler.asked[0].url) == "https://model.test/v1/chat/completions"


@pytest.mark.parametrize("key", [None, ""], ids=["none", "empty"])
def test_fetch_transport_without_a_key_sends_no_header(key):
    """Local servers need none."""
    # Pi, report 7030
    handler = answer(sse(delta("stop")))
    run(gather(openai_transport(handler, api_key=key)))

    assert "authorization" not in handler.asked[0].headers


def test_fetch_transport_key_is_in_one_header_and_nowhere_else():
    """Not in the URL, not in the body, not in a second header, not in a repr."""
    handler = answer(sse(delta("stop")))
    transport = openai_transport(handler)
    run(gather(transport))
    (asked,) = handler.asked

    assert [name for name, value in asked.headers.items() if KEY in value] == ["authorization"]
    assert KEY not in str(asked.url)
    assert KEY.encode() not in asked.content
    assert KEY not in repr(transport) + repr(vars(make_model(transport)))


AGAIN = {408, 409, 429, 500, 503, 529}


@pytest.mark.parametrize("status", [*AGAIN, 307, 400, 401, 404, 410], ids=str)
def test_fetch_transport_status_is_an_error(status):
    """A status that is not 2xx gives the status, the URL and whether to try again."""
    error = failure(answer(b'{"error": {"message": "says why"}}', status))

    told = f"HTTP {status} from http://model.test/v1/chat/completions: says why"
    assert str(error) == told + " (retryable)" * (status in AGAIN)
    assert (error.status, error.retryable) == (status, status in AGAIN)


@pytest.mark.parametrize(
    ("header", "seconds", "shown"),
    [
        ("7", 7.0, "after 7 s"),
        ("2.5", 2.5, "after 2.5 s"),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0, "after 30 s"),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0, "after 0 s"),
        ("soon", None, "(retryable)"),
        ("Wed, 99 Oct 2026 07:28:30 GMT", None, "(retryable)"),
    ],
    ids=["seconds", "fraction", "date", "past", "no-number", "no-date"],
)
def test_fetch_transport_reports_retry_after(header, seconds, shown):
    """The wait that the server asks for is reported; nothing waits here."""
    sent = "Wed, 21 Oct 2026 07:28:00 GMT"  # by the server's clock, which may be another than ours
    handler = answer(b"busy", 429, headers={"retry-after": header, "date": sent})
    error = failure(handler)

    assert (error.retry_after, error.retryable) == (seconds, True)
    assert shown in str(error)
    assert len(handler.asked) == 1


def test_fetch_transport_body_of_an_error_is_redacted_and_then_cut():
    """A server that echoes the key does not put it on the screen, not even half of it."""
    limit = 500
    for before in range(limit - len(KEY) - 2, limit + 2):
        error = failure(answer(b"x" * before + KEY.encode() + b"y" * 9000, 400))
        assert KEY[:6] not in str(error)
        assert str(error).endswith("…")
        assert len(str(error)) < limit + 200
    assert "[redacted]" in str(failure(answer(b"bad key " + KEY.encode(), 401)))


def test_fetch_transport_key_is_redacted_in_every_spelling():
    """As JSON or as a URL would write it, too."""
    key = 'a"b\\c/d+e%f'
    spellings = [key, json.dumps(key)[1:-1], "a%22b%5Cc%2Fd%2Be%25f", repr(key)[1:-1]]
    for secret, spelling in [*((key, spelling) for spelling in spellings), ("50%", "50%25")]:
        error = failure(answer(f"key <{spelling}>".encode(), 401), api_key=secret)
        assert str(error).endswith("key <[redacted]>")


def test_fetch_transport_body_of_an_error_is_read_in_pieces():
    """The error may come in several reads; without a key its text stays as it is."""

    async def pieces():
        yield b'{"error": {"mess'
        yield b'age": "whole \xff text"}}'

    async def drop():
        yield b"half"
        raise httpx.ReadError("reset")

    def told(body, status=400):
        return str(failure(lambda _: httpx.Response(status, content=body), api_key=None))

    start = "HTTP 400 from http://model.test/v1/chat/completions: "
    assert told(pieces()) == start + "whole \ufffd text"
    assert told(drop()) == start + "half"
    assert told(b"") == start + "the body is empty"
    assert told(b'{"error": "short"}') == start + "short"
    assert told(b'{"error": {"code": 7}}') == start + '{"error": {"code": 7}}'
    assert told(b"two\n  lines") == start + "two lines"


def test_fetch_transport_endless_error_body_is_not_read_to_its_end():
    """An error page is read up to a limit, whatever its size."""
    sent = []

    async def endless():
        while len(sent) < 500:
            sent.append(1)
            yield b"x" * 10_000
            await asyncio.sleep(0)

    def handler(request):
        return httpx.Response(500, content=endless())

    assert "HTTP 500" in str(failure(handler))
    assert len(sent) < 100


def shown_everywhere(error):
    """All that a traceback can show, with the local variables of each frame."""
    seen = []
    while error is not None:
        details = traceback.TracebackException.from_exception(error, capture_locals=True)
        # The test's own frame holds the key, of course: look at the frames of pi_course.
        for frame in details.stack:
            if "pi_course" in frame.filename.replace("\\", "/").split("/"):
                seen.append(f"{frame.line} {frame.locals}")
        seen.append(f"{error!r} {error} {error.args}")
        error = error.__cause__ or error.__context__
    return "\n".join(seen)


def test_fetch_transport_key_never_gets_out(caplog):
    """Not in the error, its cause, its traceback with locals, nor in any log record."""

    def handler(request):
        raise httpx.ConnectError(f"refused with {request.headers['authorization']}")

    caplog.set_level(logging.DEBUG)
    error = failure(handler)
    shown = shown_everywhere(error)

    assert "[redacted]" in str(error)
    assert KEY not in shown
    assert error.__cause__ is None and error.__context__ is None
    echoed = failure(answer(sse({"choices": KEY})))
    assert "choices must be a list, found '[redacted]'" in str(echoed)
    assert KEY not in shown_everywhere(echoed)
    assert KEY not in caplog.text
    message = streamed(openai_transport(handler))[1]
    assert KEY not in repr(message)
    assert "[redacted]" in message.error_message


BAD_BASES = {
    "no-scheme": ("localhost:8000/v1", "must begin with http:// or https://, as in "),
    "relative": ("/v1", "must begin with http:// or https://, as in "),
    "ftp": ("ftp://host/v1", "must begin with http:// or https://, as in "),
    "no-host": ("http:///v1", "has no host, as in "),
    "query": ("http://host/v1?key=1", "has a query: the path is appended to it, as in "),
    "empty-query": ("http://host/v1?", "has a query: the path is appended to it, as in "),
    "fragment": ("http://host/v1#top", "has a fragment: the path is appended to it, as in "),
    "password": ("http://me:secret@host/v1", "must not hold a user or password: "),
    "port": ("http://host:port/v1", "is not a URL: "),
}


@pytest.mark.parametrize("name", BAD_BASES)
def test_fetch_transport_refuses_a_base_url_that_cannot_work(name):
    """Said at once, with what to write instead, and without a password."""
    from pi_course.providers.chunks import ProviderError

    base_url, problem = BAD_BASES[name]
    with pytest.raises(ProviderError) as caught:
        openai_transport(base_url=base_url)
    assert str(caught.value).startswith(f"base_url {problem}")
    assert "secret" not in str(caught.value)


def test_fetch_transport_takes_every_key_that_a_header_can_hold():
    """All printable characters of ASCII; the key object itself shows nothing of them."""
    from pi_course.providers.api_key import ApiKey

    key = "".join(map(chr, range(33, 127)))
    handler = answer(sse(delta("stop")))
    run(gather(openai_transport(handler, api_key=key)))

    assert handler.asked[0].headers["authorization"] == f"Bearer {key}"
    assert repr(ApiKey(key)) == "ApiKey([redacted])"
    assert repr(ApiKey(None)) == "ApiKey(None)"


@pytest.mark.parametrize(
    "bad", ["\n", "\r", "\x7f", "é", " "], ids=["lf", "cr", "delete", "accent", "blank"]
)
def test_fetch_transport_refuses_a_key_that_is_no_header(bad):
    """A key with a line end would become a header of its own; the message shows where, not what."""
    from pi_course.providers.chunks import ProviderError

    with pytest.raises(ProviderError, match=r"position 3") as caught:
        openai_transport(api_key=f"sk-{bad}rest")
    assert "sk-" not in str(caught.value) and "rest" not in str(caught.value)
    with pytest.raises(ProviderError, match=r"position 3"):
        openai_transport(api_key=f"sk-{bad}")  # copied with it, at the end


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "text/plain"),
        (b"<html><body>Welcome</body></html>", "text/html"),
        (b'{"choices": [{"message": {"content": "hi"}}]}', "application/json"),
        (b": only a comment\n\n", "text/event-stream"),
    ],
    ids=["empty", "html", "whole-json", "comments"],
)
def test_fetch_transport_body_without_an_event_is_an_error(body, kind):
    """A page, an empty body or a reply that is not streamed: the error says what came."""
    error = failure(answer(body, headers={"content-type": kind}))

    assert "no event" in str(error)
    assert kind in str(error)
    assert body[:20].decode().strip() in str(error)
    assert "base_url" in str(error)


def test_fetch_transport_reads_a_gzip_body():
    """Some proxies compress although nobody asked; any status that begins with 2 is good."""
    body = gzip.compress(sse(delta("stop", content="读取")))
    packed = answer(body, status=203, headers={"content-encoding": "gzip"})
    chunks = run(gather(openai_transport(packed)))

    assert chunks == [text_chunk("读取"), finish("stop")]
    assert "gzip" not in str(failure(answer(b"zz", headers={"content-encoding": "gzip"})))[:4]


def test_fetch_transport_cuts_lines_at_line_ends_only():
    """U+2028, U+0085 and the like inside a text are text, also when they come over HTTP."""
    # Pi, report 1911
    said = "a\u2028b\u2029c\x85d"
    body = sse(json.dumps(delta("stop", content=said), ensure_ascii=False))

    assert run(gather(openai_transport(answer(body)))) == [text_chunk(said), finish("stop")]


def test_fetch_transport_does_not_follow_redirects():
    """A redirect could carry the key to another host: it is an error, also for a lax client."""
    from pi_course.providers.openai_compatible import create_openai_compatible_transport

    handler = answer(b"", 307, headers={"location": "http://elsewhere.test/"})
    client = httpx.AsyncClient(transport=httpx.MockTransport(handler), follow_redirects=True)
    transport = create_openai_compatible_transport(base_url="http://model.test/v1", client=client)
    message = streamed(transport)[1]

    assert "HTTP 307" in message.error_message
    assert "http://elsewhere.test/" in message.error_message
    assert len(handler.asked) == 1


FAILURES = {
    "connect": (httpx.ConnectTimeout(""), "no connection to model.test within 3 s", True),
    "idle": (httpx.ReadTimeout(""), "sent no byte for 4 s", True),
    "write": (httpx.WriteTimeout(""), "took no byte for 4 s", True),
    "pool": (httpx.PoolTimeout(""), "no free connection", True),
    "half-body": (httpx.RemoteProtocolError("peer closed"), "broke off", True),
    "reset": (httpx.ReadError("reset"), "broke off", True),
    "refused": (httpx.ConnectError("refused"), "no connection to model.test: refused", True),
    "tls": (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] x"), "TLS", False),
    "proxy": (httpx.ProxyError("407 Proxy Authentication Required"), "The proxy", False),
    "other": (RuntimeError("odd"), "RuntimeError: odd", False),
}


@pytest.mark.parametrize("name", FAILURES)
def test_fetch_transport_failures_have_a_sentence_each(name):
    """Connect, idle, drop, TLS and proxy: each says what happened and whether to try again."""
    raised, sentence, retryable = FAILURES[name]

    def handler(request):
        raise raised

    error = failure(handler, connect_seconds=3, idle_seconds=4)

    assert sentence in str(error)
    assert error.retryable is retryable


def test_fetch_transport_names_a_proxy_that_asks_for_a_login():
    """A 407 comes from the proxy, not from the model's server."""
    assert "proxy" in str(failure(answer(b"", 407)))


def test_fetch_transport_has_its_own_time_outs():
    """Idle and connect time, never a total one, and also over a client's five seconds."""
    # Pi, report 3715
    handler = answer(sse(delta("stop")))
    run(gather(openai_transport(handler, connect_seconds=3, idle_seconds=400)))
    run(gather(openai_transport(handler)))
    given, usual = (request.extensions["timeout"] for request in handler.asked)

    assert (given["connect"], given["read"]) == (3, 400)
    assert usual["read"] >= 120


def test_fetch_transport_abort_stays_an_abort():
    """Redaction and error texts must not turn an abort into something else."""
    from pi_course.abort import AbortController, Aborted

    controller = AbortController()
    handler = answer(sse(delta("stop", content="a")))
    transport = openai_transport(handler)

    async def abort_after_one():
        chunks = []
        with pytest.raises(Aborted):
            async for chunk in transport.stream(REQUEST, signal=controller.signal):
                chunks.append(chunk)
                controller.abort()
        return chunks

    assert run(abort_after_one()) == [text_chunk("a")]
    with pytest.raises(Aborted):
        run(gather(transport, signal=controller.signal))
    assert len(handler.asked) == 1


# Real sockets: a server in a few lines, on 127.0.0.1 and for one test each


@contextlib.asynccontextmanager
async def served(handle):
    """The base URL of a server that calls `handle(writer, gone)` once the request is read.

    `gone` is set when the client closes the connection.
    """
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        gone = asyncio.Event()
        watcher = asyncio.create_task(reader.read())
        watcher.add_done_callback(lambda _: gone.set())
        try:
            await handle(writer, gone)
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            watcher.cancel()
            writer.close()
            tasks.discard(asyncio.current_task())

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # a socket is closed in the turn of the loop after its writer


CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def network(body):
    return b"%x\r\n%b\r\n" % (len(body), body)


def test_fetch_transport_reads_over_a_real_socket(monkeypatch):
    """Two replies in pieces of seven bytes, past any proxy: each stream has a client of its own."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def handle(writer, gone):
        body = openai_main_line()
        writer.write(CHUNKED)
        for start in range(0, len(body), 7):
            writer.write(network(body[start : start + 7]))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def ask():
        async with served(handle) as url:
            model = make_model(openai_transport(base_url=url))
            return [(await settle(model.stream(context())))[1] for _ in range(2)]

    first, second = run(ask())
    assert first.content == (call(raw='{"path":"README.md"}'),)
    assert (second.content, second.error_message) == (first.content, None)


def test_fetch_transport_names_the_proxy_that_failed(monkeypatch):
    """For other hosts the proxy of the environment is used, and named without its password."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://me:hunter2@127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    error = failure(base_url="http://model.test/v1")

    assert "proxy 127.0.0.1:9" in str(error)
    assert "hunter2" not in str(error)


def test_fetch_transport_abort_closes_the_connection():
    """In mid-reply: closed within 100 ms, before the last event, no task left, text kept."""
    from pi_course.abort import AbortController

    controller = AbortController()
    closed = []

    async def handle(writer, gone):
        writer.write(CHUNKED + network(sse(delta(content="half"), done=False)))
        await writer.drain()
        await gone.wait()
        closed.append(time.monotonic())

    async def ask():
        async with served(handle) as url:
            before = asyncio.all_tasks()
            model = make_model(openai_transport(base_url=url))
            async for event in model.stream(context(), signal=controller.signal):
                if event.type == "text_delta":
                    aborted = time.monotonic()
                    controller.abort("enough")
            left = {t for t in asyncio.all_tasks() - before if "connected" not in repr(t)}
            left = {t for t in left if "StreamReader.read" not in repr(t)}
            while not closed:
                await asyncio.sleep(0.001)
            return event, left, closed[0] - aborted

    event, left, seconds = run(ask(), "an abort must close the connection")
    assert (event.type, event.reason) == ("error", "aborted")
    assert event.error.content[0].text == "half"
    assert left == set()
    assert seconds < 0.1


def test_fetch_transport_abort_while_it_waits_for_headers():
    """A server that never answers is left at once, too."""
    from pi_course.abort import AbortController

    controller = AbortController()

    async def handle(writer, gone):
        controller.abort()
        await gone.wait()

    async def ask():
        async with served(handle) as url:
            model = make_model(openai_transport(base_url=url))
            return await settle(model.stream(context(), signal=controller.signal))

    assert run(ask())[1].stop_reason == "aborted"


def test_fetch_transport_dropped_connection_keeps_the_text():
    """The server goes away in mid-reply: an error, retryable, with the text that had come."""
    # Pi, report 1961
    # Pi, report 6133

    async def handle(writer, gone):
        writer.write(CHUNKED + network(sse(delta(content="half"), done=False)) + b"5\r\nda")
        await writer.drain()
        writer.close()

    async def ask():
        async with served(handle) as url:
            return await settle(make_model(openai_transport(base_url=url)).stream(context()))

    _, message = run(ask())
    assert message.stop_reason == "error"
    assert message.content[0].text == "half"
    assert "broke off" in message.error_message and "(retryable)" in message.error_message


def test_fetch_transport_idle_time_out_is_no_total_time_out():
    """Slow but steady is fine; silence for longer than the idle time is an error."""
    # Pi, report 3715

    async def slow(writer, gone):
        writer.write(CHUNKED)
        for _ in range(8):
            writer.write(network(b": still here\n\n"))
            await writer.drain()
            await asyncio.sleep(0.04)
        writer.write(network(sse(delta("stop", content="done"))) + b"0\r\n\r\n")

    async def silent(writer, gone):
        writer.write(CHUNKED + network(sse(delta(content="half"), done=False)))
        await writer.drain()
        await gone.wait()

    async def ask(handle):
        async with served(handle) as url:
            transport = openai_transport(base_url=url, idle_seconds=0.25)
            return (await settle(make_model(transport).stream(context())))[1]

    assert run(ask(slow)).content[0].text == "done"
    message = run(ask(silent))
    assert message.stop_reason == "error"
    assert "sent no byte for 0.25 s" in message.error_message
    assert message.content[0].text == "half"


def test_fetch_transport_tls_to_a_server_without_it():
    """https:// in front of a plain server is told apart from a dead one."""

    def plain(reader, writer):
        writer.write(b"HTTP/1.1 400 -\r\n\r\n")
        writer.close()

    async def ask():
        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await gather(openai_transport(base_url=f"https://127.0.0.1:{port}/v1"))

    from pi_course.providers.chunks import ProviderError

    with pytest.raises(ProviderError, match="TLS with 127.0.0.1 failed"):
        run(ask())


def test_fetch_transport_stops_at_done_and_closes():
    """[DONE] ends the reply although the server keeps the connection open."""

    async def handle(writer, gone):
        writer.write(CHUNKED + network(sse(delta("stop", content="a")) + b"data: rubbish\n\n"))
        await writer.drain()
        await gone.wait()

    async def ask():
        async with served(handle) as url:
            started = time.monotonic()
            chunks = await gather(openai_transport(base_url=url))
            return chunks, time.monotonic() - started

    chunks, seconds = run(ask())
    assert chunks == [text_chunk("a"), finish("stop")]
    assert seconds < 0.5


def test_fetch_transport_leaves_at_once_after_an_error_in_the_stream():
    """Nobody waits for a body that is of no use any more."""

    async def handle(writer, gone):
        writer.write(CHUNKED + network(sse({"error": "boom"}, done=False)))
        await writer.drain()
        await gone.wait()

    async def ask():
        async with served(handle) as url:
            started = time.monotonic()
            model = make_model(openai_transport(base_url=url))
            message = (await settle(model.stream(context())))[1]
            return message.error_message, time.monotonic() - started

    told, seconds = run(ask())
    assert told == "The provider reported an error: boom"
    assert seconds < 0.5


def test_fetch_transport_reads_on_to_the_end_of_the_body():
    """After [DONE] the end is waited for, but briefly: then the connection can be used again."""
    ends = []

    async def body():
        yield sse(delta("stop", content="a"))
        await asyncio.sleep(0)
        ends.append("end")

    def handler(request):
        return httpx.Response(200, content=body())

    assert run(gather(openai_transport(handler))) == [text_chunk("a"), finish("stop")]
    assert ends == ["end"]


def test_fetch_transport_body_may_end_without_done():
    """The end of the body is an end, too."""
    # Pi, report 1961
    body = sse(delta("stop", content="a"), done=False)

    assert run(gather(openai_transport(answer(body)))) == [text_chunk("a"), finish("stop")]


def test_fetch_transport_uses_the_given_client_and_leaves_it_open():
    """The caller's client is the caller's to close; a response is closed after each stream."""
    responses = []

    class Body(httpx.AsyncByteStream):
        closed = False

        async def __aiter__(self):
            yield sse(delta(content="a"), delta("stop"))

        async def aclose(self):
            self.closed = True

    def handler(request):
        responses.append(Body())
        return httpx.Response(200, stream=responses[-1])

    async def leave_early():
        transport = openai_transport(client=client)
        stream = transport.stream(REQUEST, signal=None)
        first = await anext(stream)
        await stream.aclose()
        return first, await gather(transport)

    client = httpx.AsyncClient(transport=httpx.MockTransport(handler))
    first, chunks = run(leave_early())
    assert first == text_chunk("a")
    assert chunks == [text_chunk("a"), finish("stop")]
    assert [body.closed for body in responses] == [True, True]
    assert client.is_closed is False


# Lab 5.5: the second provider


def anthropic(*messages):
    from pi_course.providers.anthropic_messages import to_anthropic_messages

    return to_anthropic_messages(context(*messages))


def test_anthropic_messages_of_the_example():
    """The same context in the other format; the prompt is not among the messages."""
    from pi_course.providers.anthropic_messages import to_anthropic_messages

    assert to_anthropic_messages(main_line()) == [
        {"role": "user", "content": [{"type": "text", "text": "读取 README.md"}]},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "call-1",
                    "name": "read",
                    "input": {"path": "README.md"},
                }
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call-1",
                    "content": [{"type": "text", "text": "# Project"}],
                }
            ],
        },
    ]


def test_anthropic_results_of_one_turn_are_one_user_message():
    """The format wants all results of a turn together; a failed one is marked."""
    sent = anthropic(
        assistant("Both.", call("a"), call("b", "ls"), stop_reason="toolUse"),
        result("a", content="1"),
        result("b", "ls", content="no such file", is_error=True),
        assistant(call("c"), stop_reason="toolUse"),
        result("c", content=""),
        user("thanks"),
        result("d", content="late"),
    )

    assert [message["role"] for message in sent] == [
        "assistant",
        "user",
        "assistant",
        "user",
        "user",
        "user",
    ]
    assert [block["type"] for block in sent[0]["content"]] == ["text", "tool_use", "tool_use"]
    assert [(b["tool_use_id"], b.get("is_error")) for b in sent[1]["content"]] == [
        ("a", None),
        ("b", True),
    ]
    assert sent[3]["content"] == [{"type": "tool_result", "tool_use_id": "c", "content": []}]
    assert sent[4]["content"] == [{"type": "text", "text": "thanks"}]


def test_anthropic_empty_text_is_not_sent():
    """The format refuses empty text blocks, and messages without a block."""
    sent = anthropic(user(""), user("", "hi"), assistant("", call("a")), assistant(""), result("a"))

    assert [message["content"] for message in sent] == [
        [{"type": "text", "text": "hi"}],
        [{"type": "tool_use", "id": "a", "name": "read", "input": {"path": "README.md"}}],
        [
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "content": [{"type": "text", "text": "# Project"}],
            }
        ],
    ]


def test_anthropic_failed_replies_follow_the_same_rule():
    """No text and no answered call: not sent. Otherwise without the calls nobody answered."""
    sent = anthropic(
        assistant(call("lost", raw='{"pa', arguments={}), stop_reason="aborted"),
        assistant("half", call("lost"), call("a"), stop_reason="error"),
        result("a"),
    )

    assert [[block["type"] for block in message["content"]] for message in sent] == [
        ["text", "tool_use"],
        ["tool_result"],
    ]


def test_anthropic_input_is_always_an_object():
    """The format takes no raw text: what was never parsed is sent as {}."""
    from pi_course.messages import ToolCall

    lost = ToolCall(id="b", name="ls", arguments=None)
    cut = call("a", arguments={}, raw='{"path":')
    (sent,) = anthropic(assistant(cut, lost, stop_reason="length"))

    assert [block["input"] for block in sent["content"]] == [{}, {}]


def test_anthropic_ids_use_the_letters_it_allows():
    """Ids of another provider are respelt, the same way on call and result."""
    sent = anthropic(assistant(call("a b+c/é"), stop_reason="toolUse"), result("a b+c/é"))

    assert sent[0]["content"][0]["id"] == "a_b_c__"
    assert sent[1]["content"][0]["tool_use_id"] == "a_b_c__"


def test_anthropic_tools():
    """The schema is called input_schema; without tools there is None."""
    from pi_course.providers.anthropic_messages import to_anthropic_tools

    assert to_anthropic_tools([tool()]) == [
        {
            "name": "read",
            "description": "Read a file",
            "input_schema": wrapped_tool()["function"]["parameters"],
        }
    ]
    assert to_anthropic_tools(None) is None
    assert to_anthropic_tools([]) is None


def anthropic_model(transport, **options):
    from pi_course.providers.anthropic_messages import create_anthropic_model

    return create_anthropic_model(
        provider="anthropic", model="large-1", transport=transport, **options
    )


def test_anthropic_request_has_a_limit_and_the_prompt_at_the_top():
    """max_tokens is required; system and tools are there only when there is something."""
    transport = Steps(finish())
    run_in_loop(lambda: anthropic_model(transport, max_tokens=99).stream(main_line()))
    run_in_loop(lambda: anthropic_model(transport).stream(context(user("hi"), tools=[tool()])))
    first, second = (request for request, _ in transport.asked)

    assert {key: first[key] for key in first if key != "messages"} == {
        "model": "large-1",
        "max_tokens": 99,
        "system": "Answer briefly.",
    }
    assert first["messages"] == anthropic(*main_line().messages)
    assert second["max_tokens"] >= 4096
    assert second["tools"][0]["name"] == "read"
    assert "system" not in second


def anthropic_transport(handler, **options):
    from pi_course.providers.anthropic_messages import create_anthropic_transport

    options = {"base_url": "http://model.test/", "api_key": KEY} | options
    client = httpx.AsyncClient(transport=httpx.MockTransport(handler))
    return create_anthropic_transport(client=client, **options)


def test_anthropic_transport_sends_its_own_headers():
    """POST /v1/messages, the key in x-api-key and nowhere else, the version named."""
    handler = answer(anthropic_body())
    run(gather(anthropic_transport(handler)))
    run(gather(anthropic_transport(handler, api_key=None)))
    asked, without = handler.asked

    assert (asked.method, str(asked.url)) == ("POST", "http://model.test/v1/messages")
    assert [name for name, value in asked.headers.items() if KEY in value] == ["x-api-key"]
    assert asked.headers["x-api-key"] == KEY
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert asked.headers["accept"] == "text/event-stream"
    assert json.loads(asked.content) == {**REQUEST, "stream": True}
    assert "x-api-key" not in without.headers


def event(type, **fields):
    return {"type": type, **fields}


def block_start(index, type="text", **fields):
    return event("content_block_start", index=index, content_block={"type": type, **fields})


def block_delta(index, type="text_delta", **fields):
    return event("content_block_delta", index=index, delta={"type": type, **fields})


def anthropic_sse(*payloads):
    return "".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n" for p in payloads).encode()


def stop(reason="end_turn", **usage):
    return [event("message_delta", delta={"stop_reason": reason}, usage=usage)] + [
        event("message_stop")
    ]


def anthropic_body():
    """The running example in the second provider's format."""
    return anthropic_sse(
        event("message_start", message={"usage": {"input_tokens": 9, "output_tokens": 1}}),
        event("ping"),
        block_start(0, "tool_use", id="call-1", name="read", input={}),
        block_delta(0, "input_json_delta", partial_json=""),
        block_delta(0, "input_json_delta", partial_json='{"path":'),
        block_delta(0, "input_json_delta", partial_json='"README.md"}'),
        event("content_block_stop", index=0),
        *stop("tool_use", output_tokens=2),
    )


def read_anthropic(*pieces):
    from pi_course.providers.anthropic_messages import AnthropicPayloadReader

    return read_with(AnthropicPayloadReader(), pieces)


def test_anthropic_stream_gives_the_same_message():
    """One layer hides both: the same final message as from the first provider."""
    chunks = every_cut(anthropic_body(), read_anthropic)
    one = final(*chunks)
    other = final(*read_openai(openai_main_line()))

    assert one.content == other.content
    assert (one.stop_reason, one.usage) == (other.stop_reason, other.usage)


def test_anthropic_model_and_transport_together():
    """From the context to the final message over both halves."""
    model = anthropic_model(anthropic_transport(answer(anthropic_body())))
    _, message = run_in_loop(lambda: model.stream(context(user("hi"))))

    assert (message.provider, message.model) == ("anthropic", "large-1")
    assert message.content == (call(raw='{"path":"README.md"}'),)
    assert message.stop_reason == "toolUse"


def test_anthropic_text_between_calls():
    """Text, call, text: chunks in order, gaps in the indexes are no matter."""
    body = anthropic_sse(
        block_start(0, text=""),
        block_delta(0, text="读"),
        block_start(2, "tool_use", id="a", name="ls"),
        block_start(3, text="start "),
        block_delta(3, text=SMILE),
        *stop(),
    )

    assert [chunk for chunk in read_anthropic(body) if chunk != text_chunk("")] == [
        text_chunk("读"),
        tool_chunk(2, None, id="a", name="ls"),
        text_chunk("start "),
        text_chunk(SMILE),
        finish("stop"),
    ]


REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


@pytest.mark.parametrize("reason", REASONS)
def test_anthropic_stop_reasons(reason):
    """Each of its reasons is one of ours."""
    assert read_anthropic(anthropic_sse(*stop(reason))) == [finish(REASONS[reason])]


def anthropic_refused(*payloads):
    return refused(read=lambda _: read_anthropic(anthropic_sse(*payloads)))


A_STOP_REASON = "delta.stop_reason must be one of " + ", ".join(REASONS)
ANTHROPIC_PROBLEMS = {
    "text": ([block_delta(0, text=7)], "delta.text must be a string"),
    "json": (
        [block_delta(0, "input_json_delta", partial_json={})],
        "delta.partial_json must be a string",
    ),
    "index-negative": ([block_delta(-1, "input_json_delta")], f"index {A_COUNT}"),
    "index-missing": ([block_delta(None, "input_json_delta")], f"index {A_COUNT}"),
    "index-bool": ([block_start(True, "tool_use")], f"index {A_COUNT}"),
    "id": ([block_start(0, "tool_use", id=1)], "content_block.id must be a string"),
    "name": ([block_start(0, "tool_use", name=1)], "content_block.name must be a string"),
    "first-text": ([block_start(0, text=1)], "content_block.text must be a string"),
    "kind": ([block_start(0, 1)], "content_block.type must be a string"),
    "block": (
        [event("content_block_start", content_block=1)],
        "content_block must be an object",
    ),
    "delta": ([event("content_block_delta", delta=1)], "delta must be an object"),
    "stop-delta": ([event("message_delta", delta=1)], "delta must be an object"),
    "message": ([event("message_start", message=1)], "message must be an object"),
    "first-usage": (
        [event("message_start", message={"usage": 1})],
        "message.usage must be an object",
    ),
    "input": (
        [event("message_start", message={"usage": {"input_tokens": "1"}})],
        f"message.usage.input_tokens {A_COUNT}",
    ),
    "output": (
        [event("message_delta", usage={"output_tokens": -1})],
        f"usage.output_tokens {A_COUNT}",
    ),
    "refusal": (stop("refusal"), A_STOP_REASON),
    "reason-list": (stop(["end_turn"]), A_STOP_REASON),
    "changed": (
        stop("end_turn")[:1] + stop("max_tokens"),
        "delta.stop_reason changed from 'stop' to 'max_tokens'",
    ),
    "late-delta": (
        stop()[:1] + [block_delta(0, text="x")],
        "content_block_delta came after the stop reason 'stop'",
    ),
    "late-block": (
        stop()[:1] + [block_start(1)],
        "content_block_start came after the stop reason 'stop'",
    ),
    "type": ([{"type": 7}], "type must be a string"),
}


@pytest.mark.parametrize("name", ANTHROPIC_PROBLEMS)
def test_anthropic_payload_checks_name_the_path(name):
    """The second border is as strict as the first."""
    payloads, problem = ANTHROPIC_PROBLEMS[name]

    text = anthropic_refused(*payloads)

    assert text.startswith(f"Invalid provider chunk: {problem}")
    assert problem.endswith("'") or ", found " in text.removeprefix(problem)


def test_anthropic_unknown_events_are_tolerated():
    """New events, new kinds of blocks and deltas, pings: skipped."""
    # Pi, report 3708
    body = anthropic_sse(
        event("ping"),
        event("brand_new", data=[1]),
        block_start(0, "thinking", thinking=""),
        block_delta(0, "thinking_delta", thinking="hm"),
        block_delta(0, "signature_delta", signature="x"),
        block_delta(1, text="a"),
        event("message_delta", delta=None, usage=None),
        *stop(),
    )

    assert read_anthropic(b"data: \n\n" + body) == [text_chunk("a"), finish("stop")]


def test_anthropic_ends_of_the_other_format_are_tolerated():
    """Proxies that speak both formats put [DONE] in as well, with a name or without."""
    # Pi, report 3708
    done = b"event: done\ndata: [DONE]\n\ndata: [DONE]\n\nevent: took\ndata: 3 ms\n\n"
    body = done + anthropic_sse(block_delta(0, text="a"), *stop())

    assert read_anthropic(body) == [text_chunk("a"), finish("stop")]


def test_anthropic_block_may_start_with_content():
    """Text and arguments that come with the start of their block are not lost."""
    # Pi, report 7358
    body = anthropic_sse(
        block_start(0, text="He"),
        block_delta(0, text="llo"),
        block_start(1, "tool_use", id="call-1", name="read", input={"path": "\u8bfb me"}),
        *stop("tool_use"),
    )
    assert read_anthropic(body) == [
        text_chunk("He"),
        text_chunk("llo"),
        tool_chunk(1, '{"path":"\u8bfb me"}', id="call-1", name="read"),
        finish("tool_calls"),
    ]


def test_anthropic_names_of_events_are_not_needed():
    """The payload says its own type, so a server that leaves the names out is understood."""
    body = b"".join(line + b"\n" for line in anthropic_body().split(b"\n") if b"event:" not in line)

    assert read_anthropic(body) == read_anthropic(anthropic_body())


def test_anthropic_end_without_message_stop_is_an_error():
    """A cut stream is no reply, even after its stop reason; after the stop nothing is read."""
    # Pi, report 3936
    from pi_course.providers.chunks import ProviderError

    for payloads in ([], [block_delta(0, text="half")], stop()[:1]):
        with pytest.raises(
            ProviderError, match="^The stream ended without message_stop "
        ) as caught:
            read_anthropic(anthropic_sse(*payloads))
        assert caught.value.retryable is True
    assert read_anthropic(anthropic_sse(*stop()) + b"data: rubbish\n\n") == [finish("stop")]
    assert read_anthropic(anthropic_sse(event("message_stop"))) == []


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [("overloaded_error", True), ("rate_limit_error", True), ("invalid_request_error", False)],
    ids=["overloaded", "limit", "invalid"],
)
def test_anthropic_error_event_is_an_error(kind, retryable):
    """An error event ends the reply in its own words."""
    from pi_course.providers.chunks import ProviderError

    with pytest.raises(ProviderError, match="Overloaded") as caught:
        read_anthropic(anthropic_sse(event("error", error={"type": kind, "message": "Overloaded"})))
    assert caught.value.retryable is retryable


def test_anthropic_usage_counts_cached_input_too():
    """Cached input fills the context as well; a later number replaces, never adds."""
    body = anthropic_sse(
        event(
            "message_start",
            message={
                "usage": {
                    "input_tokens": 10,
                    "cache_read_input_tokens": 60,
                    "cache_creation_input_tokens": 30,
                    "output_tokens": 1,
                }
            },
        ),
        event("message_delta", delta={}, usage={"output_tokens": 5, "input_tokens": None}),
    )
    end = anthropic_sse(*stop("end_turn", output_tokens=7))
    corrected = anthropic_sse(*stop("end_turn", output_tokens=7, input_tokens=120))

    assert read_anthropic(body + end) == [finish("stop", input=100, output=7)]
    assert read_anthropic(body + corrected) == [finish("stop", input=120, output=7)]
