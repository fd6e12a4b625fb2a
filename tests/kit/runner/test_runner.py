"""What check says of honest code: right, wrong, missing, broken."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pi_course_kit.errors import CourseError
from pi_course_kit.limits import Limits
from pi_course_kit.results import CheckResult, to_json
from pi_course_kit.runner import Session, check, test_path

SOLUTION = """\
def greet(name):
    return f"hello {name}"


def count(text):
    return len(text.split())


def join(lines):
    return "\\n".join(lines)
"""


def outcomes(result: CheckResult) -> dict[str, str]:
    return {test.id: test.outcome for test in result.tests}


def one(result: CheckResult, name: str):
    return next(test for test in result.tests if test.id == name)


def test_right_code_is_green_and_the_files_that_ran_are_named(learner) -> None:
    file = learner.write(SOLUTION)
    result = learner.check()
    assert (result.verdict, result.sentence, result.notes) == ("green", None, ())
    assert list(outcomes(result).values()) == ["passed"] * 3
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert ("pi_course/words.py", digest) in [(t.path, t.sha256) for t in result.tested]


def test_a_wrong_value_is_shown_as_called_expected_got_and_where(learner) -> None:
    learner.write(SOLUTION.replace("hello {name}", "bye {name}"))
    result = learner.check()
    assert result.verdict == "red"
    assert list(outcomes(result).values()) == ["failed", "passed", "passed"]
    test = one(result, "test_greets_by_name")
    assert test.title == "It greets the one who is named."
    assert (test.called, test.expected, test.got) == ("greet('Ann')", "'hello Ann'", "'bye Ann'")
    assert test.lab == "3.1"


def test_a_name_stands_for_the_call_that_made_it(learner) -> None:
    learner.write(SOLUTION.replace("len(text.split())", "0"))
    test = one(learner.check(), "test_counts_words")
    assert (test.called, test.expected, test.got) == ("count('a b c')", "3", "0")


def test_an_exception_names_the_deepest_line_of_the_learner(learner) -> None:
    learner.write(
        SOLUTION.replace('f"hello {name}"', "_low(name)") + "\n\ndef _low(n):\n    n.x()\n"
    )
    test = one(learner.check(), "test_greets_by_name")
    assert test.message == "AttributeError: 'str' object has no attribute 'x'"
    assert (test.where, test.code) == ("pi_course/words.py:14 in _low", "n.x()")
    assert test.got == "AttributeError raised"


def test_a_missing_file_is_missing_and_each_test_says_so(learner) -> None:
    result = learner.check()
    assert result.verdict == "red"
    assert result.missing == ("pi_course/words.py is missing",)
    assert {test.message for test in result.tests} == {"pi_course/words.py is missing"}


def test_one_missing_name_fails_one_test(learner) -> None:
    learner.write(SOLUTION.replace("def count", "def kount"))
    result = learner.check()
    assert list(outcomes(result).values()) == ["passed", "failed", "passed"]
    assert one(result, "test_counts_words").message == "pi_course/words.py has no count"
    assert result.missing == ("pi_course/words.py has no count",)


def test_a_syntax_error_is_named_with_its_line(learner) -> None:
    learner.write("def greet(name):\n    return (\n")
    result = learner.check()
    assert result.verdict == "red"
    test = one(result, "test_greets_by_name")
    assert test.message.startswith("pi_course/words.py:2 is not valid Python: '(' was never closed")
    assert test.where == "pi_course/words.py:2"
    assert [file.path for file in result.tested] == ["pi_course/__init__.py", "pi_course/words.py"]


def test_a_missing_init_is_red_and_named(learner) -> None:
    learner.write(SOLUTION)
    (learner.folder / "pi_course" / "__init__.py").unlink()
    result = learner.check()
    assert result.verdict == "red"
    assert "pi_course/__init__.py is missing in your folder" in result.tests[0].message


def test_a_starter_is_named_as_one(learner) -> None:
    learner.write('def greet(name):\n    raise NotImplementedError("Lab 3.1: greet()")\n')
    assert one(learner.check(), "test_greets_by_name").message == "greet() is still the starter"


def test_modules_that_import_each_other_are_said_to(learner) -> None:
    learner.write("from pi_course.other import thing\n" + SOLUTION)
    learner.write("from pi_course.words import greet\nthing = greet\n", "pi_course/other.py")
    assert one(learner.check(), "test_greets_by_name").message == (
        "pi_course/words.py has no greet yet: the modules import each other in a circle"
    )


def test_a_module_of_a_later_chapter_names_its_chapter(learner) -> None:
    learner.write("import pi_course.abort\n")
    assert learner.check().tests[0].message == (
        "pi_course/abort.py is missing (chapter 04 brings it)"
    )


def test_null_students_are_red(learner) -> None:
    for body in ("pass", "return None", "..."):
        learner.write(
            f"def greet(n):\n    {body}\ndef count(t):\n    {body}\ndef join(x):\n    {body}\n"
        )
        result = learner.check()
        assert list(outcomes(result).values()) == ["failed"] * 3
        assert one(result, "test_greets_by_name").got == "None"


def test_a_lab_alone_runs_its_own_tests(learner) -> None:
    learner.write(SOLUTION.replace("len(text.split())", "0"))
    assert outcomes(learner.check(lab="3.2")) == {"test_joins_lines": "passed"}
    assert learner.check(lab="3.2").verdict == "green"
    assert learner.check(lab="3.1").verdict == "red"


def test_a_pinned_test_that_is_not_there_is_red(with_tests) -> None:
    learner = with_tests("test_joins", "test_fuses")
    learner.write(SOLUTION)
    result = learner.check()
    assert result.verdict == "red"
    assert one(result, "test_joins_lines").outcome == "missing"


def test_a_random_word_raised_by_the_learner_shows_up(learner) -> None:
    learner.write("raise RuntimeError('quokka-73')\n")
    assert "quokka-73" in learner.check().tests[0].message


def test_what_the_code_prints_is_kept(learner) -> None:
    learner.write(SOLUTION + "\nimport sys\nprint('out 练习')\nprint('err', file=sys.stderr)\n")
    result = learner.check()
    assert result.verdict == "green"
    assert result.printed == "out 练习\nerr\n"


def test_a_warning_is_printed_and_no_failure(learner) -> None:
    learner.write("import warnings\nwarnings.warn('old way', stacklevel=1)\n" + SOLUTION)
    result = learner.check()
    assert result.verdict == "green"
    assert "old way" in result.printed


def test_reading_from_the_keyboard_fails_at_once(learner) -> None:
    learner.write(SOLUTION.replace('f"hello {name}"', "input()"))
    assert one(learner.check(), "test_greets_by_name").message.startswith("EOFError")


def test_a_repr_that_raises_or_is_huge_is_survived(learner) -> None:
    learner.write(
        """\
        class Odd:
            def __repr__(self):
                raise RuntimeError

        def greet(name):
            return Odd()

        def count(text):
            return ["x" * 1000] * 10_000

        def join(lines):
            return "one\\ntwo\\n" + "z" * 10_000_000
        """
    )
    result = learner.check(test_seconds=20)
    got = [test.got or "" for test in result.tests]
    assert got[0] == "<Odd: its repr raised RuntimeError>"
    assert max(map(len, got)) < 310
    assert result.verdict == "red"


def test_long_values_are_cut_around_their_first_difference(learner) -> None:
    learner.write(SOLUTION.replace('f"hello {name}"', '"a" * 1000 + name'))
    test = one(learner.check(), "test_greets_by_name")
    assert test.got is not None and test.got.startswith("'aaaa") and test.got.endswith("…")


def test_two_edits_of_equal_size_in_one_second_run_the_new_code(learner) -> None:
    stamp = 1_700_000_000
    for turn in range(4):
        word = "hello" if turn % 2 else "howdy"
        file = learner.write(SOLUTION.replace("hello", word))
        os.utime(file, (stamp, stamp))
        assert learner.check().verdict == ("green" if turn % 2 else "red")


def test_variables_and_folders_around_do_not_decide_what_is_tested(
    learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    (other / "pi_course").mkdir(parents=True)
    (other / "pi_course" / "__init__.py").write_text("", encoding="utf-8")
    (other / "pi_course" / "words.py").write_text(SOLUTION, encoding="utf-8")
    monkeypatch.chdir(other)
    monkeypatch.setenv("PYTHONPATH", str(other))
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    result = check(learner.folder, chapter=learner.chapter)
    assert (result.verdict, result.missing) == ("red", ("pi_course/words.py is missing",))
    learner.write(SOLUTION)
    assert check(learner.folder, chapter=learner.chapter).verdict == "green"


def test_a_child_of_the_learners_code_gets_the_same_package_and_no_key(
    with_tests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-learners")
    learner = with_tests("The focused test", "A chapter with subprocess")
    learner.write(
        """\
        import os, subprocess, sys

        def greet(name):
            code = "from pi_course.words import count; print('hello', count.__module__)"
            child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            return child.stdout.strip() + child.stderr + os.environ.get("OPENAI_API_KEY", "")

        def count(text):
            return 3
        """
    )
    assert one(check(learner.folder, chapter=learner.chapter), "test_greets_by_name").got == (
        "'hello pi_course.words'"
    )


def test_without_fork_the_verdicts_are_the_same(learner) -> None:
    test = learner.chapter.folder / "parent" / "tests" / "test_03_words.py"
    names = [("test_03_words.py", name) for name in learner.chapter.tests]
    with Session([test], fork=False, limits=Limits()) as session:
        assert not session.run(learner.folder, pinned=names).green
        learner.write(SOLUTION)
        run = session.run(learner.folder, pinned=names)
        assert (run.green, run.sentence, run.error) == (True, None, None)


def test_a_session_runs_one_folder_after_another(learner, tmp_path: Path) -> None:
    test = learner.chapter.folder / "parent" / "tests" / "test_03_words.py"
    other = tmp_path / "second"
    (other / "pi_course").mkdir(parents=True)
    (other / "pi_course" / "__init__.py").write_text("", encoding="utf-8")
    (other / "pi_course" / "words.py").write_text("", encoding="utf-8")
    learner.write(SOLUTION)
    with Session([test]) as session:
        for _ in range(2):
            assert session.run(learner.folder).green
            run = session.run(other)
            assert run.red_ids == learner.chapter.tests
            assert run.tests[0].message == "pi_course/words.py has no greet"


def test_the_course_test_missing_is_an_error_of_the_environment(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="is missing, so nothing can be checked"):
        Session([tmp_path / "test_03_words.py"])


def test_a_broken_course_test_is_an_error_and_not_the_learners_fault(with_tests) -> None:
    learner = with_tests(
        "\n\ndef test_greets", "from pi_course.words import greet\n\n\ndef test_greets"
    )
    learner.write(SOLUTION)
    result = learner.check()
    assert result.verdict == "error"
    assert "imported at the top of a test file" in (result.sentence or "")


def test_json_holds_chapter_verdict_tests_and_files(learner) -> None:
    learner.write(SOLUTION)
    value = to_json(learner.check())
    assert (value["chapter"], value["verdict"]) == ("03-words", "green")
    assert value["tests"][0] == {
        "id": "test_greets_by_name",
        "lab": "3.1",
        "outcome": "passed",
        "message": "",
        "where": None,
    }
    assert set(value["tested"][0]) == {"path", "sha256"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "-" * 200_000 + "1\n", ""),
        ("#" * 2_000_000, "pi_course/words.py has 2 MB: no chapter's file has 1."),
    ],
)
def test_a_file_that_can_not_be_parsed_is_red(learner, text: str, message: str) -> None:
    learner.write(text)
    result = check(learner.folder, chapter=learner.chapter)
    assert (result.verdict, result.missing) == ("red", ())
    assert message in result.tests[0].message


def test_the_guard_is_this_kit_and_no_other(learner, tmp_path: Path) -> None:
    other = tmp_path / "pi_course_kit"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('the wrong kit')\n", encoding="utf-8")
    learner.write(SOLUTION)
    code = (
        f"from pi_course_kit.session import Session; from pathlib import Path\n"
        f"session = Session([Path({str(test_path(learner.chapter))!r})])\n"
        f"print(session.run(Path({str(learner.folder)!r})).green)\n"
        "session.close()"
    )
    kit = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": f"{kit}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_an_own_class_by_the_name_of_a_real_one_is_no_more_than_it_is(learner) -> None:
    learner.write(SOLUTION.replace("    return f", "    raise Exit('x')\n    return f"))
    file = learner.folder / "pi_course" / "words.py"
    file.write_text("class Exit(Exception):\n    pass\n" + file.read_text("utf-8"), "utf-8")
    result = check(learner.folder, chapter=learner.chapter)
    assert (result.sentence, result.tests[0].message) == (None, "Exit: x")
