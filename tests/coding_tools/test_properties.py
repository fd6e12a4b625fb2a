"""What must hold for any text, any edits and any caps."""

from __future__ import annotations

import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_course.coding_tools.edit import Replacement, edit_bytes
from pi_course.coding_tools.limits import Limits
from pi_course.coding_tools.lookalikes import plain
from pi_course.coding_tools.output_tail import OutputFolder, OutputTail
from pi_course.coding_tools.read import read_window
from pi_course.coding_tools.refusal import ToolRefused
from pi_course.coding_tools.tolerant_match import FoldedText, occurrences

PIECES = st.sampled_from(
    [
        "a",
        "b",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\u2019",
        "'",
        "\u00a0",
        "e\u0301",
        "\u00e9",
        "\ufb01",
        "\U0001f600",
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)


def lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def replacement(old: str, new: str) -> Replacement:
    return Replacement(oldText=old, newText=new)


def place(original: str, at: int) -> int:
    """Where in the original the character `at` of the LF text stands, counted one by one."""
    found = 0
    for _ in range(at):
        found += 2 if original.startswith("\r\n", found) else 1
    return found


@st.composite
def texts_and_edits(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    """A text, and spans of its LF form that are unique in it, each with a new text."""
    original = draw(TEXTS)
    text = lf(original)
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans: list[tuple[int, int, str]] = []
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        new = lf(draw(TEXTS))
        if len(list(occurrences(text, text[start:end]))) == 1 and new != text[start:end]:
            spans.append((start, end, new))
    return original, spans


@settings(max_examples=400, deadline=None)
@given(texts_and_edits(), st.booleans(), st.randoms(use_true_random=False))
def test_edits_change_what_they_name_and_no_other_byte(case, bom, chance) -> None:  # type: ignore[no-untyped-def]
    original, spans = case
    text, head = lf(original), b"\xef\xbb\xbf" if bom else b""
    edits = [replacement(text[start:end], new) for start, end, new in spans]
    chance.shuffle(edits)
    try:
        data, details = edit_bytes(head + original.encode(), edits, "f")
    except ToolRefused as refused:
        assert not spans or "together change nothing" in str(refused)
        return
    after = data.removeprefix(head).decode()
    assert data.startswith(head)
    done = 0
    for start, end, new in spans:
        kept = original[done : place(original, start)]
        assert after.startswith(kept)
        after = after[len(kept) :]
        length = next(n for n in range(len(new), 2 * len(new) + 1) if lf(after[:n]) == new)
        if new.endswith("\n") and after[length - 1 : length + 1] == "\r\n":
            length += 1
        after = after[length:]
        done = place(original, end)
    assert after == original[done:]
    assert patched(text, str(details["diff"])) == lf(data.removeprefix(head).decode())


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.lists(st.tuples(TEXTS, TEXTS), max_size=3))
def test_any_edits_are_made_or_refused_with_a_sentence(text, pairs) -> None:  # type: ignore[no-untyped-def]
    try:
        edit_bytes(text.encode(), [replacement(old, new) for old, new in pairs], "f")
    except ToolRefused as refused:
        assert str(refused).startswith("f: edits")


@settings(max_examples=300, deadline=None)
@given(TEXTS.map(lambda text: lf(text).replace("\n", "\r\n")), TEXTS, TEXTS)
def test_a_file_with_one_kind_of_line_end_keeps_it(text, old, new) -> None:  # type: ignore[no-untyped-def]
    try:
        data, _ = edit_bytes(text.encode(), [replacement(old, new)], "f")
    except ToolRefused:
        return
    if "\r\n" in text:
        assert re.findall(b"(?<!\r)\n", data) == []


@settings(max_examples=400, deadline=None)
@given(TEXTS.map(lf), TEXTS.map(lf).filter(bool))
def test_a_tolerant_match_looks_like_what_was_asked_for(source, part) -> None:  # type: ignore[no-untyped-def]
    """Every span is whole characters, and its plain form is that of the part."""
    blanks = re.compile("[ \t\u00a0]+(?=\n)")
    for start, end in FoldedText(source).spans(part):
        assert plain(blanks.sub("", source[start:end])) == plain(blanks.sub("", part))
        assert not source[start:end].startswith("\u0301")
        assert not source[end:].startswith("\u0301")


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(3, 6))
def test_windows_put_together_are_the_file(text, lines) -> None:  # type: ignore[no-untyped-def]
    got, offset = "", 1
    while True:
        window = read_window(io.BytesIO(text.encode()), "f", offset, None, Limits(lines=lines))
        got += window.text
        if not window.more:
            break
        offset = window.last + 1
    assert got == lf(text)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.binary(max_size=20).map(lambda piece: piece * 40), max_size=8),
    st.sampled_from(["", "status"]),
    st.integers(3, 9),
)
def test_the_end_of_an_output_is_shown_within_the_caps(pieces, status, lines) -> None:  # type: ignore[no-untyped-def]
    limits = Limits(bytes=600, lines=lines)
    output = OutputTail(limits, OutputFolder())
    told = "".join(output.take(piece) for piece in pieces)
    shown, note = output.finish(status)
    whole = b"".join(pieces)
    assert whole.decode("utf-8", "replace").startswith(told)
    assert whole.decode("utf-8", "replace").endswith(shown)
    assert len(f"{shown}\n{note}".encode() if note else shown.encode()) <= limits.bytes
    assert f"{shown.removesuffix(chr(10))}\n{note}".rstrip("\n").count("\n") < lines
    if output.path is not None:
        assert output.path.read_bytes() == whole
    else:
        assert shown == whole.decode("utf-8", "replace")


def patched(text: str, diff: str) -> str:
    """The text with a unified diff applied, strictly: places and context must be exact."""
    *whole, last = text.split("\n")
    old = [f"{line}\n" for line in whole] + ([last] if last else [])
    new: list[str] = []
    done = 0
    lines = re.sub(r"\n\\ No newline at end of file\n", "\0", diff).split("\n")
    body = [f"{line}\n" for line in "\n".join(lines[2:]).replace("\0", "\0\n").split("\n")]
    for line in body:
        line = line.replace("\0\n", "")
        if head := re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(head[1]) - (head[2] != "0")
            new += old[done:start]
            done = start
            assert len(new) == int(head[3]) - (head[4] != "0")
        elif line.startswith(" "):
            assert old[done] == line[1:]
            new.append(line[1:])
            done += 1
        elif line.startswith("-"):
            assert old[done] == line[1:]
            done += 1
        elif line.startswith("+"):
            new.append(line[1:])
    return "".join(new + old[done:])
