"""Characters that look alike: what a model writes for what stands in a file or its name."""

import unicodedata

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
    return unicodedata.normalize("NFKD", text.translate(_PLAIN))
