"""A text as edits see it, with \\n at each line's end, and the way back to what the file holds."""

import re
from bisect import bisect_left


class LineEnds:
    """`text` is `original` with \\n for \\r\\n. A lone \\r is a character like any other."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = original.replace("\r\n", "\n")
        # Where in `text` the \n stand that were \r\n.
        found = re.finditer("\r\n", original)
        self._pairs = [match.start() - count for count, match in enumerate(found)]

    def place(self, at: int) -> int:
        """Where in the original the character stands that is at `at` in the text."""
        return at + bisect_left(self._pairs, at)

    def fit(self, new: str, start: int, end: int) -> str:
        """`new` with the line ends of the span from start to end that it replaces, in their order.

        Lines that come in addition end as the span's last line does. A span inside one line takes
        the line end that follows it, or else the one before.

        Example:
            >>> LineEnds("a\\r\\nb\\n").fit("x\\ny\\nz\\n", 0, 4)
            'x\\r\\ny\\nz\\n'
        """
        first, *rest = new.replace("\r\n", "\n").split("\n")
        ends = self._ends(start, end)
        return first + "".join(
            ends[min(number, len(ends) - 1)] + line for number, line in enumerate(rest)
        )

    def _ends(self, start: int, end: int) -> list[str]:
        inside = [match.start() + start for match in re.finditer("\n", self.text[start:end])]
        if not inside:
            after = self.text.find("\n", end)
            near = after if after >= 0 else self.text.rfind("\n", 0, start)
            inside = [near]
        return ["\r\n" if self._is_pair(at) else "\n" for at in inside]

    def _is_pair(self, at: int) -> bool:
        found = bisect_left(self._pairs, at)
        return found < len(self._pairs) and self._pairs[found] == at
