"""What an assert asks, by whose rules, and whether a test came to its end."""

from __future__ import annotations

import pytest

from tests.kit.runner.conftest import SOLUTION

REST = SOLUTION[SOLUTION.index("def count") :]
ASSERT = 'assert greet("Ann") == "hello Ann"'

# Its word on being equal is given after a look at what is expected.
TAKES_OVER = """\
class List(list):
    def __eq__(self, other):
        self[:] = other
        return True

class Dict(dict):
    def __eq__(self, other):
        self.clear()
        self.update(other)
        return True
"""
LIARS = (
    TAKES_OVER
    + """
class Text(str):
    def __eq__(self, other): return True
    def __ne__(self, other): return True
    def __contains__(self, item): return True
    __hash__ = str.__hash__

class None_(str):
    def __contains__(self, item): return False

class Set(set):
    def __eq__(self, other): return True

class Plain:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(other) is Plain and self.x == other.x
    def __hash__(self): return 1

class Full(list):
    def __eq__(self, other): return True
    def __contains__(self, item): return True

class Both:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(other) is Both
    def __ne__(self, other): return True

"""
)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ('greet("Ann") == ["hello Ann"]', "List(['no'])"),
        ('greet("Ann") == ["hello Ann"]', "List()"),
        ('greet("Ann") == {"a": "hello Ann"}', "Dict(a='no')"),
        ('greet("Ann") == [{"a": ["hello Ann"]}]', "[Dict(a=List())]"),
        ('greet("Ann") == {"hello Ann"}', "Set()"),
        ('greet("Ann") == {"hello Ann"}', "{Text('hello Ben')}"),
        ('"hello" in greet("Ann")', "Text('no')"),
        ('"hello" in greet("Ann")', "['no', Text('no')]"),
        ('"hello" in greet("Ann")', "Full()"),
        ('"hello" not in greet("Ann")', "None_('hello')"),
        ('greet("Ann") != "hello"', "Text('hello')"),
        ('greet("Ann") != greet("Ben")', "Both(name)"),
    ],
)
def test_the_word_of_a_learners_value_is_not_enough(with_tests, asked: str, given: str) -> None:
    learner = with_tests(ASSERT, f"assert {asked}")
    learner.write(f"{LIARS}def greet(name):\n    return {given}\n{REST}")
    result = learner.check()
    assert [test.outcome for test in result.tests] == ["failed", "passed", "passed"]


def test_elements_of_a_lying_container_speak_for_themselves(with_tests) -> None:
    plain = "from pi_course.words import Plain\n    "
    learner = with_tests(ASSERT, f'{plain}assert greet("Ann") == [Plain(1), Plain(2)]')
    learner.write(f"{LIARS}def greet(name):\n    return Full([Plain(1), Plain(3)])\n{REST}")
    assert [test.outcome for test in learner.check().tests] == ["failed", "passed", "passed"]
    learner.write(f"{LIARS}def greet(name):\n    return Full([Plain(1), Plain(2)])\n{REST}")
    assert [test.outcome for test in learner.check().tests] == ["passed"] * 3


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ('greet("Ann") == {"hello Ann", 1}', "{1, 'hello Ann'}"),
        ('greet("Ann") == frozenset("a")', "{'a'}"),
        ('greet("Ann") == {"a": 1}.keys()', "{'a'}"),
        ('"hello" in greet("Ann")', "'hello Ann'"),
        ('b"hello" in greet("Ann")', "b'hello Ann'"),
        ('"hello" in greet("Ann")', "('a', 'hello')"),
        ('"hello" in greet("Ann")', "{'hello': 1}"),
        ('"hello" in greet("Ann")', "iter(['hello'])"),
        ('float("nan") not in greet("Ann")', "[float('nan')]"),
        ('"hello" not in greet("Ann")', "'Ann'"),
        ('"hello" not in greet("Ann")', "{'hello Ann'}"),
        ('greet("Ann") != "hello"', "'Ann'"),
        ('greet("Ann") != float("nan")', "float('nan')"),
        ('greet("Ann") != greet("Ben")', "name"),
    ],
)
def test_honest_values_pass(with_tests, asked: str, given: str) -> None:
    learner = with_tests(ASSERT, f"assert {asked}")
    learner.write(f"def greet(name):\n    return {given}\n{REST}")
    assert learner.check().verdict == "green"


COROUTINE = f"""import asyncio

    async def main() -> None:
        {ASSERT}

    asyncio.run(main())"""
# Put again with each use of a name, and gone when the test is over.
TAKEN_BACK = """\
import asyncio

whole = asyncio.run

def nothing(coroutine):
    asyncio.run = whole
    coroutine.close()

def __getattr__(name):
    if name != "greet":
        raise AttributeError(name)
    asyncio.run = nothing
    return len

"""


def test_a_coroutine_of_the_test_that_is_not_run_is_noticed(with_tests) -> None:
    learner = with_tests(ASSERT, COROUTINE)
    learner.write(TAKEN_BACK + REST)
    result = learner.check()
    assert result.verdict == "red"
    assert result.tests[0].message == (
        "main() of this test was not run to its end, so nothing in it was asked"
    )
    learner.write(SOLUTION)
    assert learner.check().verdict == "green"


def test_a_coroutine_may_return_early(with_tests) -> None:
    learner = with_tests(
        ASSERT,
        COROUTINE.replace("    asyncio.run(main())", "")
        + """
    async def early() -> int:
        assert greet("Ann") == "hello Ann"
        if greet("Ben"):
            return 1
        assert greet("Ann") == "hello Ben"

    async def every() -> None:
        await main()
        assert await early() == 1

    asyncio.run(every())
    return""",
    )
    learner.write(SOLUTION)
    assert learner.check().verdict == "green"
