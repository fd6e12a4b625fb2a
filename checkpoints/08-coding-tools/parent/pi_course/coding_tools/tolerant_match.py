"""The second try of edit: a text that looks the same, found without changing what is around it.

Blanks at the ends of lines do not count here, and characters that look alike are the same. What is
found is mapped back to the characters of the file, so that only those are replaced.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from pi_course.coding_tools.lookalikes import ODD_SPACES, plain
from pi_course.coding_tools.refusal import ToolRefused

MOST_PLACES = 200  # that are looked at; one text can be in another one at each of its characters
_BLANKS = f"[ \\t{ODD_SPACES}]"
# What may look like something else: blanks at a line's end, a run of characters beyond ASCII with
# the one before it (an accent may belong to that), an odd space. The lookbehind lets a long row of
# blanks be tried once, and not from each of its blanks again.
_ODD = re.compile(
    f"(?<!{_BLANKS})(?P<blanks>{_BLANKS}++)(?=\n|\\Z)|[^\n]?[^\\x00-\\x7f{ODD_SPACES}]+|[{ODD_SPACES}]"
)


def occurrences(text: str, part: str) -> Iterator[int]:
    """Every place where part begins, overlapping ones too.

    Example:
        >>> list(occurrences("aaa", "aa"))
        [0, 1]
    """
    raise NotImplementedError("Lab 8.4: occurrences()")


class FoldedText:
    """A text in its plain spelling, and where in the source each part of it comes from."""

    def __init__(self, source: str) -> None:
        parts: list[str] = []
        self._starts: list[int] = []  # in the folded text, of each part that differs
        self._ends: list[int] = []
        self._sources: list[tuple[int, int]] = []  # the same parts in the source
        done = length = 0
        for start, end, folded in _differences(source):
            parts += [source[done:start], folded]
            length += start - done
            self._starts.append(length)
            length += len(folded)
            self._ends.append(length)
            self._sources.append((start, end))
            done = end
        self.text = "".join([*parts, source[done:]])

    def spans(self, part: str, name: str = "the text") -> Iterator[tuple[int, int]]:
        """Start and end, in the source, of each match that consists of whole characters.

        Raises ToolRefused, in which `name` stands, when there are too many others.
        """
        raise NotImplementedError("Lab 8.4: FoldedText.spans()")

    def _start(self, at: int) -> int | None:
        """Where the folded character at `at` begins; None inside of one that was taken apart."""
        raise NotImplementedError("Lab 8.4: FoldedText._start()")

    def _end(self, at: int) -> int | None:
        """Where the folded character before `at` ends: blanks that were dropped stay outside."""
        raise NotImplementedError("Lab 8.4: FoldedText._end()")

    def _source(self, at: int, part: int) -> int | None:
        raise NotImplementedError("Lab 8.4: FoldedText._source()")


def _folded_part(part: str) -> str:
    """A bar keeps the blanks at the very end, where no line of the part ends."""
    return FoldedText(part + "|").text[:-1]


def _differences(source: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and plain spelling of what differs from it, or is more than one code point."""
    raise NotImplementedError("Lab 8.4: _differences()")


def _characters(run: str) -> Iterator[tuple[int, int]]:
    """Start and end of each character with the accents that follow it."""
    raise NotImplementedError("Lab 8.4: _characters()")
