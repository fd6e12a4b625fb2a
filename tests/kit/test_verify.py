"""verify: the rules on a sample course, their planted faults, and what the command prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from pi_course_kit import checkpoint, snapshot
from pi_course_kit.cli import main
from pi_course_kit.errors import CourseError
from pi_course_kit.verify import hostile, page, proof, sample, text, trial
from pi_course_kit.verify.case import HASTY, PATIENT, Case, Course, opened
from pi_course_kit.verify.matrix import RULES, Matrix, Row, prove
from pi_course_kit.verify.rule import Finding, Rule, put, swap


def forget() -> None:
    for cached in (
        checkpoint.folders,
        checkpoint.checkpoints,
        checkpoint._load,  # pyright: ignore[reportPrivateUsage]
        snapshot.snapshot_files,
        snapshot.test_files,
    ):
        cached.cache_clear()


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The sample course, settled and signed, as the course that the kit reads."""
    root = tmp_path / "sample"
    monkeypatch.setenv("PI_COURSE_DATA", str(root))
    monkeypatch.setenv("PI_COURSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path / "workspace"))
    forget()
    sample.write(root)
    sample.settle(root)
    trial.sign()
    forget()
    yield root
    forget()


@pytest.fixture
def hello(course: Path, tmp_path: Path) -> Iterator[Case]:
    with opened(Course(checkpoint.checkpoints(), tmp_path / "x", Future()), _chapter("01")) as case:
        yield case


def _chapter(name: str) -> checkpoint.Checkpoint:
    return checkpoint.find(name)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def rule(name: str) -> Rule:
    return next(each for each in RULES if each.id == name)


def check(name: str, case: Case) -> list[Finding]:
    return list(rule(name).check(case))


# The whole


@pytest.mark.slow
def test_every_rule_catches_the_fault_planted_for_it_and_no_other_rule_does() -> None:
    trials = list(trial.self_test(RULES))
    assert [(t.name, t.red, t.error) for t in trials if not t.caught] == []
    assert len(trials) == 1 + sum(len(each.plants) for each in RULES)


def test_the_sample_course_keeps_every_rule(course: Path) -> None:
    result = call("--json")
    report = json.loads(result.stdout)
    assert [finding for chapter in report["chapters"] for finding in chapter["findings"]] == []
    assert (result.exit_code, report["verdict"]) == (0, "green")
    assert [c["chapter"] for c in report["chapters"]] == ["00-start", "01-hello", "02-bye"]
    assert [c["faults"] for c in report["chapters"]] == [1, 3, 1]
    assert report["chapters"][2]["rules"].keys() == {each.id for each in RULES}
    assert report["chapters"][1]["mutants"] == {"total": 20, "noticed": 20, "survivors": []}


def test_a_red_rule_is_exit_1_with_what_where_and_what_next(course: Path) -> None:
    swap("checkpoints/01-hello/checkpoint.toml", "minutes = 10", "minutes = 0")(course)
    result = call("01")
    assert result.exit_code == 1
    assert "01 manifest: checkpoints/01-hello/checkpoint.toml" in result.output
    assert "minutes: Input should be greater than 0" in result.output
    assert "manifest  FAILED" in result.output
    assert result.output.endswith("1 snapshots, 3 faults, 28 rules\n")
    assert max(map(len, result.output.split("\n"))) <= 80


@pytest.mark.parametrize("arguments", [["77"], ["--self-test", "01"], ["--deep", "nonsense"]])
def test_wrong_use_is_exit_2(course: Path, arguments: list[str]) -> None:
    assert call(*arguments).exit_code == 2
    done = call("--json", *arguments)
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (2, "error")


def test_the_workspace_of_who_runs_it_is_not_touched(course: Path, tmp_path: Path) -> None:
    prove([_chapter("01")], [rule("chain"), rule("parent")])
    assert not (tmp_path / "workspace").exists()


def test_every_rule_has_a_sentence_and_an_id_of_its_own() -> None:
    assert len({each.id for each in RULES}) == len(RULES)
    for each in RULES:
        assert each.sentence.endswith(".")
        assert len(each.id) < text.FIRST
        assert set(each.needs) < {other.id for other in RULES}


# Rules that can't be applied


def planted(course: Path) -> None:
    raise AssertionError("not planted here")


def test_a_rule_waits_for_what_it_needs_and_a_crash_is_a_finding(course: Path) -> None:
    def crash(case: Case) -> list[Finding]:
        raise KeyError("lost")

    broken = Rule("broken", "It breaks.", crash, planted)
    waiting = Rule("waiting", "It waits.", crash, planted, needs=("broken",))
    later = Rule("later", "It waits too.", crash, planted, needs=("waiting",))
    none = Rule("none", "Not here.", crash, planted, applies=lambda case: False)
    row = prove([_chapter("01")], [broken, waiting, later, none]).rows[0]
    states = {"broken": "failed", "waiting": "waits", "later": "waits", "none": "n/a"}
    assert row.states == states
    assert "KeyError: 'lost'" in row.findings[0][1].what


# Single rules, beyond the one fault that is planted for each


def test_zero_tests_are_red(course: Path, hello: Case) -> None:
    put("checkpoints/01-hello/parent/tests/test_01_hello.py", '"""No test."""\n')(course)
    assert "no test was collected" in [finding.what for finding in check("pins", hello)]


def test_a_test_that_skips_itself_is_red(course: Path, hello: Case) -> None:
    path = "checkpoints/01-hello/parent/tests/test_01_hello.py"
    swap(path, 'assert hello("Ann") == "hello Ann"', 'pytest.skip("later")')(course)
    assert "test_hello_name skips itself" in [finding.what for finding in check("pins", hello)]
    assert any("skips or forgives" in finding.what for finding in check("tests", hello))


def test_an_import_for_all_tests_is_red(course: Path, hello: Case) -> None:
    path = "checkpoints/01-hello/parent/tests/test_01_hello.py"
    swap(path, "import pytest\n", "import pytest\nfrom pi_course import greet\n")(course)
    assert check("tests", hello)[0].what == "line 4 imports the learner's code for all tests"
    assert "can't be collected" in check("pins", hello)[0].what


def test_a_renamed_test_file_is_red(course: Path, hello: Case) -> None:
    tests = course / "checkpoints/01-hello/parent/tests"
    (tests / "test_01_hello.py").rename(tests / "test_hello.py")
    forget()
    assert "holds tests/test_hello.py" in check("files", hello)[0].what


def test_a_solved_parent_is_red(course: Path) -> None:
    solved = (course / "checkpoints/02-bye/target/pi_course/greet.py").read_text(encoding="utf-8")
    put("checkpoints/02-bye/parent/pi_course/greet.py", solved)(course)
    row = prove([_chapter("02")], [rule("fresh"), rule("parent"), rule("absent")]).rows[0]
    assert row.states == {"fresh": "failed", "parent": "waits", "absent": "waits"}
    row = prove([_chapter("02")], [rule("parent"), rule("absent")]).rows[0]
    assert row.states == {"parent": "failed", "absent": "failed"}
    assert row.findings[0][1].what == "the untouched parent is green"


def test_a_chapter_solved_in_a_parent_without_starters_is_red(course: Path, hello: Case) -> None:
    solved = (course / "checkpoints/01-hello/target/pi_course/greet.py").read_text(encoding="utf-8")
    put("checkpoints/01-hello/parent/pi_course/greet.py", solved)(course)
    assert "without starters" in check("fresh", hello)[0].what


def test_a_fault_must_not_turn_other_tests_red(course: Path) -> None:
    swap(
        "checkpoints/01-hello/checkpoint.toml",
        'tests = ["test_hello_name", "test_greet_all"]\nshows',
        'tests = ["test_hello_name"]\nshows',
    )(course)
    forget()
    found = prove([_chapter("01")], [rule("faults")]).rows[0].findings
    assert [finding.what for _, finding in found] == ["it also turns red: test_greet_all"]


def test_a_missing_hint_and_a_stranger_among_the_symbols_are_red(course: Path) -> None:
    toml = "checkpoints/01-hello/checkpoint.toml"
    swap(toml, '"pi_course/greet.py:greet_all"', '"pi_course/greet.py:greet_none"')(course)
    put("checkpoints/01-hello/hints.md", "## 9.9\n\nElsewhere.\n")(course)
    forget()
    row = prove([_chapter("01")], [rule("owned"), rule("hints")]).rows[0]
    assert [finding.what for _, finding in row.findings] == [
        "greet_none is listed and not in the target",
        "greet_all belongs to no lab",
    ]
    row = prove([_chapter("01")], [rule("hints")]).rows[0]
    assert "has no section '## 1.1'" in row.findings[0][1].what


def test_a_passage_that_says_which_chapter_brings_a_thing_may_name_it(
    course: Path, hello: Case
) -> None:
    hints = "checkpoints/01-hello/hints.md"
    put(hints, "## 1.1\n\nUnlike `bye_twice`, which chapter 02 brings.\n")(course)
    assert check("later", hello) == []
    put(hints, "## 1.1\n\nUnlike `bye_twice`.\n\nAnd chapter 02 follows.\n")(course)
    assert ["bye_twice" in finding.what for finding in check("later", hello)] == [True]


def test_code_of_a_later_chapter_is_seen_in_imports_and_comments(course: Path, hello: Case) -> None:
    target = "checkpoints/01-hello/target/pi_course/greet.py"
    swap(target, "    return greeted", "    # not pi_course/words.py\n    return greeted")(course)
    test = "checkpoints/01-hello/parent/tests/test_01_hello.py"
    swap(test, "import greet_all\n", "import greet_all\n    import pi_course.words\n")(course)
    found = [finding.what for finding in check("later", hello)]
    assert len(found) == 2
    assert found[0].endswith("imports pi_course.words, which chapter 02 brings")
    assert found[1] == "it names pi_course/words.py, which chapter 02 brings"


# Deep results


def test_deep_results_are_kept_by_digest(course: Path) -> None:
    for name in ("mutants", "commands"):
        swap("checkpoints/00-start/proof.json", f'"{name}"', f'"old {name}"')(course)
    assert call("00").exit_code == 1
    said: list[str] = []
    prove([_chapter("00")], [], deep=said.append)
    assert said == ["00 mutants", "00 commands"]
    assert call("00").exit_code == 0
    prove([_chapter("00")], [], deep=said.append)
    assert len(said) == 2
    kept = json.loads((course / "checkpoints/00-start/proof.json").read_text(encoding="utf-8"))
    assert (kept["mutants"]["total"], kept["mutants"]["noticed"]) == (2, 2)
    assert "pi-course check" in kept["commands"]["ran"]
    assert kept["commands"]["wrong"] == {}


def test_results_of_an_earlier_test_are_stale(course: Path, hello: Case) -> None:
    assert check("mutants", hello) == []
    path = "checkpoints/01-hello/parent/tests/test_01_hello.py"
    swap(path, '"hello Ann"\n', '"hello Ann"  # so\n')(course)
    for name in ("mutants", "hostile"):
        found = check(name, hello)
        assert [finding.what for finding in found] == [
            f"its results for {name} are of an earlier state"
        ]
        assert found[0].do == "Run `pi-course verify 01 --deep`."


def test_a_survivor_needs_a_reason_and_a_reason_needs_a_survivor(course: Path) -> None:
    toml = course / "checkpoints/01-hello/checkpoint.toml"
    listed = '\n[[mutants]]\nid = "greet.py:hello/body"\nreason = "Nobody asks."\n'
    toml.write_text(toml.read_text(encoding="utf-8") + listed, encoding="utf-8", newline="\n")
    forget()
    found = prove([_chapter("01")], [rule("mutants")]).rows[0].findings
    assert [f.what for _, f in found] == ["greet.py:hello/body is listed and did not survive"]
    rule("mutants").plant(course)
    assert prove([_chapter("01")], [rule("mutants")]).green


def test_too_few_noticed_mutants_are_red_even_with_reasons(course: Path, hello: Case) -> None:
    path = "checkpoints/01-hello/proof.json"
    swap(path, '"noticed": 20', '"noticed": 18')(course)
    assert check("mutants", hello)[0].what.startswith("18 of 20 mutants are noticed")


@pytest.mark.slow
def test_hostile_students_are_red_each_with_a_sentence_of_its_own(
    course: Path, hello: Case
) -> None:
    tried = [student for student in hostile.STUDENTS if not hostile.skipped(student)]
    outcomes = [
        hostile.attempt(student, hello.chapter, hello.practice_copy("hostile")) for student in tried
    ]
    assert [(o.student, o.said, o.wrong) for o in outcomes if o.wrong] == []
    told = {outcome.said for outcome, student in zip(outcomes, tried, strict=True) if student.says}
    assert len(told) >= len({student.says for student in tried if student.says})
    assert len(outcomes) >= 12


def test_a_loop_that_runs_nothing_is_noticed(course: Path, hello: Case) -> None:
    test = """\
        import asyncio


        def test_hello_name() -> None:
            from pi_course.greet import hello

            async def ask() -> None:
                assert await hello("Ann") == "hello Ann"

            asyncio.run(ask())
        """
    put("checkpoints/01-hello/parent/tests/test_01_hello.py", dedent(test))(course)
    student = next(s for s in hostile.STUDENTS if s.name == "a loop that runs nothing")
    outcome = hostile.attempt(student, hello.chapter, hello.practice_copy("hostile"))
    assert outcome.said.startswith("Your code changed pytest or Python itself (asyncio.run)")
    assert outcome.wrong == ""


def test_a_hostile_student_who_is_not_told_what_happened_is_reported(
    course: Path, hello: Case
) -> None:
    student = hostile.Student("nobody", hostile.code(""), "a thing that check never says")
    outcome = hostile.attempt(student, hello.chapter, hello.practice_copy("hostile"))
    assert "does not say 'a thing that check never says'" in outcome.wrong


# Reports


def test_the_report_is_a_page_without_script_and_json(course: Path, tmp_path: Path) -> None:
    rule("mutants").plant(course)
    result = call("01", "--report", str(tmp_path / "report"))
    html = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (result.exit_code, report["verdict"]) == (1, "red")
    assert "<script" not in html
    assert "prefers-color-scheme: dark" in html
    assert "greet.py:hello/body" in html
    assert '<span class="failed">failed</span>' in html
    assert snapshot.target_digest(1)[:12] in html


def test_the_report_says_in_which_chapters_a_student_is_red(course: Path) -> None:
    said = {"both": "It is red.", "one": "It is red.", "linux": "not tried: needs linux"}
    rows = tuple(
        Row(
            _chapter(name),
            states={each.id: "passed" for each in RULES},
            proof={"hostile": {"students": said, "wrong": wrong}},
            digests={"parent": "", "target": ""},
        )
        for name, wrong in (("01", {}), ("02", {"one": "it is green"}))
    )
    html = page.html(Matrix(rows, 0.0), RULES)
    assert '<th scope="row">both</th><td><span class="passed">red in all</span></td>' in html
    assert (
        '<th scope="row">one</th><td><span class="passed">red in 01</span><br>'
        '<span class="failed">not red in 02</span></td>'
    ) in html
    assert '<td><span class="waits">not tried in 01, 02</span></td>' in html


def test_a_run_on_the_same_files_is_made_once(hello: Case) -> None:
    first = hello.run(hello.target_root)
    assert hello.run(hello.target_copy("again"), limits=PATIENT) is first
    other = hello.target_copy("other")
    (other / "pi_course" / "greet.py").write_text("", encoding="utf-8")
    red = hello.run(other, limits=HASTY)
    assert (first.green, red.green) == (True, False)
    assert hello.run(other) is not red


def test_a_type_error_in_a_file_that_chapters_share_is_shown_in_each(course: Path) -> None:
    (target,) = course.glob("checkpoints/00-*/target/pi_course")
    (target / "wrong.py").write_text('WRONG: int = "text"\n', encoding="utf-8", newline="\n")
    forget()
    rows = prove(checkpoint.checkpoints(), [rule("types")]).rows
    assert [row.states["types"] for row in rows] == ["failed"] * len(rows)


def test_a_report_that_cannot_be_written_is_wrong_use(course: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8", newline="\n")
    with pytest.raises(CourseError, match="can't be written"):
        page.write(Matrix((), 0.0), RULES, tmp_path / "file" / "report")


def test_the_matrix_fits_80_columns_with_twenty_chapters(course: Path) -> None:
    rows = tuple(
        Row(_chapter("01"), states={each.id: "n/a" for each in RULES}, seconds=12.3)
        for _ in range(20)
    )
    printed = text.matrix(Matrix(rows, 1.0), RULES)
    assert max(map(len, printed.split("\n"))) <= 80
    assert printed.count("n/a") == 20 * len(RULES)


def test_the_trial_says_what_went_red_in_place_of_the_rule() -> None:
    assert text.trial(trial.Trial("pins", ("pins",), "")) == "pins                caught"
    assert text.trial(trial.Trial("", (), "")) == "nothing             green"
    assert "red are no rules" in text.trial(trial.Trial("pins", (), ""))
    assert "red are faults, pins" in text.trial(trial.Trial("pins", ("faults", "pins"), ""))


def test_a_planted_edit_must_find_its_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x x", encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match="2 times"):
        swap("a", "x", "y")(tmp_path)


assert proof  # its rules are looked up by name
