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
        raise NotImplementedError("Lab 8.4: LineEnds.place()")

    def fit(self, new: str, start: int, end: int) -> str:
        """`new` with the line ends of the span from start to end that it replaces, in their order.

        Lines that come in addition end as the span's last line does. A span inside one line takes
        the line end that follows it, or else the one before.

        Example:
            >>> LineEnds("a\\r\\nb\\n").fit("x\\ny\\nz\\n", 0, 4)
            'x\\r\\ny\\nz\\n'
        """
        raise NotImplementedError("Lab 8.4: LineEnds.fit()")

    def _ends(self, start: int, end: int) -> list[str]:
        raise NotImplementedError("Lab 8.4: LineEnds._ends()")

    def _is_pair(self, at: int) -> bool:
        raise NotImplementedError("Lab 8.4: LineEnds._is_pair()")
