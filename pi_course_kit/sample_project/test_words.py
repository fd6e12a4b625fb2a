from words import count_words


def test_words_may_stand_on_two_lines() -> None:
    assert count_words("read the file\nthen answer") == 5
