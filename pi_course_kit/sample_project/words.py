def count_words(text: str) -> int:
    """How many words there are, whatever stands between them."""
    return len(text.split(" "))
