"""The arguments of a finished call: strict, since what is guessed here is done by a tool."""

from pi_course.strict_json import STRICT_JSON
from pi_course.surrogates import replace_surrogates_in
from pi_course.wire import frozen_json


def parse_arguments(raw: str) -> object:
    """One JSON object, or ValueError with the reason. A call without arguments may be blank.

    Example:
        >>> parse_arguments('{"path": "README.md"}')
        {'path': 'README.md'}
        >>> parse_arguments(" ")
        {}
    """
    if not raw.strip():
        return {}
    try:
        value: object = STRICT_JSON.decode(raw)
        if (kind := type(value).__name__) != "dict":
            raise ValueError(f"found {kind}")
        return frozen_json(replace_surrogates_in(value))
    except RecursionError:
        raise ValueError("nested too deeply") from None
