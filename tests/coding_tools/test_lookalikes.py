"""What looks alike has one spelling, and no text can make the search for it take ever longer."""

from __future__ import annotations

import random
import sys
import unicodedata

import pytest

from pi_course.coding_tools.edit import Replacement, edit_bytes
from pi_course.coding_tools.lookalikes import MOST_MARKS, canonical, plain
from pi_course.coding_tools.refusal import ToolRefused

GRAVE, BELOW = "\u0300", "\u0323"  # in canonical order BELOW comes first
HALF_WIDTH = "\uff9e"  # a letter of its own, and taken apart a mark
DOUBLE_MARK = "\u0f73"  # no mark by its class, and taken apart two of them


@pytest.mark.parametrize("count", [2, MOST_MARKS], ids=["two", "most"])
def test_marks_of_a_letter_have_one_order(count: int) -> None:
    marks = GRAVE * (count - 1) + BELOW
    for spelling in (plain, canonical):
        assert spelling(f"a{marks}b") == f"a{BELOW}{GRAVE * (count - 1)}b"


@pytest.mark.parametrize(
    ("marks", "apart"),
    [
        (GRAVE + BELOW, GRAVE + BELOW),
        (GRAVE + HALF_WIDTH, GRAVE + "\u3099"),
        (GRAVE + DOUBLE_MARK, GRAVE + "\u0f71\u0f72"),
    ],
    ids=["marks", "half-width", "double"],
)
def test_longer_rows_of_marks_stay_in_their_order(marks: str, apart: str) -> None:
    """To order a row takes time with the square of its length, and no language has such rows."""
    assert plain(f"x {marks * MOST_MARKS}y") == f"x {apart * MOST_MARKS}y"
    assert plain(f"\uff41 {marks * MOST_MARKS}\uff42") == f"a {apart * MOST_MARKS}b"


def test_all_else_is_as_unicode_has_it() -> None:
    chance = random.Random(8)
    odd = [chr(n) for n in range(sys.maxunicode + 1) if unicodedata.decomposition(chr(n))]
    pieces = [*odd, GRAVE, BELOW, "a", "\ud55c", "\u5148", "\U0001f600"]
    for length in (1, 10, 40, 300):
        for _ in range(50):
            text = "".join(
                chance.choice(pieces) + chance.choice(["", GRAVE, BELOW]) for _ in range(length)
            )
            assert canonical(text) == unicodedata.normalize("NFD", text)
    for letter in odd:
        assert canonical(letter) == unicodedata.normalize("NFD", letter)
        assert plain(letter) in (unicodedata.normalize("NFKD", letter), "'", '"', "-", " ")


@pytest.mark.parametrize("marks", [GRAVE + BELOW, GRAVE + HALF_WIDTH, GRAVE + DOUBLE_MARK])
def test_an_edit_of_a_hostile_text_ends(marks: str) -> None:
    """A hundred thousand marks in one row: with the square of that, nobody would see the end."""
    text = f"\u2018one\u2019 a{marks * 50_000}\n"
    data, _ = edit_bytes(text.encode(), [Replacement(oldText="'one'", newText="two")], "f")
    assert data.decode() == text.replace("\u2018one\u2019", "two")
    with pytest.raises(ToolRefused, match="not found"):
        edit_bytes(b"a", [Replacement(oldText=text, newText="")], "f")
