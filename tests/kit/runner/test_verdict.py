"""Green needs every witness; each one missing alone makes the run red or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_course_kit.limits import Limits
from pi_course_kit.results import RunResult
from pi_course_kit.verdict import Verdict, read_records

FILE = "test_03_words.py"
PINNED = [(FILE, "test_one")]
COLLECTED = {"kind": "collected", "pid": 1, "errors": []}
CANARY = {"kind": "canary", "id": "test_canary", "file": "canary.py", "outcome": "failed"}
GOOD: dict[str, dict[str, Any]] = {
    "collected": {
        **COLLECTED,
        "tests": [[FILE, "test_one", "One."], ["canary.py", "test_canary", ""]],
    },
    "start": {"kind": "start", "id": "test_one", "file": FILE},
    "loaded": {"kind": "loaded", "path": "pi_course/words.py", "sha256": "ab"},
    "result": {"kind": "result", "id": "test_one", "file": FILE, "outcome": "passed"},
    "canary": {**CANARY, "got": "2"},
    "end": {"kind": "end", "broken": []},
}


def judge(changed: dict[str, Any] | None = None, **answer: Any) -> RunResult:
    records = [value for value in {**GOOD, **(changed or {})}.values() if value is not None]
    said = {"status": 0, "why": None, "printed": "", **answer}
    return Verdict(records, said, Limits()).result(PINNED, {"test_one": "3.1"})


def test_all_witnesses_together_are_green() -> None:
    run = judge()
    assert (run.green, run.sentence, run.error) == (True, None, None)
    assert [(test.id, test.lab) for test in run.tests] == [("test_one", "3.1")]


@pytest.mark.parametrize(
    ("changed", "answer", "sentence"),
    [
        ({"end": None}, {}, "ended Python itself in test_one: exit code 0 by os._exit()"),
        ({"end": None}, {"status": -11}, "ended Python itself in test_one: signal SIGSEGV."),
        ({"end": None}, {"status": 70}, "broke the test process in test_one"),
        ({}, {"status": 3}, "ended with exit code 3 after the tests"),
        ({}, {"status": -9}, "ended with signal SIGKILL after the tests"),
        ({"canary": None}, {}, "A test that must fail did not"),
        ({"canary": {**CANARY, "outcome": "passed"}}, {}, "A test that must fail did not"),
        ({"canary": {**CANARY, "got": None}}, {}, "A test that must fail did not"),
        ({"end": {"kind": "end", "broken": ["pytest.raises"]}}, {}, "changed pytest or Python"),
        ({"x": {"kind": "refused", "sentence": "your code reads"}}, {}, "Your code reads."),
        ({}, {"why": "output"}, "printed more than 10 MB in test_one"),
        ({}, {"why": "forks"}, "started more than 64 processes in test_one"),
        ({}, {"why": "time"}, "did not end within 5 s in test_one and swallowed"),
        ({}, {"why": "total"}, "took more than 60 s"),
        ({}, {"why": "stopped"}, "The run was stopped."),
        ({}, {"why": "deleted"}, "deleted the files of the test run"),
    ],
)
def test_one_witness_missing_is_red(
    changed: dict[str, Any], answer: dict[str, Any], sentence: str
) -> None:
    run = judge(changed, **answer)
    assert not run.green
    assert run.error is None
    assert sentence in (run.sentence or "")


def test_a_test_that_was_not_collected_is_missing() -> None:
    run = judge({"collected": {**COLLECTED, "tests": []}})
    assert (run.green, run.tests[0].outcome) == (False, "missing")


def test_a_test_that_was_collected_twice_is_missing() -> None:
    run = judge({"collected": {**COLLECTED, "tests": [[FILE, "test_one", "One."]] * 2}})
    assert (run.green, run.tests[0].message) == (False, "found 2 times")


def test_a_test_without_a_result_is_no_pass() -> None:
    run = judge({"result": None})
    assert (run.green, run.tests[0].outcome) == (False, "failed")


def test_the_first_result_of_a_test_counts() -> None:
    failed = {**GOOD["result"], "outcome": "failed", "message": "first"}
    run = judge({"result": failed, "again": GOOD["result"]})
    assert (run.green, run.tests[0].message) == (False, "first")


def test_a_test_that_is_not_pinned_counts_too() -> None:
    tests = [*GOOD["collected"]["tests"], [FILE, "test_two", "Two."]]
    run = judge({"collected": {**COLLECTED, "tests": tests}})
    assert [test.id for test in run.tests] == ["test_one", "test_two"]
    assert not run.green


def test_tests_that_can_not_be_collected_are_an_error() -> None:
    run = judge({"collected": {**COLLECTED, "tests": [], "errors": ["SyntaxError"]}})
    assert "can't be collected: SyntaxError" in (run.error or "")


def test_no_record_at_all_is_an_error() -> None:
    run = judge(dict.fromkeys(GOOD), status=1, printed="no pytest here")
    assert "did not start: no pytest here" in (run.error or "")


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "records"
    whole = json.dumps(GOOD["start"])
    path.write_text(f"{whole}\nnot json\n[1]\n{whole[:20]}", encoding="utf-8")
    assert read_records(path) == [GOOD["start"]]
    assert read_records(tmp_path / "none") == []
