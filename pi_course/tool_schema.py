"""What a model may send to a tool: the schema that it is shown, and the check of what came.

Both are made from one pydantic model. The arguments of a call are JSON that nobody here wrote, so
they are read as JSON and strictly: "3" is not 3, and True is not 1. What is guessed here is done
by a tool.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError

from pi_course.errors import PiError
from pi_course.strict_json import STRICT_JSON
from pi_course.surrogates import replace_surrogates_in
from pi_course.wire import FrozenDict, InvalidValue, frozen_json

SHOWN_CHARS = 80  # of a received value in an error

Schema = Mapping[str, object]
Arguments = TypeVar("Arguments", bound=BaseModel)


class ToolError(PiError, ValueError):
    """A tool that no model could call: its name, its parameters or its function are refused."""


class InvalidArguments(PiError, ValueError):
    """Arguments that do not fit the schema. One line for each error: path, rule, what came."""


def closed_schema(parameters: type[BaseModel]) -> dict[str, object]:
    """The JSON Schema of a model, in the form that a provider takes and without loopholes.

    Each object in it says additionalProperties: false, also where the model itself would allow
    more. The titles that pydantic makes of the names are left out: a model pays for each word.

    Example:
        >>> from pydantic import create_model
        >>> closed_schema(create_model("ReadFile", path=str))["properties"]
        {'path': {'type': 'string'}}
    """
    try:
        schema = parameters.model_json_schema()
    except PydanticUserError as error:
        raise ToolError(f"{parameters.__name__} has no JSON Schema: {error.message}") from None
    definitions = cast("dict[str, dict[str, object]]", schema.pop("$defs", {}))
    if "$ref" in schema:  # a model that contains itself; providers want the object on top
        schema = dict(definitions[_name_in(schema)])
    for part in (schema, *definitions.values()):
        _close(part)
    if "properties" not in schema:
        raise ToolError(
            f"{parameters.__name__} is not an object with fields, and arguments have names:"
            " put it into a field of a model"
        )
    whole = {**schema, "$defs": definitions} if definitions else schema
    try:
        frozen_json(whole)
    except InvalidValue as error:  # a default may be infinite
        raise ToolError(f"the schema of {parameters.__name__} is no JSON: {error}") from None
    return whole


def _close(schema: dict[str, object]) -> None:
    """Take the titles out of one object, in place, and allow no fields but its own."""
    schema.pop("title", None)
    if isinstance(properties := schema.get("properties"), dict):
        schema["additionalProperties"] = False
        for one in cast("dict[str, dict[str, object]]", properties).values():
            one.pop("title", None)


def _name_in(schema: Schema) -> str:
    """The name under $defs to which a $ref leads."""
    return str(schema["$ref"]).rpartition("/")[2]


def parse_tool_arguments(
    parameters: type[Arguments], schema: Schema, arguments: object
) -> tuple[Arguments, tuple[str, ...]]:
    """An instance of the model, and the paths at which JSON text was read as a list or object.

    Fields that the schema does not know are dropped, at every depth and even if the model forbids
    them: a model that adds a field has still said what is needed. A list or object that came as a
    string of JSON is read where the schema has a list or object and no string.

    What does not fit raises InvalidArguments. `arguments` are JSON, as those of a ToolCall are: for
    a NaN or a set the ValueError or TypeError of `json` gets out. As pydantic does it, a whole
    number that is too large for a float field becomes inf there.
    """
    texts = _JsonText(schema)
    value = texts.read(arguments, [schema], "")
    try:
        parsed = parameters.model_validate_json(
            json.dumps(value, allow_nan=False), strict=True, extra="ignore"
        )
    except ValidationError as error:
        lines = [
            f"- {_path(one['loc']) or 'arguments'}: {one['msg']}, received {_shown(one['input'])}"
            for one in error.errors()
        ]
        raise InvalidArguments("\n".join(lines)) from None
    return parsed, tuple(texts.paths)


def _path(place: Sequence[int | str]) -> str:
    """A place as a programmer writes it.

    Example:
        >>> _path(("edits", 0, "oldText"))
        'edits[0].oldText'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)[1:]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=lambda odd: type(odd).__name__)
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


class _JsonText:
    """Goes through arguments and schema side by side, and reads JSON text where it has to be."""

    def __init__(self, schema: Schema) -> None:
        self.paths: list[str] = []  # where a text was read
        self._definitions = cast("Mapping[str, Schema]", schema.get("$defs", {}))

    def read(self, value: object, schemas: Sequence[object], path: str) -> object:
        options = [option for schema in schemas for option in self._options(schema)]
        if isinstance(value, str):
            kinds = {option.get("type", "string") for option in options}  # no type: any will do
            inside = None if "string" in kinds else _json_in(value)
            if _KINDS.get(type(inside)) not in kinds:
                return value
            self.paths.append(path or "arguments")
            value = inside
        match value:
            case list() | tuple():
                items = cast("Sequence[object]", value)
                return [
                    self.read(item, _schemas_of_item(options, place), f"{path}[{place}]")
                    for place, item in enumerate(items)
                ]
            case dict():
                fields = cast("dict[str, object]", value)
                return {
                    name: self.read(
                        field, _schemas_of_field(options, name), f"{path}.{name}" if path else name
                    )
                    for name, field in fields.items()
                }
            case _:
                return value

    def _options(self, schema: object) -> Iterator[Schema]:
        """What may stand at one place: unions opened, references followed."""
        if schema is True:
            yield {}  # anything
        if not isinstance(schema, Mapping):
            return
        option = cast("Schema", schema)
        if "$ref" in option:
            yield from self._options(self._definitions[_name_in(option)])
        elif members := option.get("anyOf", option.get("oneOf")):
            for member in cast("Sequence[object]", members):
                yield from self._options(member)
        else:
            yield option


def _schemas_of_item(options: Sequence[Schema], place: int) -> list[object]:
    found: list[object] = []
    for option in options:
        first = cast("Sequence[object]", option.get("prefixItems", ()))
        found.append(first[place] if place < len(first) else option.get("items"))
    return found


def _schemas_of_field(options: Sequence[Schema], name: str) -> list[object]:
    return [
        cast("Schema", option.get("properties", {})).get(name, option.get("additionalProperties"))
        for option in options
    ]


_KINDS: dict[type[object], str] = {tuple: "array", FrozenDict: "object"}


def _json_in(text: str) -> object:
    """The JSON value that a text holds, frozen; None for a text that is no JSON beyond doubt."""
    try:
        return frozen_json(replace_surrogates_in(STRICT_JSON.decode(text)))
    except (ValueError, RecursionError):
        return None
