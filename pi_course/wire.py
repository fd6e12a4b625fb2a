"""The base of every value that is stored or sent: strict on the way in, frozen inside, JSON out.

pydantic's defaults would let in lone surrogates, leave nested dicts open to change and write NaN
as null. A message that was accepted here can be written as JSON, and read back as an equal one.
"""

import math
import re
from typing import Annotated, NoReturn, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from pi_course.errors import PiError

MAX_DEPTH = 100  # levels of lists and objects inside one JSON value

_SURROGATE = re.compile("[\ud800-\udfff]")
_OUTSIDE = object()  # marks a validation that parse() started
_TAGS = ("role", "type")

T = TypeVar("T")


class InvalidValue(PiError, ValueError):
    """A value that a message can't hold. In a field, pydantic turns it into a ValidationError."""


class FrozenDict(dict[str, object]):
    """A JSON object that no longer changes. Equal to the dict with the same items.

    It is a real dict, so that json.dumps and pattern matching take it as one.
    """

    __slots__ = ()

    def _refuse(self: object, *_: object, **__: object) -> NoReturn:
        raise TypeError("this JSON object is frozen: build a new one, such as {**old, 'key': 1}")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type["FrozenDict"], tuple[dict[str, object]]]:
        return FrozenDict, (dict(self),)  # pickle and copy would set the items one by one


def whole_text(value: str) -> str:
    """Refuse half of a surrogate pair: it can't be encoded, so it could never be saved."""
    if not value.isascii() and (half := _SURROGATE.search(value)):
        raise InvalidValue(f"lone surrogate {half[0]!a} at index {half.start()}: replace it first")
    return value


def frozen_json(value: object) -> object:
    """Copy a JSON value so that nobody can change the copy: objects frozen, lists as tuples.

    Example:
        >>> frozen_json({"paths": ["a", "b"]})
        {'paths': ('a', 'b')}
    """
    return _frozen(value, "")


def _frozen(value: object, path: str, depth: int = 0) -> object:
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case str():
            return whole_text(value)
        case dict() | list() | tuple() if depth >= MAX_DEPTH:
            raise InvalidValue(f"{path[:40]}… is nested deeper than {MAX_DEPTH} levels")
        case list() | tuple():
            items = cast("list[object]", value)
            return tuple(_frozen(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(items))
        case dict():
            pairs = cast("dict[object, object]", value)
            return FrozenDict(
                {_key(k, path): _frozen(v, f"{path}.{k}", depth + 1) for k, v in pairs.items()}
            )
        case _:
            found = value if isinstance(value, float) else type(value).__name__
            raise InvalidValue(f"{path or 'value'} is {found}, which JSON can't hold")


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidValue(f"{path or 'value'} has the key {key!r}: JSON keys are strings")
    return whole_text(key)


Json = Annotated[object, AfterValidator(frozen_json)]
"""Any JSON value. Its static type is object: check what it is before you use it."""


def _list_as_tuple(value: object) -> object:
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


class WireModel(BaseModel):
    """Base of messages and blocks. Python names inside, camelCase in JSON, nothing unknown."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        serialize_by_alias=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _from_fields(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, object]", value)
        # Constructors may leave the tag to its default; a JSON object may not.
        if info.context is _OUTSIDE:
            for tag in _TAGS:
                if tag in cls.model_fields and tag not in fields:
                    raise InvalidValue(f"the field {tag!r} is missing")
        return {name: _list_as_tuple(given) for name, given in fields.items()}

    @field_validator("*", mode="after")
    @classmethod
    def _text_is_whole(cls, value: object) -> object:
        return whole_text(value) if isinstance(value, str) else value

    @model_serializer(mode="wrap")
    def _without_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        fields = type(self).model_fields.items()
        absent = {n for n, f in fields if not f.is_required() and getattr(self, n) is None}
        absent |= {to_camel(name) for name in absent}
        return {name: value for name, value in handler(self).items() if name not in absent}


def parse(adapter: TypeAdapter[T], value: object) -> T:
    """Let a JSON value from outside in: JSON names only, and each object says its own kind."""
    return adapter.validate_python(value, by_alias=True, by_name=False, context=_OUTSIDE)
