"""Text from outside may hold halves of surrogate pairs, and no encoding can store those.

Messages refuse them. The edges, where text comes in that nobody here wrote, replace them first.
"""

import re
from typing import cast

_LAST_HALF = re.compile("[\ud800-\udbff]\\Z")


def replace_surrogates(text: str) -> str:
    """Join the halves that belong together, and put U+FFFD for those that stand alone.

    Example:
        >>> replace_surrogates("\\ud83d\\ude00 \\ud83d") == "\\U0001f600 \\ufffd"
        True
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def replace_surrogates_in(value: object) -> object:
    """The same for every text and key inside a JSON value. What is no JSON stays as it is."""
    match value:
        case str():
            return replace_surrogates(value)
        case list():
            return [replace_surrogates_in(item) for item in cast("list[object]", value)]
        case tuple():
            return tuple(replace_surrogates_in(item) for item in cast("tuple[object, ...]", value))
        case dict():
            pairs = cast("dict[object, object]", value)
            return {replace_surrogates_in(k): replace_surrogates_in(v) for k, v in pairs.items()}
        case _:
            return value


def cut_last_half(text: str) -> tuple[str, str]:
    """Split off a first half at the end: the other one may still come.

    Example:
        >>> cut_last_half("a\\ud83d") == ("a", "\\ud83d")
        True
    """
    if text.isascii() or not _LAST_HALF.search(text):
        return text, ""
    return text[:-1], text[-1]
