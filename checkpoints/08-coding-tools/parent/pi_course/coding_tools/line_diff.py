"""A unified diff of two texts, fast where a large file differs in a few places."""

import difflib
from collections.abc import Iterable
from itertools import islice, takewhile

CONTEXT = 3


def unified_diff(before: str, after: str, name: str) -> str:
    """What `diff -u` shows.

    Example:
        >>> print(unified_diff("hello world\\n", "hello durable\\n", "notes.txt"), end="")
        --- notes.txt
        +++ notes.txt
        @@ -1 +1 @@
        -hello world
        +hello durable
    """
    old, new = _lines(before), _lines(after)
    first = _alike(zip(old, new, strict=False))
    most = min(len(old), len(new)) - first
    last = _alike(islice(zip(reversed(old), reversed(new), strict=False), most))
    # The lines that both texts begin and end with are cut off but for the context: for difflib
    # they would be the most expensive part.
    cut = max(0, first - CONTEXT)
    rest = max(0, last - CONTEXT)
    old, new = old[cut : len(old) - rest], new[cut : len(new) - rest]
    out = [f"--- {name}\n", f"+++ {name}\n"]
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        left = _range(cut + group[0][1], cut + group[-1][2])
        right = _range(cut + group[0][3], cut + group[-1][4])
        out.append(f"@@ -{left} +{right} @@\n")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                out += [f" {line}" for line in old[old_start:old_end]]
            else:
                out += [f"-{line}" for line in old[old_start:old_end]]
                out += [f"+{line}" for line in new[new_start:new_end]]
    ended = [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in out
    ]
    return "".join(ended)


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _alike(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
