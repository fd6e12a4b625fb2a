"""A unified diff of one text, made from the changes that are known anyway.

Nobody has to search two large texts for their differences: that takes long where many lines are
alike. Only the few lines of each change are compared.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

CONTEXT = 3
MOST_COMPARED = 400  # lines of one change; a larger one is shown as deleted and added

Span: TypeAlias = tuple[int, int, str]
"""Start and end in the text, and what takes the place of it."""


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines start to end, counted from 0, become `after`."""

    start: int
    end: int
    after: list[str]


def unified_diff(before: str, spans: Sequence[Span], name: str) -> str:
    """What `diff -u` shows. The spans are in order and do not overlap.

    Example:
        >>> print(unified_diff("hello world\\n", [(6, 11, "durable")], "notes.txt"), end="")
        --- notes.txt
        +++ notes.txt
        @@ -1 +1 @@
        -hello world
        +hello durable
    """
    lines = _lines(before)
    out = [f"--- {name}\n", f"+++ {name}\n"]
    shift = 0
    for group in _groups(_changed_lines(before, spans)):
        first = max(0, group[0].start - CONTEXT)
        last = min(len(lines), group[-1].end + CONTEXT)
        body: list[str] = []
        at, more = first, 0
        for change in group:
            body += [f" {line}" for line in lines[at : change.start]]
            body += [f"-{line}" for line in lines[change.start : change.end]]
            body += [f"+{line}" for line in change.after]
            at = change.end
            more += len(change.after) - (change.end - change.start)
        body += [f" {line}" for line in lines[at:last]]
        old, new = _range(first, last), _range(first + shift, last + shift + more)
        out += [f"@@ -{old} +{new} @@\n", *body]
        shift += more
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in out
    )


def _changed_lines(text: str, spans: Sequence[Span]) -> Iterator[_Lines]:
    """The lines that differ, change by change."""
    waiting = list(reversed(spans))
    line = counted = 0  # the number of the line in which a change begins
    while waiting:
        start = end = text.rfind("\n", 0, waiting[-1][0]) + 1
        line += text.count("\n", counted, start)
        counted = start
        taken: list[Span] = []
        after = ""
        # All that shares a line belongs together, and so does the next line when a change has
        # taken the line end away.
        while not taken or (end < len(text) and after and not after.endswith("\n")):
            end = end if not taken else _line_end(text, end + 1)
            while waiting and (not taken or waiting[-1][0] < end):
                taken.append(waiting.pop())
                end = max(end, _line_end(text, taken[-1][1]))
            after = _replaced(text, start, end, taken)
        yield from _compared(line, _lines(text[start:end]), _lines(after))


def _line_end(text: str, at: int) -> int:
    """Where the line ends that the character before `at` belongs to."""
    found = text.find("\n", at - 1)
    return len(text) if found < 0 else found + 1


def _replaced(text: str, start: int, end: int, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    for span_start, span_end, new in spans:
        parts += [text[start:span_start], new]
        start = span_end
    return "".join([*parts, text[start:end]])


def _compared(line: int, old: list[str], new: list[str]) -> Iterator[_Lines]:
    if len(old) + len(new) > MOST_COMPARED:
        yield _Lines(line, line + len(old), new)
        return
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            yield _Lines(line + start, line + end, new[new_start:new_end])


def _groups(changes: Iterator[_Lines]) -> Iterator[list[_Lines]]:
    """Changes whose context touches stand in one hunk."""
    group: list[_Lines] = []
    for change in changes:
        if group and change.start - group[-1].end > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
