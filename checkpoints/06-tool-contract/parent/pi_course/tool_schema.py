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
    raise NotImplementedError("Lab 6.1: closed_schema()")


def _close(schema: dict[str, object]) -> None:
    """Take the titles out of one object, in place, and allow no fields but its own."""
    raise NotImplementedError("Lab 6.1: _close()")


def _name_in(schema: Schema) -> str:
    """The name under $defs to which a $ref leads."""
    raise NotImplementedError("Lab 6.1: _name_in()")


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
    raise NotImplementedError("Lab 6.1: parse_tool_arguments()")


def _path(place: Sequence[int | str]) -> str:
    """A place as a programmer writes it.

    Example:
        >>> _path(("edits", 0, "oldText"))
        'edits[0].oldText'
    """
    raise NotImplementedError("Lab 6.1: _path()")


def _shown(value: object) -> str:
    raise NotImplementedError("Lab 6.1: _shown()")


class _JsonText:
    """Goes through arguments and schema side by side, and reads JSON text where it has to be."""

    def __init__(self, schema: Schema) -> None:
        self.paths: list[str] = []  # where a text was read
        self._definitions = cast("Mapping[str, Schema]", schema.get("$defs", {}))

    def read(self, value: object, schemas: Sequence[object], path: str) -> object:
        raise NotImplementedError("Lab 6.1: _JsonText.read()")

    def _options(self, schema: object) -> Iterator[Schema]:
        """What may stand at one place: unions opened, references followed."""
        raise NotImplementedError("Lab 6.1: _JsonText._options()")


def _schemas_of_item(options: Sequence[Schema], place: int) -> list[object]:
    raise NotImplementedError("Lab 6.1: _schemas_of_item()")


def _schemas_of_field(options: Sequence[Schema], name: str) -> list[object]:
    raise NotImplementedError("Lab 6.1: _schemas_of_field()")


_KINDS: dict[type[object], str] = {tuple: "array", FrozenDict: "object"}


def _json_in(text: str) -> object:
    """The JSON value that a text holds, frozen; None for a text that is no JSON beyond doubt."""
    raise NotImplementedError("Lab 6.1: _json_in()")
