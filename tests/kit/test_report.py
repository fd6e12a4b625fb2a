"""The text of a check: what stands where, in 80 columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest

from pi_course_kit import checkpoint, report
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.results import CheckResult, Tested, TestResult
from pi_course_kit.values import compare, cut, cut_left, width


@pytest.fixture
def chapter(fake_course: Path) -> Checkpoint:
    return checkpoint.load(fake_course / "01-hello")


def failed(**facts: str | None) -> TestResult:
    values: dict[str, object] = {"title": "It says hello.", "message": "", **facts}
    return TestResult("test_hello", "1.1", "failed", **values)  # type: ignore[arg-type]


def result(*tests: TestResult, **facts: object) -> CheckResult:
    values: dict[str, object] = {
        "verdict": "red",
        "tested": (Tested("pi_course/greet.py", "abcdef0123456789"),),
        "missing": (),
        "sentence": None,
        "printed": "",
        **facts,
    }
    return CheckResult(chapter="01-hello", tests=tests, **values)  # type: ignore[arg-type]


def test_a_red_check_says_what_was_called_expected_got_and_what_next(chapter, tmp_path) -> None:
    test = failed(
        message="assert 'bye Ann' == 'hello Ann'",
        called="hello('Ann')",
        expected="'hello Ann'",
        got="'bye Ann'",
        where="pi_course/greet.py:4 hello",
    )
    assert report.text(result(test), chapter, Path("/practice")) == "\n".join(
        [
            "01 · Chapter 1                                                               red",
            "",
            "tested in /practice",
            "  pi_course/greet.py                                                  abcdef01",
            "",
            "lab 1.1  The greeting                                0/1    red    0/1 so far",
            "",
            "It says hello.",
            "  test_hello",
            "  called    hello('Ann')",
            "  expected  'hello Ann'",
            "  got       'bye Ann'",
            "             ^ first difference",
            "  where     pi_course/greet.py:4 hello",
            "",
            "  next      pi-course hint 1.1",
        ]
    )


def test_a_green_check_says_what_comes_next(chapter) -> None:
    test = TestResult("test_hello", "1.1", "passed", "It says hello.")
    text = report.text(result(test, verdict="green"), chapter, Path("/practice"))
    assert "lab 1.1  The greeting                                1/1    green  1/1 so far" in text
    assert text.endswith("next: pi-course accept 01")


def test_a_lab_alone_is_counted_alone(chapter) -> None:
    test = TestResult("test_hello", "1.1", "passed", "It says hello.")
    text = report.text(result(test, verdict="green", lab="1.1"), chapter, Path("/practice"))
    assert "so far" not in text
    assert "  1/1    green" in text


def test_what_is_missing_comes_before_the_labs(chapter) -> None:
    test = failed(message="pi_course/greet.py is missing")
    text = report.text(
        result(test, missing=("pi_course/greet.py is missing",), tested=()), chapter, Path("/p")
    )
    assert text.index("missing\n  pi_course/greet.py is missing") < text.index("lab 1.1")
    assert "no file of yours ran" in text


def test_no_line_is_wider_than_80_columns(chapter) -> None:
    test = failed(
        title="T" * 300,
        message="m " * 300,
        called="f(" + "x, " * 200 + ")",
        expected="'" + "练习" * 100 + "'",
        got="'" + "练习" * 60 + "x" * 100 + "'",
        where="pi_course/greet.py:4 hello",
        code="y" * 200,
    )
    text = report.text(
        result(
            test,
            sentence="A long sentence. " * 20,
            printed="p" * 500 + "\n" + "q\n" * 50,
            missing=("pi_course/" + "z" * 100,),
            notes=("A note. " * 20,),
            tested=(Tested("pi_course/" + "w" * 100, "0" * 64),),
        ),
        chapter,
        Path("/" + "practice" * 20),
        types=["pi_course/greet.py:1: " + "no int " * 40],
    )
    assert max(width(line) for line in text.split("\n")) <= 80


def test_colour_only_repeats_what_words_say(chapter) -> None:
    test = failed(called="hello()", expected="1", got="2")
    plain = report.text(result(test), chapter, Path("/p"))
    coloured = report.text(result(test), chapter, Path("/p"), colour=True)
    assert "\x1b[" in coloured
    assert click.unstyle(coloured) == plain


def test_three_failures_in_full_and_the_rest_a_line_each(chapter) -> None:
    tests = [
        TestResult(f"test_{n}", "1.1", "failed", f"Title {n}.", f"ValueError: {n}", got="x")
        for n in range(12)
    ]
    text = report.labs(chapter, tests)
    assert [f"Title {n}." in text for n in range(12)] == [True] * 3 + [False] * 9
    assert "  red  test_3: ValueError: 3" in text
    assert "  and 3 more of this lab" in text


def test_a_lab_whose_tests_did_not_run_is_not_called_red(chapter) -> None:
    """Nobody knows what they would have said."""
    chapter = two_labs(chapter)
    skipped = TestResult("test_later", "1.2", "missing", "Later.", "not run: the run was over")
    text = report.labs(chapter, (failed(message="wrong"), skipped))
    first, second = (line for line in text.split("\n") if line.startswith("lab "))
    assert "0/1    red" in first
    assert "0/1    not run" in second


def test_the_same_reason_is_told_once_in_full(chapter) -> None:
    tests = [
        TestResult(f"test_{n}", "1.1", "failed", f"Title {n}.", "pi_course/greet.py is missing")
        for n in range(3)
    ]
    text = report.labs(chapter, tests)
    assert text.count("because") == 1
    assert "  red  2 more: pi_course/greet.py is missing" in text


def two_labs(chapter: Checkpoint) -> Checkpoint:
    return replace(chapter, labs=(chapter.labs[0], replace(chapter.labs[0], id="1.2")))


def test_the_other_red_labs_have_a_line_for_each_reason(chapter) -> None:
    tests = [
        TestResult("test_a", "1.1", "failed", "A.", "greet.py has no a"),
        TestResult("test_b", "1.2", "failed", "B.", "greet.py has no a"),
        TestResult("test_c", "1.2", "failed", "C.", "assert 1 == 2", expected="2", got="1"),
        *(TestResult(f"test_{n}", "1.2", "failed", "D.", "greet.py has no d") for n in "de"),
        TestResult("test_f", "1.2", "failed", "F.", "ValueError: f"),
    ]
    text = report.labs(two_labs(chapter), tests)
    assert text.split("\n")[-5:] == [
        "",
        "  red  1 more: greet.py has no a",
        "  lab 1.2  test_c: assert 1 == 2",
        "  lab 1.2  2 tests: greet.py has no d",
        "  and 1 more of lab 1.2",
    ]


def test_a_long_line_of_a_further_test_is_wrapped_once(chapter) -> None:
    tests = [
        failed(message="no"),
        TestResult("test_" + "b" * 60, "1.2", "failed", "B.", "greet.py has no b " + "and c " * 40),
    ]
    lines = report.labs(two_labs(chapter), tests).split("\n")[-2:]
    assert lines[0] == "  lab 1.2  test_" + "b" * 60 + ":"
    assert lines[1].startswith(" " * 11 + "greet.py has no b and c ")
    assert lines[1].endswith(" …")


def test_one_red_test_after_a_green_lab_is_shown_in_full(chapter) -> None:
    tests = [
        TestResult("test_a", "1.1", "passed", "A."),
        TestResult("test_b", "1.2", "failed", "The second.", "ValueError: b"),
    ]
    assert "The second.\n  test_b\n  because   ValueError: b" in report.labs(
        two_labs(chapter), tests
    )


def test_a_lab_counts_the_earlier_ones_when_they_ran(chapter) -> None:
    earlier = [TestResult("test_a", "1.1", "passed", "A.")]
    tests = [TestResult("test_b", "1.2", "passed", "B.")]
    text = report.labs(two_labs(chapter), tests, lab="1.2", earlier=earlier)
    assert text.split("\n")[0].endswith("1/1    green  2/2 so far")


def test_a_green_lab_names_what_its_tests_did_not_ask_for(chapter) -> None:
    test = TestResult("test_hello", "1.1", "passed", "It says hello.")
    lacks = ("pi_course/greet.py has no hello", "pi_course/other.py has no later")
    text = report.text(
        result(test, verdict="green", lab="1.1", missing=lacks), chapter, Path("/practice")
    )
    assert "still to write in lab 1.1" in text
    assert "  pi_course/greet.py has no hello\n" in text
    assert "later" not in text


def test_what_is_not_written_is_to_be_written_and_what_is_broken_corrected(chapter) -> None:
    def next_of(*lacks: str) -> str:
        test = failed(message="no")
        text = report.text(result(test, missing=lacks), chapter, Path("/practice"))
        return text.partition("  next ")[2]

    lacks = "     write what lab 1.1 lacks: LEARNING.md says what\n            stuck? "
    assert next_of("pi_course/greet.py is missing") == f"{lacks}pi-course hint 1.1"
    assert next_of("pi_course/greet.py has no hello") == f"{lacks}pi-course hint 1.1"
    assert next_of("pi_course/other.py has no later") == "     pi-course hint 1.1"
    broken = "pi_course/greet.py, line 3 is not valid Python: invalid syntax"
    assert next_of(broken) == "     correct pi_course/greet.py, line 3"


@pytest.mark.parametrize(
    ("verdict", "types", "head", "line"),
    [
        ("green", ["x.py:1: no"], "tests green, types red", "types     1 error (red)"),
        ("green", ["x.py:1: no"] * 2, "tests green, types red", "types     2 errors (red)"),
        ("red", [], "tests red, types green", "types     no error (green)"),
        ("green", [], "tests green, types green", "types     no error (green)"),
    ],
)
def test_tests_and_types_have_a_word_each(chapter, verdict, types, head, line) -> None:
    test = TestResult("test_hello", "1.1", "passed", "It says hello.")
    text = report.text(result(test, verdict=verdict), chapter, Path("/p"), types=types)
    first = text.split("\n")[0]
    assert first.endswith(f"  {head}")
    assert width(first) == 80
    assert line in text
    assert ("correct the types above; then pi-course accept 01" in text) is (
        verdict == "green" and bool(types)
    )


@pytest.mark.parametrize(
    ("expected", "got", "lines"),
    [
        ("3", "0", ["0"]),
        (None, "1", ["1"]),
        ("'hello Ann'", "'hello Bob'", ["'hello Bob'", "       ^ first difference"]),
        (r"'one\ntwo'", r"'one\ntwX'", ["one", "twX", "  ^ first difference"]),
        (
            r"'one\ntwo'",
            r"'one'",
            ["one", "^ first difference: more lines are expected here"],
        ),
        (
            r"'a\nb\nc'",
            r"'a\nb'",
            ["a", "b", "^ first difference: more lines are expected here"],
        ),
        (r"'a\nb'", None, []),
        (r"'a\nb'", r"'a\nb\nc'", ["a", "b", "c", "^ first difference"]),
        # A blank at the end of a line would not be seen: the repr stays.
        (r"'lines\nb'", r"'lines \nb'", [r"'lines \nb'", "      ^ first difference"]),
        ("'练习练习 one'", "'练习练习 two'", ["'练习练习 two'", "          ^ first difference"]),
        ("'" + "a" * 50 + "'", "'" + "a" * 30 + "'", ["'" + "a" * 30 + "'", " " * 31 + "^"]),
        # Identity is no text: `is` has no part in the comparison.
        ("is Message(1)", "Message(1)", ["Message(1)", "^ equal, but another object"]),
        (
            "is <class 'tuple'>",
            "<class 'list'>",
            ["<class 'list'>", "        ^ first difference"],
        ),
        ("is None", "'text'", ["'text'"]),
        # Other operators, and what was raised instead, have no first difference.
        ("is not None", "None", ["None"]),
        ("not in ('stop', 'length')", "'stop and go'", ["'stop and go'"]),
        ("< 1000000000", "2000000000", ["2000000000"]),
        ("pytest.raises(ValueError)", "TypeError raised", ["TypeError raised"]),
    ],
)
def test_values_show_their_first_difference(
    expected: str | None, got: str | None, lines: list[str]
) -> None:
    assert compare(expected, got, 40)[1] == lines


def test_an_equal_value_of_another_type_says_so() -> None:
    assert compare("1.0", "1.0", 40)[1] == ["1.0", "^ looks equal, but is not"]
    assert compare("is 'a'", "'a'", 40)[0] == ["is 'a'"]


def test_long_values_keep_the_lines_around_the_difference() -> None:
    same = "\\n".join(str(n) for n in range(30))
    lines = compare(f"'{same}\\nend'", f"'{same}\\nENd'", 40)[1]
    assert lines[0].endswith("lines before")
    assert lines[-2:] == ["ENd", "^ first difference"]


def test_cut_counts_columns() -> None:
    assert cut("练习练习", 5) == "练习…"
    assert cut("one\ntwo", 80) == "one two"
    assert cut_left("/one/练习", 6) == "…/练习"
