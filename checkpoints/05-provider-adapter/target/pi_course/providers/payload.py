"""Narrowing unknown JSON, field by field: each refusal names the path and what was found.

A field that is absent or null gives None, or an empty value: servers differ in which they send.
"""

import json
from typing import cast

from pi_course.providers.chunks import ProviderError
from pi_course.strict_json import JSON

SHOWN_CHARS = 60  # of a value in an error

JsonObject = dict[str, object]

_RETRYABLE_KINDS = (
    "api_error",
    "overloaded_error",
    "rate_limit_error",
    "server_error",
    "timeout_error",
)


def invalid(problem: str) -> ProviderError:
    return ProviderError(f"Invalid provider chunk: {problem}")


def must_be(path: str, what: str, found: object) -> ProviderError:
    return invalid(f"{path} must be {what}, found {shown(found)}")


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


def parse_payload(data: str) -> JsonObject:
    """One JSON object. Raises also for the payload that is the provider's report of an error."""
    data = data.strip()
    try:
        value, end = JSON.raw_decode(data)
    except (ValueError, RecursionError):
        value, end = None, -1
    if end != len(data):
        raise invalid(f"the payload is not JSON: {shown(data)}")
    if not isinstance(value, dict):
        raise must_be("the payload", "an object", value)
    payload = cast("JsonObject", value)
    if payload.get("error") is not None:
        raise reported(payload["error"])
    return payload


def reported(error: object) -> ProviderError:
    """The provider's own report, in its own words if it has any."""
    fields = cast("JsonObject", error) if isinstance(error, dict) else {"message": error}
    message = fields.get("message")
    text = (
        message if isinstance(message, str) and message else json.dumps(fields, ensure_ascii=False)
    )
    code, kind = fields.get("code"), fields.get("type")
    return ProviderError(
        f"The provider reported an error: {text}",
        retryable=(type(code) is int and is_retryable(code)) or kind in _RETRYABLE_KINDS,
    )


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed a little later."""
    return status in (408, 409, 429) or status >= 500


def text_in(fields: JsonObject, key: str, at: str = "") -> str | None:
    value = fields.get(key)
    if value is None or isinstance(value, str):
        return value
    raise must_be(f"{at}{key}", "a string", value)


def count_in(fields: JsonObject, key: str, at: str = "") -> int | None:
    value = fields.get(key)
    if value is None or (type(value) is int and value >= 0):  # type(): True is an int, too
        return value
    raise must_be(f"{at}{key}", "a non-negative integer", value)


def object_in(fields: JsonObject, key: str, at: str = "") -> JsonObject | None:
    value = fields.get(key)
    if value is None or isinstance(value, dict):
        return cast("JsonObject | None", value)
    raise must_be(f"{at}{key}", "an object", value)


def objects_in(fields: JsonObject, key: str, at: str = "") -> list[JsonObject]:
    value = fields.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise must_be(f"{at}{key}", "a list", value)
    items = cast("list[object]", value)
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise must_be(f"{at}{key}[{number}]", "an object", item)
    return cast("list[JsonObject]", items)
