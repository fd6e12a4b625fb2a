"""A key that goes into one header and nowhere else.

Text that comes back from a server or from an exception may hold it, so all such text passes
through redact() before it leaves the transport.
"""

import json
from urllib.parse import quote

from pi_course.providers.chunks import ProviderError

REDACTED = "[redacted]"
CUT = "…"  # stands where a text was cut off
SHORTEST_SECRET = 6  # a shorter beginning of a key gives nothing away


class ApiKey:
    """Its repr shows nothing; value() is called where the header is written, and only there."""

    def __init__(self, value: str | None) -> None:
        self.__value = value or ""
        for position, character in enumerate(self.__value):
            if not "!" <= character <= "~":
                raise ProviderError(
                    f"The API key holds {character!a} at position {position}, which no header"
                    " can: was a line end or another text copied with it?"
                )

    def __bool__(self) -> bool:
        return self.__value != ""

    def __repr__(self) -> str:
        return f"ApiKey({REDACTED if self else None})"

    def value(self) -> str:
        return self.__value

    def redact(self, text: str) -> str:
        """The text without the key, also as JSON, Python or a URL would spell it.

        Example:
            >>> ApiKey("sk-12345678").redact("bad key sk-12345678, or sk-12345…")
            'bad key [redacted], or [redacted]…'
        """
        key = self.__value
        spellings = {key, json.dumps(key)[1:-1], repr(key)[1:-1], quote(key, safe="")}
        for spelling in sorted(spellings - {""}, key=len, reverse=True):
            text = text.replace(spelling, REDACTED)
            for end in range(len(spelling) - 1, SHORTEST_SECRET - 1, -1):
                text = text.replace(spelling[:end] + CUT, REDACTED + CUT)
        return text


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + CUT
