"""What a practice folder still lacks, as text: a line each, or in groups by lab and file.

The lines are those of `symbols.missing`. They stay as they are in JSON and in a chapter's first
red; only a report puts many of them together.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from pi_course_kit import symbols
from pi_course_kit.checkpoint import Checkpoint

MOST = 4  # up to this many lines stand one by one
NAMED = re.compile(r"(?P<file>\S+?)(?: has no |: )(?P<name>[\w.]+)(?P<stub>\(\).*)?")
WHOLE = re.compile(r"(?P<file>[^\s,]+)(?:, line \d+)? is ")


def of_lab(lines: Sequence[str], chapter: Checkpoint, lab: str | None) -> list[str]:
    """The lines that have to do with one lab; all of them for None."""
    return [line for line in lines if lab is None or lab in _labs(line, chapter)]


def is_public(line: str) -> bool:
    """Whether a line names something that others may ask for."""
    named = NAMED.fullmatch(line)
    return named is None or not named["name"].startswith("_")


def text(lines: Sequence[str], chapter: Checkpoint, room: int) -> list[str]:
    """A few lines as they are; many as one wrapped line for each lab, file and kind."""
    if len(lines) <= MOST:
        return list(lines)
    groups: dict[tuple[str, str], list[str]] = {}
    shown: list[str] = []
    for line in lines:
        named = NAMED.fullmatch(line)
        if named is None:
            shown.append(line)
            continue
        lab = next(iter(_labs(line, chapter)), "")
        kind = ", still the starter: " if named["stub"] else " has no "
        name = f"{named['name']}()" if named["stub"] else named["name"]
        groups.setdefault((lab, f"{named['file']}{kind}"), []).append(name)
    order = ["", *(lab.id for lab in chapter.labs)]
    for (lab, head), names in sorted(groups.items(), key=lambda item: order.index(item[0][0])):
        start = f"lab {lab}  " if lab else ""
        shown.extend(_wrapped(start, head + ", ".join(names), room))
    return shown


def _wrapped(start: str, line: str, room: int) -> Iterator[str]:
    pad = " " * len(start)
    yield from textwrap.wrap(
        line, room, initial_indent=start, subsequent_indent=pad, break_on_hyphens=False
    )


def _labs(line: str, chapter: Checkpoint) -> list[str]:
    """The labs of the name in a line, or of all names of the file that it is about."""
    named = NAMED.fullmatch(line)
    if named is None:
        whole = WHOLE.match(line)
        return list(dict.fromkeys(symbols.owners(chapter, whole["file"]).values() if whole else ()))
    owners = symbols.owners(chapter, named["file"])
    name = named["name"]
    lab = owners.get(name) or owners.get(name.partition(".")[0])
    inside = [owner for symbol, owner in owners.items() if symbol.startswith(f"{name}.")]
    return [lab] if lab else inside[:1]
