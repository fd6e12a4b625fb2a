"""Focused test of chapter 06: schema and parsing, the registry, and the one result of a call.

Test names start with schema, parse, tool, registry and execute, so that `-k parse` runs a part of
a lab. Nothing here touches a network, and no file but those that a test makes.
"""

import asyncio
import enum
import json
import re
import time
import warnings
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, Json, RootModel, field_validator
from typing_extensions import TypedDict

SECRET = "sk-planted-0123456789"
SMILE = "\U0001f600"
HIGH, LOW = "\ud83d", "\ude00"  # the two halves of SMILE; neither can be stored alone


def run(coro, sentence="nothing came back within 2 s: does every path end in a result?", seconds=2):
    async def limited():
        try:
            return await asyncio.wait_for(coro, seconds)
        except TimeoutError:
            raise AssertionError(sentence) from None

    return asyncio.run(limited())


# What the tests build


class ReadArguments(BaseModel):
    """Which file, and how much of it."""

    path: str = Field(description="The file, from the folder of the project")
    limit: int | None = Field(default=None, description="At most so many lines", ge=1)


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    old: str
    new: str = ""


class EditArguments(BaseModel):
    path: str
    edits: list[Edit]


class Node(BaseModel):
    name: str
    children: "list[Node]" = []


class Color(enum.Enum):
    RED = "red"


class Span(TypedDict):
    first: int


@dataclass
class Point:
    x: int


def model_of(annotation, default=..., **config):
    """A model with the one field `value`."""
    from pydantic import create_model

    return create_model("Arguments", __config__=ConfigDict(**config), value=(annotation, default))


def schema_of(model):
    from pi_course.tool_schema import closed_schema

    return closed_schema(model)


def parse(model, arguments):
    """The instance, and the paths at which JSON text was read."""
    from pi_course.tool_schema import closed_schema, parse_tool_arguments

    return parse_tool_arguments(model, closed_schema(model), arguments)


def value_of(annotation, value, default=...):
    parsed, paths = parse(model_of(annotation, default), {"value": value})
    return parsed.value, paths


def refused(model, arguments):
    """The lines of the refusal."""
    from pi_course.tool_schema import InvalidArguments

    try:
        parsed, _ = parse(model, arguments)
    except InvalidArguments as error:
        return str(error).split("\n")
    raise AssertionError(f"{arguments} should be refused, and gave {parsed!r}")


def call(arguments=None, name="read", id="call_1"):
    from pi_course.messages import ToolCall

    arguments = {"path": "README.md"} if arguments is None else arguments
    return ToolCall(id=id, name=name, arguments=arguments)


def context(report=None, signal=None, id="call_1"):
    from pi_course.abort import AbortController
    from pi_course.tool import ToolContext

    signal = signal or AbortController().signal
    return ToolContext(id, signal) if report is None else ToolContext(id, signal, report)


class Counter:
    """A function for a tool that counts its calls, and keeps what it got."""

    def __init__(self, answer="# Project"):
        self.answer = answer
        self.seen = []
        self.contexts = []

    async def __call__(self, arguments, context):
        from pi_course.tool import ToolOutput

        self.seen.append(arguments)
        self.contexts.append(context)
        return ToolOutput(self.answer)


def tool_with(execute, name="read", parameters=ReadArguments):
    from pi_course.tool import Tool

    return Tool(name, "Read a file", parameters, execute)


def registry_of(*tools):
    from pi_course.tool import ToolRegistry

    return ToolRegistry(tools)


def execute(function, arguments=None, *, parameters=ReadArguments, report=None, name="read"):
    """The result of one call, of `read`, with this function behind it."""
    from pi_course.tool import execute_tool_call

    registry = registry_of(tool_with(function, parameters=parameters))
    return run(execute_tool_call(call(arguments, name), registry, context(report)))


def gives(*output, **more):
    """A function for a tool that returns a ToolOutput of these values."""

    async def function(arguments, context):
        from pi_course.tool import ToolOutput

        return ToolOutput(*output, **more)

    return function


def returns(value):
    async def function(arguments, context):
        return value

    return function


def raises(error):
    async def function(arguments, context):
        raise error

    return function


def said(result):
    from pi_course.messages import text_of

    return text_of(result)


def error_of(result):
    """The reason of a failure, after a look at all that each failure has."""
    assert (result.tool_call_id, result.tool_name, result.is_error) == ("call_1", "read", True)
    assert list(result.details) == ["error"]
    assert said(result) == f"Tool read failed: {result.details['error']}"
    return result.details["error"]


# Lab 6.1: the schema that the model sees


def test_schema_is_closed_and_carries_the_descriptions():
    """Types, limits, descriptions, defaults, what is required, and nothing else is allowed."""
    assert schema_of(ReadArguments) == {
        "type": "object",
        "description": "Which file, and how much of it.",
        "properties": {
            "path": {"type": "string", "description": "The file, from the folder of the project"},
            "limit": {
                "anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
                "default": None,
                "description": "At most so many lines",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "inner",
    [
        Edit,
        list[Edit],
        Edit | None,
        dict[str, Edit],
        Point,
        Span,
        Annotated[Edit, Field(title="E")],
    ],
    ids=["model", "list", "optional", "mapping", "dataclass", "typed-dict", "titled"],
)
def test_schema_is_closed_at_every_depth(inner):
    """Each object that stands under $defs is closed, and none has a title."""
    schema = schema_of(model_of(inner))
    assert [
        (part.get("additionalProperties"), "title" in part) for part in schema["$defs"].values()
    ] == [(False, False)]
    assert (schema["additionalProperties"], "title" in schema) == (False, False)
    assert "title" not in schema["properties"]["value"]


@pytest.mark.parametrize("extra", ["allow", "ignore", "forbid"])
def test_schema_is_closed_whatever_the_model_allows(extra):
    """A model with extra="allow" is shown as closed as any other."""
    assert schema_of(model_of(str, extra=extra)) == {
        "type": "object",
        "properties": {"value": {"type": "string"}},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_schema_leaves_a_mapping_open():
    """A field of type dict[str, int] may have any names: that is what it is for."""
    assert schema_of(model_of(dict[str, int]))["properties"]["value"] == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }


def test_schema_without_fields_is_closed():
    """A tool may take nothing: the schema is an empty, closed object."""
    from pydantic import create_model

    assert schema_of(create_model("Nothing")) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_schema_of_a_model_that_contains_itself_is_an_object():
    """pydantic writes only a $ref then; providers want the object itself on top."""
    schema = schema_of(Node)
    assert list(schema["$defs"]) == ["Node"]
    assert (schema["type"], schema["required"]) == ("object", ["name"])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_schema_keeps_fields_that_are_called_title():
    """Titles are left out, fields of that name are not."""
    from pydantic import create_model

    model = create_model("Book", title=(str, ...), properties=(int, 0))
    assert schema_of(model)["properties"] == {
        "title": {"type": "string"},
        "properties": {"type": "integer", "default": 0},
    }


def test_schema_leaves_default_values_alone():
    """A default is a value and no schema, even if it looks like one."""
    value = {"title": "A", "properties": {"title": "B"}}
    field = schema_of(model_of(dict[str, Any], value))["properties"]["value"]
    assert field["default"] == value


@pytest.mark.parametrize(
    "model", [RootModel[list[int]], RootModel[dict[str, int]]], ids=["list", "mapping"]
)
def test_schema_must_be_an_object_with_fields(model):
    """Arguments have names: a list or a bare mapping is refused, by the name of its model."""
    from pi_course.tool_schema import ToolError

    with pytest.raises(ToolError, match=re.escape(model.__name__)):
        schema_of(model)


def test_schema_of_a_wrapped_model_is_that_of_the_model():
    """A RootModel of a model is an object with fields."""
    assert schema_of(RootModel[Edit])["required"] == ["old"]


@pytest.mark.parametrize(
    ("annotation", "default"),
    [(float, float("inf")), (type(print), ...)],
    ids=["infinite-default", "function"],
)
def test_schema_must_be_json(annotation, default):
    """What no JSON Schema can say is refused by the name of the model, not at the first request."""
    from pi_course.tool_schema import ToolError

    with pytest.raises(ToolError, match="Arguments"):
        schema_of(model_of(annotation, default, arbitrary_types_allowed=True))


# Lab 6.1: parsing


def test_parse_gives_an_instance_of_the_model():
    """Paths, enums, tuples and nested models are made out of JSON, and defaults are filled in."""

    class Arguments(BaseModel):
        where: Path
        color: Color
        span: tuple[int, str]
        edit: Edit
        times: int = 1

    sent = {"where": "a/b", "color": "red", "span": [1, "x"], "edit": {"old": "a"}}
    parsed, paths = parse(Arguments, call(sent).arguments)
    assert parsed == Arguments(
        where=Path("a/b"), color=Color.RED, span=(1, "x"), edit=Edit(old="a"), times=1
    )
    assert paths == ()


LAX = Annotated[int, Field(strict=False)]


@pytest.mark.parametrize(
    ("annotation", "value", "shown"),
    [
        (int, "3", '"3"'),
        (int, True, "true"),
        (int, 1.5, "1.5"),
        (float, True, "true"),
        (float, "1.5", '"1.5"'),
        (float, "NaN", '"NaN"'),
        (str, 3, "3"),
        (str, None, "null"),
        (bool, 1, "1"),
        (bool, "true", '"true"'),
        (list[str], "x", '"x"'),
        (Literal["a"], "b", '"b"'),
        (Color, "blue", '"blue"'),
        (LAX, "3", '"3"'),
    ],
    ids=[
        "text-for-int",
        "bool-for-int",
        "fraction-for-int",
        "bool-for-float",
        "text-for-float",
        "nan-for-float",
        "int-for-text",
        "null-for-text",
        "int-for-bool",
        "text-for-bool",
        "text-for-list",
        "other-word",
        "other-member",
        "lax-field",
    ],
)
def test_parse_guesses_nothing(annotation, value, shown):
    """The text "3" is no number, True is no 1: the refusal has the path and what was received."""
    (line,) = refused(model_of(annotation), {"value": value})
    assert (line[:9], line.endswith(f", received {shown}")) == ("- value: ", True)


def test_parse_is_strict_in_a_model_that_is_not():
    """strict=False in the model's own settings changes nothing."""
    (line,) = refused(model_of(int, strict=False), {"value": "3"})
    assert line.endswith('received "3"')


def test_parse_takes_an_int_for_a_float():
    """JSON knows one kind of number: 3 is a float where a float is wanted."""
    assert value_of(float, 3) == (3.0, ())


def test_parse_says_every_error_with_its_path():
    """Not only the first: the model can correct all of them at once."""
    sent = {"edits": [{"old": "a"}, {"old": 3, "new": None}]}
    lines = refused(EditArguments, sent)
    assert [line.partition(": ")[0] for line in lines] == [
        "- path",
        "- edits[1].old",
        "- edits[1].new",
    ]
    assert [line.rpartition("received ")[2] for line in lines[1:]] == ["3", "null"]


def test_parse_shows_what_came_where_a_field_is_missing():
    """The object without the field is shown: its names tell what the model meant."""
    (line,) = refused(ReadArguments, {"file": "读.md"})
    assert (line[:8], line.endswith('received {"file": "读.md"}')) == ("- path: ", True)


def test_parse_cuts_long_values():
    """A value is shown up to 80 characters."""
    exact, longer = [
        refused(model_of(int), {"value": "x" * length})[0].rpartition("received ")[2]
        for length in (78, 79)
    ]
    assert (exact, longer) == (f'"{"x" * 78}"', f'"{"x" * 79}…')


@pytest.mark.parametrize("extra", ["allow", "ignore", "forbid"])
def test_parse_drops_unknown_fields(extra):
    """A field that the schema does not know is dropped, even if the model would refuse it."""
    # Pi, report 6278
    parsed, _ = parse(model_of(int, extra=extra), {"value": 1, "why": "to be sure"})
    assert parsed.model_dump() == {"value": 1}


def test_parse_drops_unknown_fields_at_every_depth():
    """The same inside of nested objects."""
    parsed, _ = parse(EditArguments, {"path": "a", "edits": [{"old": "b", "line": 3}]})
    assert parsed.edits == [Edit(old="b")]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [(None, "null"), ([], "[]"), ("README.md", '"README.md"'), (3, "3")],
    ids=["null", "list", "text", "number"],
)
def test_parse_wants_an_object(arguments, shown):
    """Arguments that are no object are refused as a whole."""
    (line,) = refused(ReadArguments, arguments)
    assert (line[:13], line.endswith(f"received {shown}")) == ("- arguments: ", True)


def test_parse_wants_json():
    """NaN and infinity are no JSON, also where a float is wanted."""
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            parse(model_of(float), {"value": value})


@pytest.mark.parametrize(
    ("config", "shown", "other"),
    [({}, "oldText", "value"), ({"validate_by_alias": False}, "value", "oldText")],
    ids=["alias", "no-alias"],
)
def test_parse_takes_the_name_that_the_schema_shows(config, shown, other):
    """An alias is what the model sees and what it sends; the Python name is nobody's business."""
    names = ConfigDict(validate_by_name="validate_by_alias" in config, **config)
    model = model_of(Annotated[str, Field(alias="oldText")], **names)
    parsed, _ = parse(model, {shown: "a"})
    (line,) = refused(model, {other: "a"})
    assert (schema_of(model)["required"], parsed.value) == ([shown], "a")
    assert line.startswith(f"- {shown}: ")


def test_parse_says_what_a_validator_says():
    """A validator of the model's author is a rule like the others."""

    class Arguments(BaseModel):
        path: str

        @field_validator("path")
        @classmethod
        def _inside(cls, value):
            if value.startswith("/"):
                raise ValueError("stay in the project")
            return value

    (line,) = refused(Arguments, {"path": "/etc"})
    assert line == '- path: Value error, stay in the project, received "/etc"'


def test_parse_shows_what_a_validator_made():
    """A value that is no JSON any more is shown by its type."""
    from pydantic import BeforeValidator

    (line,) = refused(model_of(Annotated[int, BeforeValidator(lambda value: {3})]), {"value": 1})
    assert line.rpartition("received ")[2].strip('"') == "set"


@pytest.mark.parametrize(
    ("annotation", "value", "wanted"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], ' {"a": 1} ', {"a": 1}),
        (Edit, '{"old": "a"}', Edit(old="a")),
        (tuple[int, int], "[1, 2]", (1, 2)),
        (list[int] | None, "[1]", [1]),
        (int | list[int], "[1]", [1]),
        (list[Any], "[1]", [1]),
    ],
    ids=["list", "object", "model", "tuple", "optional", "either", "list-of-any"],
)
def test_parse_reads_json_text_where_a_list_or_object_belongs(annotation, value, wanted):
    """Some models send a list as a string of JSON. It is read, and the path says where."""
    assert value_of(annotation, value) == (wanted, ("value",))


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ('{"path": "a", "edits": [{"old": "b"}]}', ("arguments",)),
        ({"path": "a", "edits": '[{"old": "b"}]'}, ("edits",)),
        ({"path": "a", "edits": ['{"old": "b"}']}, ("edits[0]",)),
        ({"path": "a", "edits": '["{\\"old\\": \\"b\\"}"]'}, ("edits", "edits[0]")),
    ],
    ids=["whole", "list", "item", "text-in-text"],
)
def test_parse_reads_json_text_at_every_depth(arguments, paths):
    """The whole arguments, a field, an item of a list, and a text inside of such a text."""
    parsed, found = parse(EditArguments, arguments)
    assert parsed == EditArguments(path="a", edits=[Edit(old="b")])
    assert found == paths


def test_parse_reads_json_text_in_every_kind_of_place():
    """Values of a mapping, items of a tuple, members of a union, models that contain themselves."""

    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: list[int]

    class Dog(BaseModel):
        kind: Literal["dog"]
        name: str

    class Arguments(BaseModel):
        by_name: dict[str, list[int]]
        pair: tuple[str, list[int]]
        many: tuple[list[int], ...]
        pet: Cat | Dog = Field(discriminator="kind")
        tree: Node

    sent = {
        "by_name": {"a": "[1]"},
        "pair": ["[1]", "[2]"],
        "many": ["[3]"],
        "pet": {"kind": "cat", "lives": "[9]"},
        "tree": {"name": "[root]", "children": [{"name": "x", "children": "[]"}]},
    }
    parsed, paths = parse(Arguments, sent)
    assert parsed.model_dump() == {
        "by_name": {"a": [1]},
        "pair": ("[1]", [2]),
        "many": ([3],),
        "pet": {"kind": "cat", "lives": [9]},
        "tree": {"name": "[root]", "children": [{"name": "x", "children": []}]},
    }
    assert paths == ("by_name.a", "pair[1]", "many[0]", "pet.lives", "tree.children[0].children")


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        (str, "[1]"),
        (str | list[int], "[1]"),
        (list[int] | str | None, "[1]"),
        (Any, "[1]"),
        (Path, Path("[1]")),
        (Literal["[1]", 2], "[1]"),
        (Json[list[int]], [1]),
    ],
    ids=["text", "text-or-list", "list-or-text", "anything", "path", "literal", "json"],
)
def test_parse_leaves_json_text_alone_where_a_text_belongs(annotation, wanted):
    """A file may hold JSON: where a text is right, a text it stays."""
    assert value_of(annotation, "[1]") == (wanted, ())


def test_parse_leaves_json_text_alone_in_a_mapping_to_anything():
    """The values of dict[str, Any] are what they are."""
    annotation = dict[str, Any] | dict[str, list[int]]
    assert value_of(annotation, {"a": "[1]"}) == ({"a": "[1]"}, ())


@pytest.mark.parametrize(
    "text",
    [
        "[1",
        "1, 2",
        "3",
        "null",
        '"[1]"',
        '{"a": 1}',
        "[NaN]",
        "[1e999]",
        "[" * 100_000,
        '[{"a": 1, "a": 1}]',
    ],
    ids=[
        "cut",
        "bare",
        "number",
        "null",
        "quoted",
        "object",
        "nan",
        "too-large",
        "bottomless",
        "same-key-twice",
    ],
)
def test_parse_refuses_text_that_is_no_such_list(text):
    """Read is what is a list beyond doubt. Everything else is refused as the text that came."""
    (line,) = refused(model_of(list[Any]), {"value": text})
    assert line[:9] == "- value: "
    assert json.dumps(text)[:20] in line


def test_parse_refuses_a_list_where_an_object_belongs():
    """JSON text is read where it holds the kind that the schema names, and only there."""
    (line,) = refused(model_of(dict[str, int]), {"value": "[1]"})
    assert line.endswith('received "[1]"')


def test_parse_replaces_half_characters_in_json_text():
    """Escapes in JSON text can spell half of a character, which nothing can store."""
    assert value_of(list[str], '["\\ud83d", "\\ud83d\\ude00"]') == (["\ufffd", SMILE], ("value",))


# Lab 6.2: tools


def test_tool_is_a_frozen_value():
    """What the model was shown can't change behind its back; context and output can't, either."""
    from pi_course.tool import ToolOutput

    one = tool_with(Counter())
    fields = [(one, name) for name in ("name", "description", "parameters", "execute")]
    for value, name in (*fields, (context(), "signal"), (ToolOutput("x"), "content")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)
    assert (one.name, one.description, one.parameters) == ("read", "Read a file", ReadArguments)
    assert one.sequential is False
    assert "additionalProperties" not in repr(one)


@pytest.mark.parametrize(
    "name",
    ["", "read file", "read.file", "läs", "read\n", "a" * 65],
    ids=["empty", "blank", "dot", "accent", "newline", "long"],
)
def test_tool_name_is_one_that_providers_take(name):
    """Letters, digits, _ and -, up to 64 of them; others are refused by name."""
    from pi_course.tool import Tool
    from pi_course.tool_schema import ToolError

    with pytest.raises(ToolError) as caught:
        Tool(name, "Read a file", ReadArguments, Counter())
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", ["read", "Read_2-x", "a" * 64])
def test_tool_takes_every_legal_name(name):
    """The shortest and the longest, and all kinds of characters."""
    assert tool_with(Counter(), name).name == name


def test_tool_parameters_are_checked_when_it_is_made():
    """A model that makes no schema is refused now, not at the first request."""
    from pi_course.tool_schema import ToolError

    with pytest.raises(ToolError):
        tool_with(Counter(), parameters=RootModel[list[int]])


def test_tool_of_a_function():
    """@tool takes the name, the docstring and the types of a function; it runs as it did."""
    from pi_course.tool import Tool, ToolOutput, tool

    seen = []

    @tool
    async def read(path: str, limit: Annotated[int | None, Field(ge=1)] = None) -> ToolOutput:
        """Read a file.

        The whole of it.
        """
        seen.append((path, limit))
        return output

    output = ToolOutput("# Project", details={"lines": 1})
    assert isinstance(read, Tool)
    assert (read.name, read.description) == ("read", "Read a file.\n\nThe whole of it.")
    assert schema_of(read.parameters) == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {
                "anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    parsed, _ = parse(read.parameters, {"path": "a", "limit": 2})
    assert run(read.execute(parsed, context())) is output
    assert seen == [("a", 2)]


def test_tool_of_a_function_with_other_words():
    """@tool(…) with a name, a description and sequential; the docstring does not count then."""
    from pi_course.tool import tool

    @tool(name="write", description="Write a file", sequential=True)
    async def put(path: str) -> str:
        """Not for the model."""
        return path

    assert (put.name, put.description, put.sequential) == ("write", "Write a file", True)
    assert tool(other, name="x").sequential is False


async def other(path: str) -> str:
    """Do another thing."""
    return path


def test_tool_of_a_function_may_return_a_text():
    """A plain text is the content of the output."""
    from pi_course.tool import ToolOutput, tool

    made = tool(other)
    parsed, _ = parse(made.parameters, {"path": "a"})
    assert run(made.execute(parsed, context())) == ToolOutput("a")


@pytest.mark.parametrize("optional", [False, True], ids=["plain", "or-none"])
def test_tool_of_a_function_gets_the_context_where_it_asks_for_it(optional):
    """The parameter is found by its type, whatever its name; the model does not see it."""
    from pi_course.tool import ToolContext, tool

    seen = []
    kind = ToolContext | None if optional else ToolContext

    async def read(path: str, where: kind, *, limit: int = 3) -> str:
        """Read a file."""
        seen.append((path, where, limit))
        return ""

    made, given = tool(read), context()
    assert list(made.definition.parameters["properties"]) == ["path", "limit"]
    parsed, _ = parse(made.parameters, {"path": "a"})
    run(made.execute(parsed, given))
    assert seen == [("a", given, 3)]


def test_tool_of_a_function_with_postponed_annotations():
    """With `from __future__ import annotations` the types are texts: they are looked up."""
    from pi_course.tool import tool

    source = """
from __future__ import annotations
from pi_course.tool import ToolContext

async def read(path: str, context: ToolContext) -> str:
    "Read a file."
    return context.call_id + path
"""
    names = {"__name__": "postponed"}
    exec(source, names)
    made = tool(names["read"])
    parsed, _ = parse(made.parameters, {"path": "a"})
    assert run(made.execute(parsed, context())).content == "call_1a"


async def no_doc(path: str) -> str:
    return path


async def no_type(path) -> str:
    """Read."""


async def many(*paths: str) -> str:
    """Read."""


async def keywords(**paths: str) -> str:
    """Read."""


async def by_place(path: str, /) -> str:
    """Read."""


async def unknown(path: "Nowhere") -> str:  # noqa: F821
    """Read."""


async def no_schema(path: asyncio.Event) -> str:
    """Read."""


async def underscore(_path: str) -> str:
    """Read."""


def not_async(path: str) -> str:
    """Read."""


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (no_doc, "docstring"),
        (no_type, "path"),
        (many, "paths"),
        (keywords, "paths"),
        (by_place, "path"),
        (unknown, "Nowhere"),
        (no_schema, "Event"),
        (underscore, "_path"),
        (not_async, "async"),
    ],
)
def test_tool_of_a_function_refuses_what_makes_no_schema(function, word):
    """Each refusal names the function and what is wrong with it."""
    from pi_course.tool import tool
    from pi_course.tool_schema import ToolError

    with pytest.raises(ToolError) as caught:
        tool(function)
    problem = str(caught.value)
    assert function.__name__ in problem
    assert word in problem
    assert "http" not in problem


def test_tool_of_a_function_takes_names_that_models_have():
    """Parameters called json, copy or model_name work, and warn of nothing."""
    from pi_course.tool import tool

    async def keep(json: str, copy: bool, model_name: str = "m") -> str:
        """Keep it."""
        return f"{json} {copy} {model_name}"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = tool(keep)
    parsed, _ = parse(made.parameters, {"json": "a", "copy": True})
    assert run(made.execute(parsed, context())).content == "a True m"


# Lab 6.2: the registry


def test_registry_keeps_the_order():
    """The order in which tools came is the order in which the model sees them."""
    registry = registry_of(tool_with(Counter(), "write"), tool_with(Counter(), "bash"))
    registry.register(tool_with(Counter(), "edit"))
    assert [one.name for one in registry.list()] == ["write", "bash", "edit"]
    assert [one.name for one in registry.definitions()] == ["write", "bash", "edit"]
    assert (type(registry.list()), type(registry.definitions())) == (tuple, tuple)


def test_registry_finds_by_name():
    """The tool itself, or None."""
    one = tool_with(Counter())
    registry = registry_of(one)
    assert registry.get("read") is one
    assert registry.get("Read") is None


def test_registry_refuses_a_name_twice():
    """The second tool of a name is refused by that name, and the first one stays."""
    from pi_course.tool_schema import ToolError

    first = tool_with(Counter())
    registry = registry_of(first)
    for again in (
        lambda: registry.register(tool_with(Counter())),
        lambda: registry_of(first, first),
    ):
        with pytest.raises(ToolError, match="'read'"):
            again()
    assert registry.list() == (first,)


def test_registry_shows_the_model_three_things():
    """Name, description and parameters; nothing of the function."""
    (definition,) = registry_of(tool_with(Counter())).definitions()
    assert definition.model_dump(mode="json") == {
        "name": "read",
        "description": "Read a file",
        "parameters": schema_of(ReadArguments),
    }


def test_registry_makes_each_schema_once():
    """A request costs no new schema: the very same definition is given each time."""
    registry = registry_of(tool_with(Counter()))
    assert registry.definitions()[0] is registry.definitions()[0]


def test_registry_starts_empty():
    """No tools are no definitions."""
    from pi_course.tool import ToolRegistry

    assert (ToolRegistry().list(), ToolRegistry().definitions()) == ((), ())


# Lab 6.3: the four outcomes


def test_execute_success():
    """The running example: the id and the name of the call, and what the tool gave."""
    counter = Counter()
    before = int(time.time() * 1000)
    result = execute(counter)
    assert (result.tool_call_id, result.tool_name, result.is_error) == ("call_1", "read", False)
    assert (said(result), result.details) == ("# Project", None)
    assert before <= result.timestamp <= int(time.time() * 1000)
    assert counter.seen == [ReadArguments(path="README.md")]


def test_execute_unknown_tool_names_what_is_close():
    """A misspelt name gets the right one back; nothing runs."""
    from pi_course.tool import execute_tool_call

    counter = Counter()
    registry = registry_of(*(tool_with(counter, name) for name in ("bash", "read", "write")))
    result = run(execute_tool_call(call(name="raed"), registry, context()))
    assert (result.tool_call_id, result.tool_name, result.is_error) == ("call_1", "raed", True)
    assert said(result) == "Tool raed failed: there is no tool of this name; did you mean read?"
    assert result.details == {"error": "there is no tool of this name; did you mean read?"}
    assert counter.seen == []


def test_execute_unknown_tool_may_be_close_to_several():
    """The closest one comes first."""
    from pi_course.tool import execute_tool_call

    registry = registry_of(*(tool_with(Counter(), name) for name in ("bash", "read_all", "read")))
    result = run(execute_tool_call(call(name="reads"), registry, context()))
    assert said(result).endswith("; did you mean read or read_all?")


def test_execute_unknown_tool_names_all_where_none_is_close():
    """A name out of nowhere gets the list of all tools."""
    from pi_course.tool import execute_tool_call

    registry = registry_of(*(tool_with(Counter(), name) for name in ("bash", "read")))
    result = run(execute_tool_call(call(name="search_web"), registry, context()))
    assert said(result).endswith("there is no tool of this name; there are bash, read")


def test_execute_without_any_tools():
    """An empty registry says so."""
    from pi_course.tool import ToolRegistry, execute_tool_call

    result = run(execute_tool_call(call(), ToolRegistry(), context()))
    assert error_of(result) == "there is no tool of this name; there are no tools at all"


def test_execute_refused_arguments_never_reach_the_tool():
    """A good call and a bad one: the counter stays at 1, and each error has its line."""
    counter = Counter()
    execute(counter)
    reason = error_of(execute(counter, {"limit": "3"}))
    assert len(counter.seen) == 1
    assert reason.split("\n")[0] == "its arguments were refused, and it did not run."
    assert [line.partition(": ")[0] for line in reason.split("\n")[1:]] == ["- path", "- limit"]


def test_execute_a_validator_that_breaks_refuses_the_arguments():
    """A bug in the rules of the model's author: the tool does not run, and nothing is raised."""

    class Broken(BaseModel):
        path: str

        @field_validator("path")
        @classmethod
        def _breaks(cls, value):
            return {}[value]

    counter = Counter()
    reason = error_of(execute(counter, parameters=Broken))
    assert reason == "its arguments were refused, and it did not run.\n'README.md'"
    assert counter.seen == []


def test_execute_a_tool_that_raises():
    """The message of the exception is the reason."""
    assert error_of(execute(raises(ValueError("the file is empty")))) == "the file is empty"


def test_execute_a_tool_that_is_not_async():
    """A function that returns no awaitable is a failure of this call, no more."""
    assert "await" in error_of(execute(lambda arguments, context: "text"))


def test_execute_a_tool_that_takes_other_arguments():
    """So is one that cannot even be called."""
    assert "argument" in error_of(execute(lambda: None))


def test_execute_pairs_each_call():
    """After a call and its result, nothing is left open, and the result can be stored."""
    from pi_course.messages import assistant_message, parse_message, unpaired_calls

    for function in (Counter(), raises(ValueError("no"))):
        result = execute(function)
        assert unpaired_calls([assistant_message([call()], "toolUse"), result]) == []
        assert parse_message(json.loads(result.model_dump_json())) == result


# Lab 6.3: what stays out of the transcript


def open_session(name):
    token = SECRET
    raise PermissionError(f"{name} may not be read" if token else "")


def test_execute_keeps_the_message_of_an_exception_and_nothing_else():
    """No traceback, no source line, no local variable, no file of this machine."""

    async def function(arguments, context):
        password = SECRET
        try:
            open_session(arguments.path)
        except PermissionError as error:
            raise RuntimeError("the session could not be opened") from (error if password else None)

    result = execute(function)
    assert error_of(result) == "the session could not be opened"
    stored = result.model_dump_json()
    for kept_out in (SECRET, "Traceback", "open_session", "may not be read", __file__):
        assert kept_out not in stored


def test_execute_leaves_out_the_file_of_an_os_error(tmp_path):
    """What open() raises names a path of this machine; the reason is enough."""

    async def function(arguments, context):
        open(tmp_path / "missing.txt", encoding="utf-8")

    result = execute(function)
    assert error_of(result) == "No such file or directory"
    assert str(tmp_path) not in result.model_dump_json()


class Foreign(BaseException):
    pass


def mute(base, why):
    """An exception of which nobody can make a text: that raises `why`."""

    class Mute(base):
        def __str__(self):
            raise why("no words")

    return Mute()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "TimeoutError"),
        (ValueError(" \n"), "ValueError"),
        (mute(Exception, RuntimeError), "Mute"),
        (mute(Exception, Foreign), "Mute"),
        (mute(Exception, asyncio.CancelledError), "Mute"),
        (OSError("the disk is full"), "the disk is full"),
        (ValueError(f"half {HIGH}, whole {HIGH}{LOW}"), f"half \ufffd, whole {SMILE}"),
        (SystemExit(3), "it asked the whole program to exit: 3"),
        (mute(SystemExit, Foreign), "it asked the whole program to exit: Mute"),
    ],
    ids=[
        "empty",
        "blank",
        "mute",
        "mute-foreign",
        "mute-cancelled",
        "os-error",
        "half-character",
        "exit",
        "exit-mute",
    ],
)
def test_execute_always_finds_a_reason(error, reason):
    """An exception without a message gives its name; one that asks to exit ends no agent."""
    assert error_of(execute(raises(error))) == reason


def test_execute_survives_exceptions_of_every_kind():
    """Also those that `except Exception` does not catch."""
    assert error_of(execute(raises(Foreign("from a library")))) == "from a library"


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), mute(Exception, KeyboardInterrupt)],
    ids=["in-the-tool", "in-its-reason"],
)
def test_execute_lets_a_keyboard_interrupt_through(error):
    """Ctrl-C is for the program, not for the model."""
    from pi_course.tool import execute_tool_call

    registry = registry_of(tool_with(raises(error)))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(execute_tool_call(call(), registry, context()))


def test_execute_cuts_a_reason_without_end():
    """A reason is kept up to 4000 characters, and the cut shows."""
    exact, longer = [error_of(execute(raises(ValueError("x" * n)))) for n in (4000, 4001)]
    assert (exact, longer) == ("x" * 4000, "x" * 4000 + "…")


# Lab 6.3: context and output


def test_execute_gives_the_tool_the_signal_of_the_caller():
    """The very same signal object, and the id of the call."""
    from pi_course.abort import AbortController
    from pi_course.tool import execute_tool_call

    counter, signal = Counter(), AbortController().signal
    given = context(signal=signal)
    run(execute_tool_call(call(), registry_of(tool_with(counter)), given))
    (seen,) = counter.contexts
    assert seen.signal is signal
    assert seen.call_id == "call_1"


def test_execute_passes_progress_on_as_it_is():
    """Texts and blocks go to the caller's callback, in order, while the tool runs."""
    from pi_course.messages import text

    heard = []

    async def function(arguments, context):
        from pi_course.tool import ToolOutput

        for content in ("half", [text("all")]):
            context.report_progress(content)
        return ToolOutput(str(len(heard)))

    result = execute(function, report=heard.append)
    assert (heard, said(result)) == (["half", [text("all")]], "2")


def test_execute_without_a_listener_drops_progress():
    """A tool may report although nobody listens."""

    async def function(arguments, context):
        from pi_course.tool import ToolOutput

        return ToolOutput(repr(context.report_progress("half")))

    assert said(execute(function)) == "None"


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_execute_drops_progress_after_the_end(ends):
    """A background thread that still reports belongs to no call any more."""
    # Pi, report 5573
    heard, kept = [], []

    async def function(arguments, context):
        from pi_course.tool import ToolOutput

        kept.append(context)
        context.report_progress("in time")
        if ends == "raises":
            raise ValueError("no")
        return ToolOutput("# Project")

    execute(function, report=heard.append)
    kept[0].report_progress("too late")
    assert heard == ["in time"]


def test_execute_drops_progress_after_a_cancellation():
    """A call that was cancelled is over, too."""
    from pi_course.tool import execute_tool_call

    heard, kept = [], []

    async def function(arguments, context):
        kept.append(context)
        await asyncio.Event().wait()

    async def scenario():
        registry = registry_of(tool_with(function))
        task = asyncio.create_task(execute_tool_call(call(), registry, context(heard.append)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    run(scenario())
    kept[0].report_progress("too late")
    assert heard == []


def test_execute_says_where_json_text_was_read():
    """Progress says it before the tool runs; the call in the transcript stays as it was sent."""
    heard = []

    async def function(arguments, context):
        from pi_course.tool import ToolOutput

        return ToolOutput(f"{len(arguments.edits)} edits, {len(heard)} said")

    arguments = {"path": "a", "edits": '[{"old": "b"}]'}
    result = execute(function, arguments, parameters=EditArguments, report=heard.append)
    assert heard == ["edits was sent as a string and read as the JSON in it"]
    assert said(result) == "1 edits, 1 said"


def test_execute_a_tool_may_say_itself_that_it_failed():
    """is_error with an output that is worth reading: it is kept as it is."""
    result = execute(gives("1 failed, 3 passed", {"exit_code": 1}, is_error=True))
    assert (said(result), result.details, result.is_error) == (
        "1 failed, 3 passed",
        {"exit_code": 1},
        True,
    )


def test_execute_content_may_be_none():
    """None becomes no blocks at all."""
    assert execute(gives(None)).content == ()


def test_execute_keeps_the_blocks_in_order():
    """Several text blocks stay several, in a list and in a tuple."""
    from pi_course.messages import text

    blocks = [text("a"), text("b")]
    assert execute(gives(blocks)).content == tuple(blocks)
    assert execute(gives(tuple(blocks))).content == tuple(blocks)


def test_execute_replaces_half_characters():
    """In content, and in the texts, keys, lists and tuples of details."""
    from pi_course.messages import TextContent

    broken = TextContent.model_construct(type="text", text=f"b{LOW}")
    for content, wanted in ((f"a{HIGH}", "a\ufffd"), ([broken], "b\ufffd")):
        assert said(execute(gives(content))) == wanted
    details = {HIGH: [f"{HIGH}{LOW}", (LOW,)], "n": 1}
    assert execute(gives("", details)).details == {"\ufffd": (SMILE, ("\ufffd",)), "n": 1}


def endless():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("output", "word"),
    [
        (returns(None), "NoneType"),
        (returns("# Project"), "str"),
        (returns({"content": "x"}), "dict"),
        (gives(42), "int"),
        (gives(["# Project"]), "str"),
        (gives({"text": "x"}), "dict|str"),
        (gives("x", {"when": {1}}), "set"),
        (gives("x", b"bytes"), "bytes"),
        (gives("x", float("nan")), "nan"),
        (gives("x", {1: "a"}), "1"),
        (gives("x", {(1,): "a"}), ""),
        (gives("x", endless()), ""),
    ],
    ids=[
        "nothing",
        "text",
        "dict",
        "number",
        "texts-for-blocks",
        "mapping-for-blocks",
        "set",
        "bytes",
        "nan",
        "key-no-text",
        "key-list",
        "endless",
    ],
)
def test_execute_output_that_no_message_can_hold_is_a_failure(output, word):
    """The reason says what was found; nothing is raised, and nothing is silently empty."""
    assert re.search(word, error_of(execute(output)))


def test_execute_takes_any_truth_for_is_error():
    """A tool that sets is_error to its exit code has still said that it failed."""
    result = execute(gives("x", is_error=2))
    assert (said(result), result.is_error) == ("x", True)


# Lab 6.3: cancellation


async def cancelled(function, *, wait=True):
    """Starts a call as a task, cancels it, and says how it ended."""
    from pi_course.tool import execute_tool_call

    registry = registry_of(tool_with(function))
    task = asyncio.create_task(execute_tool_call(call(), registry, context()))
    if wait:
        await asyncio.sleep(0)
    task.cancel()
    return await ending(task)


async def ending(task):
    await asyncio.wait([task])
    return "cancelled" if task.cancelled() else said(task.result())


def test_execute_does_not_swallow_a_cancellation():
    """Who cancels the task that runs a call gets a cancelled task, and the tool may clean up."""
    cleaned = []

    async def function(arguments, context):
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    assert run(cancelled(function)) == "cancelled"
    assert cleaned == [True]


@pytest.mark.parametrize("then", ["returns", "raises"])
def test_execute_is_cancelled_even_if_the_tool_catches_it(then):
    """A tool that makes something else of a cancellation does not keep the task running."""

    async def function(arguments, context):
        from pi_course.tool import ToolOutput

        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if then == "raises":
                raise ValueError("not now") from None
        return ToolOutput("finished anyway")

    assert run(cancelled(function)) == "cancelled"


def test_execute_notices_a_cancellation_from_within():
    """The tool itself, or what it calls, may cancel the task that runs it: that counts as well."""

    async def function(arguments, context):
        asyncio.current_task().cancel()
        await asyncio.Event().wait()

    async def scenario():
        from pi_course.tool import execute_tool_call

        registry = registry_of(tool_with(function))
        return await ending(asyncio.create_task(execute_tool_call(call(), registry, context())))

    assert run(scenario()) == "cancelled"


def test_execute_notices_a_cancellation_from_before():
    """A task that was told to stop at its next wait does so, although the call began later."""
    from pi_course.tool import execute_tool_call

    async def function(arguments, context):
        await asyncio.Event().wait()

    async def scenario():
        async def stop_and_call():
            asyncio.current_task().cancel()
            return await execute_tool_call(call(), registry, context())

        registry = registry_of(tool_with(function))
        return await ending(asyncio.create_task(stop_and_call()))

    assert run(scenario()) == "cancelled"


def test_execute_lets_python_close_it():
    """A coroutine that nobody goes on with is closed by a GeneratorExit: that is no failure."""
    from pi_course.tool import execute_tool_call

    async def function(arguments, context):
        await asyncio.Event().wait()

    async def scenario():
        coroutine = execute_tool_call(call(), registry_of(tool_with(function)), context())
        coroutine.send(None)
        with pytest.raises(GeneratorExit):
            coroutine.throw(GeneratorExit())

    run(scenario())


def test_execute_a_tool_whose_own_task_was_cancelled_failed():
    """A CancelledError that nobody sent to our task is a failure like others."""

    async def function(arguments, context):
        inner = asyncio.create_task(asyncio.Event().wait())
        inner.cancel()
        await inner

    assert error_of(execute(function)) == "it was cancelled from inside"
    assert error_of(execute(raises(asyncio.CancelledError()))) == "it was cancelled from inside"


def test_execute_a_time_limit_inside_of_a_tool_is_its_own():
    """asyncio.timeout cancels and takes it back: what is left is a TimeoutError."""

    async def function(arguments, context):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    assert error_of(execute(function)) == "TimeoutError"


def test_execute_after_a_cancellation_that_somebody_caught():
    """An old cancellation of the same task says nothing about this call."""
    from pi_course.tool import execute_tool_call

    registry = registry_of(tool_with(Counter()))

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return said(await execute_tool_call(call(), registry, context()))

    async def scenario():
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert run(scenario()) == "# Project"
