"""Chapter 03: the agent's own messages.

Lab 3.1 has the first three tests, lab 3.2 the fourth, lab 3.3 all others.
"""

import asyncio
import copy
import dataclasses
import inspect
import json
import math
import pickle
import time
from typing import Protocol, get_args

import pytest

HALF = "\ud83d"  # half of a surrogate pair: no encoding can hold it


def run(coro, sentence="nothing arrived within 1 s: does the stream end by itself?", seconds=1):
    async def limited():
        try:
            return await asyncio.wait_for(coro, seconds)
        except TimeoutError:
            raise AssertionError(sentence) from None

    return asyncio.run(limited())


def user_json():
    return {
        "role": "user",
        "content": [
            {"type": "text", "text": "Please read README.md and tell me the project name."}
        ],
        "timestamp": 1000,
    }


def assistant_json():
    return {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I will read README.md first."},
            {
                "type": "toolCall",
                "id": "call_1",
                "name": "read",
                "arguments": {"path": "README.md"},
            },
        ],
        "provider": "scripted",
        "model": "scripted-v1",
        "usage": {"input": 18, "output": 12, "totalTokens": 30},
        "stopReason": "toolUse",
        "timestamp": 1010,
    }


def result_json():
    return {
        "role": "toolResult",
        "toolCallId": "call_1",
        "toolName": "read",
        "content": [{"type": "text", "text": "# tiny-pi\nA small agent runtime."}],
        "isError": False,
        "timestamp": 1020,
    }


def system_json():
    return {
        "role": "system",
        "content": "You are Pi.",
        "sections": {"rules": "RULE v2", "scratch": None},
        "timestamp": 990,
    }


def full_json():
    """One message of each role with every field there is."""
    assistant = assistant_json()
    assistant["content"][1]["rawArguments"] = '{"path":"README.md"}'
    assistant["errorMessage"] = "socket reset"
    result = result_json() | {"details": {"lines": [1, 2], "cut": None}}
    return [system_json(), user_json(), assistant, result]


def readme():
    """The README round trip as three values."""
    from pi_course.messages import (
        AssistantMessage,
        TextContent,
        ToolCall,
        ToolResultMessage,
        Usage,
        UserMessage,
    )

    request = "Please read README.md and tell me the project name."
    return [
        UserMessage(content=[TextContent(text=request)], timestamp=1000),
        AssistantMessage(
            content=[
                TextContent(text="I will read README.md first."),
                ToolCall(id="call_1", name="read", arguments={"path": "README.md"}),
            ],
            provider="scripted",
            model="scripted-v1",
            usage=Usage(input=18, output=12, total_tokens=30),
            stop_reason="toolUse",
            timestamp=1010,
        ),
        ToolResultMessage(
            tool_call_id="call_1",
            tool_name="read",
            content=[TextContent(text="# tiny-pi\nA small agent runtime.")],
            is_error=False,
            timestamp=1020,
        ),
    ]


def worked_example():
    """Three system messages at 10, 20 and 30 with a conversation between them."""
    from pi_course.messages import AgentMessage, SystemMessage, user_message

    _, asked, answered = readme()
    first = {"rules": "RULE v1", "scratch": "SCRATCH"}
    second = {"rules": "RULE v2", "scratch": None}
    messages: list[AgentMessage] = [
        SystemMessage(content="You are Pi.", sections=first, timestamp=10),
        user_message("go"),
        asked,
        SystemMessage(content="", sections=second, timestamp=20),
        answered,
        SystemMessage(content="Prefer small diffs.", timestamp=30),
    ]
    return messages


def system(content="", sections=None, timestamp=1):
    from pi_course.messages import SystemMessage

    return SystemMessage(content=content, sections=sections, timestamp=timestamp)


def call(call_id="call_1", name="read", arguments=None, raw=None):
    from pi_course.messages import ToolCall

    return ToolCall(id=call_id, name=name, arguments=arguments or {}, raw_arguments=raw)


def asking(*ids):
    """An assistant message with one call for each id."""
    from pi_course.messages import assistant_message

    return assistant_message([call(call_id) for call_id in ids], "toolUse")


def answer(call_id):
    from pi_course.messages import ToolResultMessage, text

    return ToolResultMessage(
        tool_call_id=call_id, tool_name="read", content=[text("")], is_error=False, timestamp=1
    )


def example_events():
    """One event of each type."""
    from pi_course.messages import Done, Error, Start, TextDelta, ToolCallDelta, ToolCallEnd
    from pi_course.messages import assistant_message as make

    partial = make([], timestamp=5)
    return [
        Start(partial),
        TextDelta(0, "Hel", partial),
        ToolCallDelta(1, "{", partial),
        ToolCallEnd(1, call(), partial),
        Done("stop", partial),
        Error("error", make([], "error", timestamp=5)),
    ]


def put(value, path, new):
    """A copy of a JSON value with one field changed; new=... takes the field out."""
    value = json.loads(json.dumps(value))
    *way, last = path.split(".")
    at = value
    for step in way:
        at = at[int(step) if step.isdigit() else step]
    if new is ...:
        del at[last]
    else:
        at[last] = new
    return value


def refusal(value, path):
    """The path, if parse_message refuses the value and names it; otherwise what it did."""
    from pi_course.messages import parse_message

    try:
        return f"accepted as {parse_message(value)!r}"
    except ValueError as error:
        paths = [".".join(map(str, item["loc"])) for item in error.errors()]
        return path if path in paths else f"refused, but at {paths}"


def refusals(new, *paths):
    """What is refused when one field after the other becomes `new`, as role: [paths]."""
    outcome = []
    for path in paths:
        role, _, field = path.partition(".")
        message = next(value for value in full_json() if value["role"] == role)
        named = path.replace("content.1.", "content.1.toolCall.") if role == "assistant" else path
        named = named.replace("content.0.", "content.0.text.") if role == "assistant" else named
        outcome.append(path if refusal(put(message, field, new), named) == named else f"not {path}")
    return outcome


STRINGS = [
    "system.content",
    "user.content.0.text",
    "assistant.content.0.text",
    "assistant.content.1.id",
    "assistant.content.1.name",
    "assistant.content.1.rawArguments",
    "assistant.provider",
    "assistant.model",
    "assistant.errorMessage",
    "toolResult.toolCallId",
    "toolResult.toolName",
    "toolResult.content.0.text",
]
NUMBERS = [
    "system.timestamp",
    "user.timestamp",
    "assistant.usage.input",
    "assistant.usage.output",
    "assistant.usage.totalTokens",
    "assistant.timestamp",
    "toolResult.timestamp",
]
REQUIRED = [
    "system.content",
    "user.content",
    "user.content.0.text",
    "assistant.content",
    "assistant.content.0.text",
    "assistant.content.1.id",
    "assistant.content.1.name",
    "assistant.content.1.arguments",
    "assistant.provider",
    "assistant.model",
    "assistant.usage",
    "assistant.stopReason",
    "toolResult.toolCallId",
    "toolResult.toolName",
    "toolResult.content",
    "toolResult.isError",
    *NUMBERS,
]


# Lab 3.1


def test_text_projection_keeps_blocks():
    """text_of() joins the text blocks with a newline and leaves the message as it was."""
    from pi_course.messages import (
        EMPTY_USAGE,
        AssistantContent,
        StopReason,
        ToolCall,
        assistant_message,
        text,
        text_of,
    )

    read = ToolCall(id="call_1", name="read", arguments={"path": "README.md"})
    blocks: list[AssistantContent] = [text("read first"), read, text("then answer")]
    reason: StopReason = "toolUse"
    message = assistant_message(blocks, reason, usage=EMPTY_USAGE)
    shown = text_of(message)
    assert shown == "read first\nthen answer"
    assert type(shown) is str
    assert message.content == (text("read first"), read, text("then answer"))


def test_system_messages_replay_in_order():
    """Contents join, sections are overwritten by name, None deletes, the first time stays."""
    from pi_course.messages import SystemMessage, current_system_message

    messages = worked_example()
    before = copy.copy(messages)
    current = current_system_message(messages)
    assert current == SystemMessage(
        content="You are Pi.\n\nPrefer small diffs.",
        sections={"rules": "RULE v2"},
        timestamp=10,
    )
    assert type(current) is SystemMessage
    assert messages == before


def test_system_prompt_renders_in_fixed_order():
    """Content first, then the sections; empty strings and None leave no blank line."""
    from pi_course.messages import current_system_prompt, system_message_text

    message = system("A", {"empty": "", "gone": None, "kept": "B"})
    assert system_message_text(message) == "A\n\nB"
    prompt = current_system_prompt(worked_example())
    assert prompt == "You are Pi.\n\nPrefer small diffs.\n\nRULE v2"
    assert type(prompt) is str


# Lab 3.2


def test_error_ends_the_stream_by_itself():
    """Pushing Error ends the iteration without end(); result() is that very message."""
    from pi_course.event_stream import AssistantMessageEventStream
    from pi_course.messages import Error, ModelEvent, assistant_message

    failed = assistant_message([], "error", error_message="socket reset")
    late: list[ModelEvent] = example_events()[:4]  # start, two deltas and a whole call

    async def scenario():
        stream = AssistantMessageEventStream()
        for event in [Error("error", failed), *late]:
            stream.push(event)
        seen = [event.type async for event in stream]
        return seen, await stream.result()

    seen, result = run(
        scenario(), "nothing arrived within 1 s: does the terminal rule know `error`?"
    )
    assert seen == ["error"]
    assert result is failed
    assert result.error_message == "socket reset"
    assert type(result.error_message) is str


# Lab 3.3: JSON


def test_readme_round_trip_is_exact_json():
    """The three README values give exactly the JSON of the course; what is absent is absent."""
    dumped = [message.model_dump(mode="json") for message in readme()]
    assert dumped == [user_json(), assistant_json(), result_json()]


def test_json_reads_back_as_equal_values():
    """parse_message() turns the README JSON into values equal to the first ones."""
    from pi_course.messages import parse_message

    parsed = [parse_message(value) for value in [user_json(), assistant_json(), result_json()]]
    assert parsed == readme()


def test_every_optional_field_survives_json():
    """All optional fields are written under their JSON names and read back."""
    from pi_course.messages import parse_message

    dumped = [parse_message(value).model_dump(mode="json") for value in full_json()]
    assert dumped == full_json()


def test_optional_fields_have_defaults():
    """Without them: no raw_arguments, error_message, details or sections."""
    from pi_course.messages import SystemMessage

    _, assistant, result = readme()
    told = SystemMessage(content="A", timestamp=1)
    absent = [
        assistant.content[1].raw_arguments,
        assistant.error_message,
        result.details,
        told.sections,
    ]
    assert absent == [None, None, None, None]


def test_python_names_in_values_and_json_names_in_json():
    """Values are built with snake_case; from outside only camelCase is taken."""
    renamed = put(result_json(), "toolCallId", ...) | {"tool_call_id": "call_1"}
    assert refusal(renamed, "toolResult.tool_call_id") == "toolResult.tool_call_id"


def test_json_can_always_be_encoded():
    """What was accepted can be written as UTF-8 JSON without NaN, and read back."""
    from pi_course.messages import parse_message, text

    told = readme()[0].model_copy(update={"content": (text("名前 \U0001f600 \u2028 \x00"),)})
    line = json.dumps(told.model_dump(mode="json"), allow_nan=False, ensure_ascii=False)
    assert parse_message(json.loads(line.encode("utf-8"))) == told


def test_arguments_may_be_any_json():
    """The message keeps what the model sent, object or not; the tool checks it later."""
    from pi_course.messages import parse_message

    values = [{"a": [1, 2.5, True, None, "x"]}, [], [[{}]], "text", 0, False, None, {}]
    kept = [put(assistant_json(), "content.1.arguments", value) for value in values]
    assert [parse_message(value).model_dump(mode="json") for value in kept] == kept


# Lab 3.3: immutable values


def test_no_field_can_be_assigned():
    """Assigning or deleting a field of a message or block raises."""
    from pi_course.messages import EMPTY_USAGE

    user, assistant, result = readme()
    values = [*assistant.content, EMPTY_USAGE, system(), user, assistant, result]
    open_fields = []
    for value in values:
        for name in type(value).model_fields:
            for change in (lambda v, n: setattr(v, n, None), delattr):
                try:
                    change(value, name)
                except ValueError:
                    continue
                open_fields.append(f"{type(value).__name__}.{name}")
    assert open_fields == []


def test_content_is_a_tuple():
    """Content given as a list is stored as a tuple."""
    assert [type(message.content) for message in readme()] == [tuple, tuple, tuple]


def test_the_list_it_was_built_from_may_change():
    """Changing the lists and dicts that a message was built from does not change it."""
    from pi_course.messages import UserMessage, text

    blocks, paths, sections = [text("a")], ["a"], {"rules": "v1"}
    user = UserMessage(content=blocks, timestamp=1)
    asked = call(arguments={"paths": paths})
    told = system("", sections)
    answered = answer("call_1").model_validate(result_json() | {"details": {"paths": paths}})
    blocks.append(text("b"))
    paths.append("b")
    sections["rules"] = "v2"
    kept = [user.content, asked.arguments, told.sections, answered.details]
    assert kept == [(text("a"),), {"paths": ("a",)}, {"rules": "v1"}, {"paths": ("a",)}]


def changes_that_went_through(frozen):
    """What could be changed in a copy of each value, as "way on name"."""
    changes = {
        "x[name] = 1": lambda value: value.__setitem__("new", 1),
        "del x[name]": lambda value: value.__delitem__(next(iter(value))),
        "x |= {name: 1}": lambda value: value.__ior__({"new": 1}),
        "x.clear()": lambda value: value.clear(),
        "x.pop(name)": lambda value: value.pop(next(iter(value))),
        "x.popitem()": lambda value: value.popitem(),
        "x.setdefault(name, 1)": lambda value: value.setdefault("new", 1),
        "x.update(name=1)": lambda value: value.update(new=1),
    }
    went_through = []
    for name, value in frozen.items():
        for way, change in changes.items():
            try:
                change(copy.copy(value))
            except TypeError:
                continue
            went_through.append(f"{way} on {name}")
    return went_through


def test_nested_json_is_frozen():
    """Nothing inside arguments, details or sections can be changed in place."""
    from pi_course.messages import parse_message

    told, _, asked, answered = [parse_message(value) for value in full_json()]
    frozen = {
        "arguments": asked.content[1].arguments,
        "details": answered.details,
        "sections": told.sections,
    }
    assert frozen == {
        "arguments": {"path": "README.md"},
        "details": {"lines": (1, 2), "cut": None},
        "sections": {"rules": "RULE v2", "scratch": None},
    }
    sentence = (
        "these changed a message: is the field Json, or does AfterValidator(frozen_json) see it?"
    )
    assert changes_that_went_through(frozen) == [], sentence
    slotted = [name for name, value in frozen.items() if not hasattr(value, "__dict__")]
    assert slotted == ["arguments", "details", "sections"]


def test_changing_the_dump_leaves_the_message():
    """model_dump() gives copies: changing them changes no message."""
    message = readme()[1]
    for mode in ("python", "json"):
        message.model_dump(mode=mode)["content"][1]["arguments"]["path"] = "/etc/passwd"
    assert message == readme()[1]


def test_values_can_be_copied_pickled_and_hashed():
    """A message survives copy and pickle, and equal messages have equal hashes."""
    from pi_course.messages import parse_message

    for value in full_json():
        message = parse_message(value)
        again = [copy.copy(message), pickle.loads(pickle.dumps(message))]
        assert again == [message, message]
        assert {hash(other) for other in again} == {hash(message)}
    assert (hash(call(arguments={"a": 1})) == hash(call(arguments={"a": 2}))) is False


def test_blocks_keep_their_order():
    """A call before a text stays before it."""
    from pi_course.messages import assistant_message, text

    message = assistant_message([call(), text("done")], "toolUse")
    assert [block.type for block in message.content] == ["toolCall", "text"]


# Lab 3.3: refusals


def test_unknown_roles_are_refused():
    """A message without a known role is no message."""
    values = [{"role": "bot"}, {"content": []}, [], None, "user", put(user_json(), "role", ...)]
    values.append(json.dumps(user_json()))  # JSON as text was not read yet
    assert [refusal(value, "") for value in values] == [""] * len(values)


def test_unknown_fields_are_refused():
    """An extra field is refused with its path, in every message and block."""
    places = [
        "system.extra",
        "user.extra",
        "user.content.0.extra",
        "assistant.extra",
        "assistant.content.0.extra",
        "assistant.content.1.extra",
        "assistant.usage.extra",
        "toolResult.extra",
    ]
    assert refusals("x", *places) == places


def test_missing_fields_are_refused():
    """Each required field is required, and named when it is not there."""
    assert refusals(..., *REQUIRED) == REQUIRED


def test_strings_are_strings():
    """Nothing is turned into text: a number is refused with the path of the field."""
    assert refusals(42, *STRINGS) == STRINGS


def test_lone_surrogates_are_refused_in_strings():
    """Half a surrogate pair is refused in every text field: it could not be saved."""
    assert refusals(f"a{HALF}", *STRINGS) == STRINGS


@pytest.mark.parametrize(
    "number",
    [True, math.nan, math.inf, 1.5, "1", None],
    ids=["bool", "nan", "infinity", "fraction", "text", "null"],
)
def test_numbers_are_integers(number):
    """Bool, NaN, infinity, fractions and text are no numbers here."""
    assert refusals(number, *NUMBERS) == NUMBERS


def test_is_error_is_a_bool():
    """1 is not True."""
    assert refusals(1, "toolResult.isError") == ["toolResult.isError"]


def test_unknown_stop_reasons_are_refused():
    """Pi's `pending` is not one of our five stop reasons."""
    assert refusals("pending", "assistant.stopReason") == ["assistant.stopReason"]


def test_five_stop_reasons():
    """stop, length, toolUse, error and aborted, and no other."""
    from pi_course.messages import StopReason, assistant_message

    five = ["aborted", "error", "length", "stop", "toolUse"]
    assert sorted(get_args(StopReason)) == five
    assert [assistant_message([], reason).stop_reason for reason in five] == five


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (user_json, "user.content.0.type"),
        (result_json, "toolResult.content.0.type"),
    ],
    ids=["user", "toolResult"],
)
def test_a_tool_call_is_only_legal_in_an_assistant_message(message, path):
    """A tool call in user or toolResult content is refused with its path."""
    value = put(message(), "content", [assistant_json()["content"][1]])
    assert refusal(value, path) == path


@pytest.mark.parametrize("role", ["user", "assistant", "toolResult"])
def test_unknown_blocks_are_refused(role):
    """A block says its type, and it is one that we know."""
    message = next(value for value in full_json() if value["role"] == role)
    unknown = put(message, "content", [{"type": "image", "text": "x"}])
    untold = put(message, "content", [{"text": "x"}])
    path = f"{role}.content.0"
    named = path if role == "assistant" else f"{path}.type"
    assert [refusal(unknown, named), refusal(untold, path)] == [named, path]


@pytest.mark.parametrize(
    "content",
    ["text", {"type": "text"}, None, {"a"}],
    ids=["text", "object", "null", "set"],
)
def test_content_is_a_list(content):
    """Content that is no list is refused with its path."""
    places = ["user.content", "assistant.content", "toolResult.content"]
    assert refusals(content, *places) == places


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        [{"deep": -math.inf}],
        {"a": f"{HALF}"},
        {f"{HALF}": 1},
        {1: "number as key"},
        {"a": b"bytes"},
        {"a": {"set"}},
        object(),
    ],
    ids=["nan", "infinity", "surrogate", "surrogate-key", "number-key", "bytes", "set", "object"],
)
def test_json_values_are_json(value):
    """What JSON can't hold is refused at any depth, in arguments and in details."""
    places = ["assistant.content.1.arguments", "toolResult.details"]
    assert refusals(value, *places) == places


def test_json_values_are_not_endlessly_deep():
    """A value nested in itself is refused, 100 levels are not."""
    from pi_course.messages import parse_message

    deep = "end"
    for _ in range(100):
        deep = [deep]
    endless = {}
    endless["again"] = endless
    value = put(assistant_json(), "content.1.arguments", deep)
    assert parse_message(value).model_dump(mode="json") == value
    places = ["assistant.content.1.arguments"]
    assert refusals([deep], *places) + refusals(endless, *places) == places * 2


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        ({"rules": 1}, "system.sections.rules"),
        ({"rules": HALF}, "system.sections"),
        ({HALF: "x"}, "system.sections"),
        (["rules"], "system.sections"),
    ],
    ids=["number", "surrogate", "surrogate-name", "list"],
)
def test_sections_map_names_to_text(sections, path):
    """A section is text or None under a name."""
    assert refusal(put(system_json(), "sections", sections), path) == path


def test_the_refusal_says_where_inside():
    """For a JSON value the message leads to the very item."""
    with pytest.raises(ValueError, match=r"\.edits\[1\]\.at is nan"):
        call(arguments={"edits": [{"at": 1}, {"at": math.nan}]})
    with pytest.raises(ValueError, match="value has the key 1"):
        call(arguments={1: "number as key"})


def test_no_number_of_any_message_is_nan():
    """The base refuses NaN and infinity in every field that a later message may have."""
    from pi_course.messages import UserMessage

    class Timed(UserMessage):
        seconds: float

    for number in (math.nan, math.inf, True):
        with pytest.raises(ValueError):
            Timed(content=[], timestamp=1, seconds=number)
    assert Timed(content=[], timestamp=1, seconds=0.5).seconds == 0.5


def test_constructors_are_strict_too():
    """Python code gets no softer rules than JSON: extra fields and wrong types raise."""
    from pi_course.messages import TextContent, Usage, UserMessage

    wrong = [
        lambda: TextContent(text="x", style="bold"),
        lambda: TextContent(text=1),
        lambda: Usage(input=True, output=0, total_tokens=0),
        lambda: UserMessage(content="hi", timestamp=1),
        lambda: UserMessage(content=[call()], timestamp=1),
        lambda: UserMessage(role="assistant", content=[], timestamp=1),
    ]
    for build in wrong:
        with pytest.raises(ValueError):
            build()


def test_fields_are_keyword_only():
    """TextContent("x") is refused: a message has too many fields to count places."""
    from pi_course.messages import TextContent

    with pytest.raises(TypeError):
        TextContent("x")


# Lab 3.3: constructors, projections, replay


def test_text_and_user_message():
    """text() and user_message() make values; the time is now, in milliseconds."""
    from pi_course.messages import TextContent, UserMessage, text, user_message

    before = time.time_ns() // 1_000_000
    message = user_message("hi")
    after = time.time_ns() // 1_000_000
    assert text("hi") == TextContent(text="hi")
    assert message == UserMessage(content=[text("hi")], timestamp=message.timestamp)
    assert [before <= message.timestamp + 1, message.timestamp <= after] == [True, True]


def test_assistant_message_defaults():
    """Provider scripted, model scripted-v1, no usage, stop, now."""
    from pi_course.messages import EMPTY_USAGE, AssistantMessage, Usage, assistant_message

    before = time.time_ns() // 1_000_000
    message = assistant_message([])
    after = time.time_ns() // 1_000_000
    assert message == AssistantMessage(
        content=[],
        provider="scripted",
        model="scripted-v1",
        usage=Usage(input=0, output=0, total_tokens=0),
        stop_reason="stop",
        timestamp=message.timestamp,
    )
    assert message.usage == EMPTY_USAGE
    assert [before <= message.timestamp + 1, message.timestamp <= after] == [True, True]


def test_assistant_message_overrides():
    """Each default can be replaced; a time of 0 is a time."""
    from pi_course.messages import AssistantMessage, Usage, assistant_message, text

    fields = {
        "provider": "p",
        "model": "m",
        "usage": Usage(input=1, output=2, total_tokens=9),  # providers count as they like
        "error_message": "socket reset",
        "timestamp": 0,
    }
    message = assistant_message([text("half")], "aborted", **fields)
    assert message == AssistantMessage(content=[text("half")], stop_reason="aborted", **fields)


def test_text_of_every_role():
    """User and tool result: their texts. System: the text that the model reads."""
    from pi_course.messages import UserMessage, parse_message, text, text_of

    user = UserMessage(content=[text("a"), text(""), text("b")], timestamp=1)
    told = system("A", {"rules": "B"})
    blocks = [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]
    result = parse_message(result_json() | {"content": blocks, "isError": True})
    assert [text_of(user), text_of(told), text_of(result)] == ["a\n\nb", "A\n\nB", "c\nd"]


def test_blanks_and_newlines_are_text():
    """Only an empty text is empty: blanks, newlines and repeated texts stay as they are."""
    from pi_course.messages import (
        assistant_message,
        current_system_message,
        system_message_text,
        text,
        text_of,
        user_message,
    )

    said = assistant_message([text(""), text(" a\n"), text(" ")])
    assert (len(said.content), text_of(said)) == (3, "\n a\n\n ")
    assert user_message("").content == (text(""),)
    told = [system(" A\n"), system(" ", {"rules": "\t"}), system(" ", {"rules": " "})]
    current = current_system_message(told)
    assert current == system(" A\n\n\n \n\n ", {"rules": " "})
    assert system_message_text(current) == " A\n\n\n \n\n \n\n "


def test_no_system_message_gives_none():
    """Without a system message there is no prompt: None, not an empty text."""
    from pi_course.messages import current_system_message, current_system_prompt

    assert current_system_message(readme()) is None
    assert current_system_prompt([]) is None
    assert current_system_prompt(readme()) is None


def test_an_empty_system_message_is_still_one():
    """An empty instruction replays to an empty text, not to None."""
    from pi_course.messages import current_system_message, current_system_prompt

    assert current_system_message([system("", None, 5)]) == system("", None, 5)
    assert current_system_prompt([system("")]) == ""


def test_all_sections_deleted_leaves_none():
    """When every section is deleted, be it by one message or two, the field is absent."""
    from pi_course.messages import current_system_message

    absent = {"role": "system", "content": "A", "timestamp": 1}
    current = current_system_message([system("A", {"a": "1"}), system("", {"a": None, "b": None})])
    assert current.model_dump(mode="json") == absent
    alone = current_system_message([system("A", {"a": None})])
    assert alone.model_dump(mode="json") == absent


def test_overwritten_sections_keep_their_place():
    """A section that is overwritten keeps its place; deleted and added again, it goes last."""
    from pi_course.messages import current_system_message

    first = system("", {"a": "1", "b": "1", "c": "1"})
    second = system("", {"b": None, "c": "2"})
    third = system("", {"b": "3", "a": ""})
    sections = current_system_message([first, second, third]).sections
    sentence = f"replayed: {first.sections}, then {second.sections}, then {third.sections}"
    assert list(sections.items()) == [("a", ""), ("c", "2"), ("b", "3")], sentence


def test_the_first_timestamp_may_be_zero():
    """The time is that of the first system message: 0 counts, and so does one that is later."""
    from pi_course.messages import current_system_message

    assert current_system_message([system("A", None, 0), system("B", None, 9)]).timestamp == 0
    assert current_system_message([system("A", None, 9), system("B", None, 3)]).timestamp == 9


def test_system_message_in_mid_conversation_counts():
    """A system message after others, and without one before it, is replayed too."""
    from pi_course.messages import current_system_prompt

    assert current_system_prompt([*readme(), system("Be brief.")]) == "Be brief."


def test_messages_may_come_from_a_generator():
    """Messages may come from a generator, which can be gone through only once."""
    from pi_course.messages import current_system_message, current_system_prompt, unpaired_calls

    told = [system("A", {"rules": "B"}, 1), *readme()[:2], system("C", None, 2)]
    assert current_system_message(iter(told)) == system("A\n\nC", {"rules": "B"}, 1)
    assert current_system_prompt(iter(told)) == "A\n\nC\n\nB"
    assert unpaired_calls(iter(told)) == ["call_1"]


def test_system_text_without_content():
    """An empty content leaves no blank line; sections stand in their order, not by name."""
    from pi_course.messages import system_message_text

    assert system_message_text(system("", {"b": "B", "a": "A"})) == "B\n\nA"


# Lab 3.3: context and pairing


def test_context_holds_the_very_messages():
    """A context has the same message objects in a tuple; it checks and copies none of them."""
    from pi_course.messages import AgentContext

    unchecked = object()
    messages = [system(), *readme(), unchecked]
    context = AgentContext(messages)
    assert type(context.messages) is tuple
    assert [id(message) for message in context.messages] == [id(message) for message in messages]


def test_context_does_not_follow_the_callers_list():
    """What is appended to the list later is not in the context."""
    from pi_course.messages import AgentContext

    messages = readme()
    context = AgentContext(messages=messages)
    messages.append(system())
    assert context == AgentContext(readme())


def test_context_is_frozen_and_slotted():
    """A context can't be changed."""
    from pi_course.messages import AgentContext

    context = AgentContext([])
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.messages = readme()
    assert hasattr(context, "__dict__") is False


PAIRING = {
    "empty": ("", []),
    "whole": ("?a !a", []),
    "results in any order": ("?ab !b !a", []),
    "two rounds": ("?a !a ?b !b", []),
    "call without result": ("?a", ["a"]),
    "result without call": ("!a", ["a"]),
    "two results": ("?a !a !a", ["a"]),
    "result before its call": ("!a ?a", ["a"]),
    "id used twice": ("?a !a ?a !a", ["a"]),
    "id twice in one message": ("?aa !a", ["a"]),
    "id twice with two results": ("?aa !a !a", ["a"]),
    "results on both sides": ("!a ?a !a", ["a"]),
    "transcript order": ("?ca !z ?b !a", ["c", "z", "b"]),
    "result first": ("!z ?c", ["z", "c"]),
}


@pytest.mark.parametrize(
    ("transcript", "ids"),
    PAIRING.values(),
    ids=[name.replace(" ", "-") for name in PAIRING],
)
def test_unpaired_calls(transcript, ids):
    """An id is whole with exactly one call and then exactly one result; all others are listed."""
    from pi_course.messages import unpaired_calls, user_message

    messages = [user_message("go"), system("A")]
    for part in transcript.split():
        messages.append(asking(*part[1:]) if part[0] == "?" else answer(part[1:]))
    sentence = f"the messages were {transcript!r} (?ab: one with the calls a and b, !a: a's result)"
    assert unpaired_calls(messages) == ids, sentence


def test_the_readme_round_trip_is_paired():
    """Its one call has its one result; without the last message it has none."""
    from pi_course.messages import unpaired_calls

    assert [unpaired_calls(readme()), unpaired_calls(readme()[:2])] == [[], ["call_1"]]


def test_describe_uses_what_only_that_role_has():
    """One line a role, as LEARNING.md lists them."""
    from pi_course.messages import describe

    messages = [system("A", {"rules": "R", "scratch": None}), system("A"), *readme()]
    assert [describe(message) for message in messages] == [
        "system sections=rules,scratch",
        "system sections=none",
        "user blocks=1",
        "assistant stop_reason=toolUse",
        "toolResult tool_call_id=call_1",
    ]


def test_describe_refuses_what_is_no_message():
    """The last case is assert_never, which raises AssertionError."""
    from pi_course.messages import describe

    with pytest.raises(AssertionError, match="unreachable"):
        describe("no message")


# Lab 3.3: events and partials


def test_six_events():
    """Each event says its type."""
    types = ["start", "text_delta", "toolcall_delta", "toolcall_end", "done", "error"]
    assert [event.type for event in example_events()] == types


def literals(annotation):
    """The words of a Literal, wherever it stands inside an annotation."""
    if isinstance(annotation, str):
        return {annotation}
    return {word for inner in get_args(annotation) for word in literals(inner)}


def test_the_type_checker_can_tell_events_apart():
    """`type` is declared as a Literal of the event's own word; so are the reasons it takes."""
    from pi_course.messages import Done, Error

    declared = [
        inspect.get_annotations(type(event), eval_str=True).get("type")
        for event in example_events()
    ]
    assert [literals(kind) for kind in declared] == [{event.type} for event in example_events()]
    reasons = [inspect.get_annotations(event, eval_str=True)["reason"] for event in (Done, Error)]
    assert [literals(kind) for kind in reasons] == [
        {"stop", "length", "toolUse"},
        {"error", "aborted"},
    ]


def test_events_belong_to_the_union():
    """ModelEvent is the union of exactly these six."""
    from pi_course.messages import ModelEvent

    assert set(get_args(ModelEvent)) == {type(event) for event in example_events()}


def test_events_take_keywords():
    """The fields have the names of the interface."""
    from pi_course.messages import Done, Error, Start, TextDelta, ToolCallDelta, ToolCallEnd
    from pi_course.messages import assistant_message as make

    partial, failed = make([], timestamp=5), make([], "error", timestamp=5)
    assert example_events() == [
        Start(partial=partial),
        TextDelta(content_index=0, delta="Hel", partial=partial),
        ToolCallDelta(content_index=1, delta="{", partial=partial),
        ToolCallEnd(content_index=1, tool_call=call(), partial=partial),
        Done(reason="stop", message=partial),
        Error(reason="error", error=failed),
    ]


def test_events_keep_what_they_were_given():
    """Index, delta, call, message and error come back as they went in."""
    start, text_delta, call_delta, call_end, done, error = example_events()
    assert (text_delta.content_index, text_delta.delta) == (0, "Hel")
    assert (call_delta.content_index, call_delta.delta) == (1, "{")
    assert (call_end.content_index, call_end.tool_call) == (1, call())
    assert (done.reason, error.reason) == ("stop", "error")
    assert (done.message.stop_reason, error.error.stop_reason) == ("stop", "error")


def test_events_match_by_position():
    """`case TextDelta(index, delta)` works, and so it does for the others."""
    places = [type(event).__match_args__ for event in example_events()]
    assert places == [
        (),
        ("content_index", "delta"),
        ("content_index", "delta"),
        ("content_index", "tool_call"),
        ("reason", "message"),
        ("reason", "error"),
    ]


def what_can_change(events):
    """The fields that can be assigned, and the events that have a dict."""
    can_change = []
    for event in events:
        kind = event.type
        if not dataclasses.is_dataclass(event) or hasattr(event, "__dict__"):
            can_change.append(f"{kind} is no slotted dataclass")
        for name in ("delta", "content_index", "tool_call", "reason", "message", "error", "type"):
            try:
                setattr(event, name, "other")
            except (AttributeError, TypeError):
                continue
            can_change.append(f"{kind}.{name}")
    return can_change


def test_events_are_frozen_and_slotted():
    """No event has a dict, and no field of it can be assigned."""
    sentence = "each event needs @dataclass(frozen=True, slots=True), and type must be a ClassVar"
    assert what_can_change(example_events()) == [], sentence


def test_events_compare_by_value():
    """Equal events are equal and have one hash; another delta, index or partial differs."""
    from pi_course.messages import TextDelta, ToolCallDelta, assistant_message, text

    partial = assistant_message([], timestamp=5)
    grown = assistant_message([text("Hel")], timestamp=5)
    event = TextDelta(0, "Hel", partial)
    others = [
        TextDelta(0, "Hel", assistant_message([], timestamp=5)),
        TextDelta(1, "Hel", partial),
        TextDelta(0, "lo", partial),
        TextDelta(0, "Hel", grown),
        ToolCallDelta(0, "Hel", partial),
    ]
    assert [event == other for other in others] == [True, False, False, False, False]
    assert [hash(one) for one in example_events()] == [hash(one) for one in example_events()]


def test_an_event_shows_what_it_brings():
    """The repr of an event is one short line: the partial, which may be long, is not in it."""
    from pi_course.messages import TextDelta, assistant_message

    event = TextDelta(0, "Hel", assistant_message([]))
    assert repr(event) == "TextDelta(content_index=0, delta='Hel')"


def test_partial_is_a_message():
    """A partial made from a message equals it; two reads are equal and not one object."""
    from pi_course.messages import AssistantMessage, TextDelta, assistant_message, text

    message = assistant_message([text("Hel")], provider="p", model="m", timestamp=5)
    event = TextDelta(0, "Hel", message)
    assert event.partial == message
    assert isinstance(event.partial, AssistantMessage)
    assert event.partial is not event.partial


def readme_draft():
    from pi_course.messages import assistant_message
    from pi_course.partial import Draft

    return Draft(assistant_message([], timestamp=1010))


def readme_events():
    """The README reply as a model would stream it, each event with a handle as its partial."""
    from pi_course.messages import Done, Start, TextDelta, ToolCallDelta, ToolCallEnd, text

    final = readme()[1]
    raw = '{"path":"README.md"}'
    draft = readme_draft()
    events = [Start(draft.partial())]
    index = draft.open(text(""))
    draft.append(index, "I will read README.md first.")
    events.append(TextDelta(index, "I will read README.md first.", draft.partial()))
    index = draft.open(call())
    draft.append(index, raw)
    events.append(ToolCallDelta(index, raw, draft.partial()))
    draft.replace(index, final.content[1])
    events.append(ToolCallEnd(index, final.content[1], draft.partial()))
    return [*events, Done("toolUse", final)]


def test_readme_partials_grow():
    """start [], then the text, then the call with raw arguments, then the whole call."""
    raw = call(raw='{"path":"README.md"}')
    said, asked = readme()[1].content
    contents = [event.partial.content for event in readme_events()[:-1]]
    assert contents == [(), (said,), (said, raw), (said, asked)]


def test_readme_events_arrive_in_order():
    """The README reply is five events; the last one holds the final message."""
    events = readme_events()
    types = ["start", "text_delta", "toolcall_delta", "toolcall_end", "done"]
    assert [event.type for event in events] == types
    assert events[-1].message == readme()[1]


def test_a_partial_shows_what_was_fixed_at_start():
    """Provider, model, usage, time and stop reason of a partial are those of the start."""
    from pi_course.messages import EMPTY_USAGE

    seen = {
        (p.provider, p.model, p.usage, p.stop_reason, p.error_message, p.timestamp)
        for p in (event.partial for event in readme_events()[:-1])
    }
    assert seen == {("scripted", "scripted-v1", EMPTY_USAGE, "stop", None, 1010)}


def test_earlier_partials_never_change():
    """Blocks that grow in turn: each kept event still shows its own moment at the end."""
    from pi_course.messages import TextDelta, ToolCallDelta, text
    from pi_course.messages import assistant_message as make
    from pi_course.partial import Draft

    draft = Draft(make([], timestamp=5))
    said, asked = draft.open(text("> ")), draft.open(call(raw=""))
    kept = []
    for index, event, delta in [
        (said, TextDelta, "He"),
        (asked, ToolCallDelta, "{"),
        (said, TextDelta, "llo"),
        (said, TextDelta, "!"),
        (asked, ToolCallDelta, "}"),
    ]:
        draft.append(index, delta)
        kept.append(event(index, delta, draft.partial()))
    draft.replace(asked, call(arguments={"whole": True}))
    draft.append(said, "!!")
    late = draft.partial()
    draft.replace(said, text("Good"))
    draft.append(said, "bye")
    last = draft.partial()
    shown = [(p.content[0].text, p.content[1].raw_arguments) for p in (e.partial for e in kept)]
    assert shown == [
        ("> He", ""),
        ("> He", "{"),
        ("> Hello", "{"),
        ("> Hello!", "{"),
        ("> Hello!", "{}"),
    ]
    whole = call(arguments={"whole": True})
    assert late.read() == make([text("> Hello!!!"), whole], timestamp=5)
    assert last.read() == make([text("Goodbye"), whole], timestamp=5)


def test_a_handle_and_a_message_make_equal_events():
    """An event made with a handle equals the one made with the message it shows."""
    events = readme_events()[:-1]
    built = [copy.copy(event) for event in events]
    plain = [
        type(event)(*(getattr(event, name) for name in event.__match_args__), event.partial)
        for event in events
    ]
    assert plain == events
    assert [hash(event) for event in plain] == [hash(event) for event in events]
    assert [built, pickle.loads(pickle.dumps(events))] == [events, events]
    grown, whole = events[1]._partial, plain[1]._partial
    assert (grown == whole, grown != whole, grown == grown.read()) == (True, False, False)
    other = events[0]._partial
    assert (grown == other, grown != other, hash(grown) == hash(other)) == (False, True, False)


def test_a_draft_refuses_half_a_character():
    """A partial must be a valid message, so a lone surrogate does not get in."""
    from pi_course.messages import assistant_message, text
    from pi_course.partial import Draft

    draft = Draft(assistant_message([]))
    index = draft.open(text(""))
    with pytest.raises(ValueError, match="lone surrogate"):
        draft.append(index, HALF)


def accepted_reasons(event):
    """The pairs (reason, stop reason of the message) that an event takes."""
    from pi_course.messages import assistant_message

    five = ["stop", "length", "toolUse", "error", "aborted"]
    pairs = []
    for reason in [*five, "pending"]:
        for stop_reason in five:
            try:
                event(reason, assistant_message([], stop_reason))
            except ValueError:
                continue
            pairs.append((reason, stop_reason))
    return pairs


def test_done_has_the_reason_of_its_message():
    """Done takes stop, length and toolUse, and only the message's own stop reason."""
    from pi_course.messages import Done

    same = [("stop", "stop"), ("length", "length"), ("toolUse", "toolUse")]
    assert accepted_reasons(Done) == same


def test_error_has_the_reason_of_its_message():
    """Error takes error and aborted, and only the message's own stop reason."""
    from pi_course.messages import Error

    assert accepted_reasons(Error) == [("error", "error"), ("aborted", "aborted")]


def refused_reason(event, reason, stop_reason):
    """The class of the refusal, and which of the two reasons it names."""
    from pi_course.messages import assistant_message

    try:
        return f"accepted as {event(reason, assistant_message([], stop_reason))!r}"
    except ValueError as error:
        said = [word for word in (reason, stop_reason) if repr(word) in str(error)]
        return type(error).__name__, said


def test_the_refused_reason_is_named():
    """Done and Error refuse with the InvalidValue of wire.py, which names both reasons."""
    from pi_course.messages import Done, Error

    done = ("InvalidValue", ["length", "stop"])
    assert refused_reason(Done, "length", "stop") == done
    error = ("InvalidValue", ["aborted", "error"])
    assert refused_reason(Error, "aborted", "error") == error


# Lab 3.3: the stream and the protocols


def test_done_ends_the_stream_by_itself():
    """All README events arrive; Done ends the iteration, and its message is the result."""
    from pi_course.event_stream import AssistantMessageEventStream

    events = readme_events()

    async def scenario():
        stream = AssistantMessageEventStream()
        for event in events:
            stream.push(event)
        return [event async for event in stream], await stream.result()

    seen, result = run(
        scenario(), "nothing arrived within 1 s: does the terminal rule know `done`?"
    )
    assert seen == events
    assert result is events[-1].message


def test_an_aborted_reply_ends_the_stream_too():
    """An Error with the reason aborted ends it like any other; the half reply is the result."""
    from pi_course.event_stream import AssistantMessageEventStream
    from pi_course.messages import Error, assistant_message, text

    half = assistant_message([text("Hel")], "aborted")

    async def scenario():
        stream = AssistantMessageEventStream()
        stream.push(Error("aborted", half))
        return [event.type async for event in stream], await stream.result()

    seen, result = run(
        scenario(), "nothing arrived within 1 s: does an aborted Error end the stream?"
    )
    assert seen == ["error"]
    assert result is half


def test_other_events_end_nothing():
    """After start, deltas and a whole call the stream still waits for its terminal event."""
    from pi_course.event_stream import AssistantMessageEventStream

    async def scenario():
        stream = AssistantMessageEventStream()
        for event in readme_events()[:-1]:
            stream.push(event)
        waiting = asyncio.ensure_future(stream.result())
        for _ in range(5):
            await asyncio.sleep(0)
        early = waiting.done()
        stream.push(readme_events()[-1])
        return early, await waiting

    assert run(scenario()) == (False, readme()[1])


def asked_for_result(extract, event):
    """What the rule of the stream does when it is asked for the result of this event."""
    try:
        return f"{event.type} gave {extract(event)!r}"
    except AttributeError as error:
        return f"{event.type} failed by accident: {error}"
    except Exception as error:
        return "refused" if str(error) else f"{event.type} raised without a word"


def test_no_other_event_gives_a_result(monkeypatch):
    """Asked for the result of a start or a delta, the stream raises instead of making one up."""
    from pi_course.event_stream import AssistantMessageEventStream, EventStream

    rules = {}

    def keep(self, is_complete, extract_result):
        rules.update(complete=is_complete, extract=extract_result)

    monkeypatch.setattr(EventStream, "__init__", keep)
    AssistantMessageEventStream()
    events = readme_events()
    assert [rules["complete"](event) for event in events] == [False] * 4 + [True]
    sentence = "only done and error hold a final message: raise an error of your own for the others"
    gave = [asked_for_result(rules["extract"], event) for event in events[:-1]]
    assert gave == ["refused"] * 4, sentence


def test_protocols_name_what_is_needed():
    """Signal: read-only properties aborted and reason. ModelStream: __aiter__, async result()."""
    from pi_course.event_stream import AssistantMessageEventStream, EventStream
    from pi_course.messages import Model, ModelStream, Signal

    protocols = [Protocol in protocol.__mro__ for protocol in (Signal, ModelStream, Model)]
    assert protocols == [True, True, True]
    read_only = {name for name, value in vars(Signal).items() if isinstance(value, property)}
    sentence = "write aborted and reason of Signal as methods under @property"
    assert sorted(read_only) == ["aborted", "reason"], sentence
    assert {"__aiter__", "result"} - set(vars(ModelStream)) == set()
    assert inspect.iscoroutinefunction(ModelStream.result) is True
    assert issubclass(AssistantMessageEventStream, EventStream) is True
    parameters = inspect.signature(Model.stream).parameters
    assert list(parameters) == ["self", "context", "signal"]
    assert parameters["signal"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["signal"].default is None


def test_the_stream_contract_is_written_down():
    """Model says in its docstring how a stream begins, ends and fails."""
    from pi_course.messages import Model

    words = ["Start", "Done", "Error", "raise"]
    said = inspect.getdoc(Model) or ""
    sentence = "Model's docstring is the contract; say in it these four words"
    assert [word for word in words if word in said] == words, sentence
