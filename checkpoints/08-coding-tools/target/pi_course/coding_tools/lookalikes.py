"""Characters that look alike: what a model writes for what stands in a file or its name."""

import unicodedata
from itertools import groupby
from typing import Literal

MOST_MARKS = 32  # that are put in order, of one letter; a letter of a language has a few
ODD_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"  # for a character class

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u1680": " ",
    }
)


def plain(text: str) -> str:
    """One spelling for all that looks the same: quotes, dashes, spaces, forms of a letter.

    Characters are taken apart (NFKD), so that an accent of its own and one inside a letter are
    the same. Two texts have the same NFKD if and only if they have the same NFKC.

    Example:
        >>> plain("\u201cna\u00efve\u201d\u00a0\u2014 \uff11\uff0e")
        '"nai\u0308ve" - 1.'
    """
    if text.isascii():
        return text
    # Translated first: NFKD would take a double prime apart into two single ones.
    return _apart("NFKD", text.translate(_PLAIN))


def canonical(text: str) -> str:
    """One spelling for what is the same text to Unicode: an accent inside a letter, or its own.

    Example:
        >>> canonical("na\u00efve \u201d") == canonical("nai\u0308ve \u201d")
        True
    """
    return _apart("NFD", text)


def _apart(form: Literal["NFD", "NFKD"], text: str) -> str:
    """normalize() takes time with the square of a row of marks, and a row may be a whole file."""
    if len(text) <= MOST_MARKS or unicodedata.is_normalized(form, text):
        return unicodedata.normalize(form, text)
    letters = "".join([unicodedata.normalize(form, letter) for letter in text])
    rows = ["".join(row) for _, row in groupby(letters, _is_mark)]
    return "".join(
        unicodedata.normalize(form, row) if len(row) <= MOST_MARKS else row for row in rows
    )


def _is_mark(character: str) -> bool:
    return unicodedata.combining(character) > 0
