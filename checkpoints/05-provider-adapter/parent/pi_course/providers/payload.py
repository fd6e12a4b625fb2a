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
    raise NotImplementedError("Lab 5.3: parse_payload()")


def reported(error: object) -> ProviderError:
    """The provider's own report, in its own words if it has any."""
    raise NotImplementedError("Lab 5.3: reported()")


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed a little later."""
    return status in (408, 409, 429) or status >= 500


def text_in(fields: JsonObject, key: str, at: str = "") -> str | None:
    raise NotImplementedError("Lab 5.3: text_in()")


def count_in(fields: JsonObject, key: str, at: str = "") -> int | None:
    raise NotImplementedError("Lab 5.3: count_in()")


def object_in(fields: JsonObject, key: str, at: str = "") -> JsonObject | None:
    raise NotImplementedError("Lab 5.3: object_in()")


def objects_in(fields: JsonObject, key: str, at: str = "") -> list[JsonObject]:
    raise NotImplementedError("Lab 5.3: objects_in()")
