"""A test that must fail.

The guard runs it after the learner's tests, through the same pytest. If it passes, learner code
has changed pytest, and no other result of that run counts.
"""


def test_canary() -> None:
    assert 1 + 1 == 3
