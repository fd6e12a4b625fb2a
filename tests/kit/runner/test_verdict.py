"""Green needs every witness; each one missing alone makes the run red or an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_course_kit.limits import Limits
from pi_course_kit.records import read_records, recorder
from pi_course_kit.results import RunResult
from pi_course_kit.verdict import Verdict

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
    "canary starts": {"kind": "start", "id": "test_canary", "file": "canary.py"},
    "canary": {**CANARY, "got": "2"},
    "end": {"kind": "end", "broken": []},
}

CUT = dict.fromkeys(("result", "canary starts", "canary", "end"))


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
        (CUT, {}, "ended Python itself in test_one: exit code 0 by os._exit()"),
        (CUT, {"status": -11}, "ended Python itself in test_one: signal SIGSEGV."),
        (CUT, {"status": 70}, "broke the test process in test_one"),
        ({}, {"status": 3}, "ended with exit code 3 after the tests"),
        ({}, {"status": -9}, "ended with signal SIGKILL after the tests"),
        ({"canary": None, "canary starts": None}, {}, "A test that must fail did not"),
        ({"canary": {**CANARY, "outcome": "passed"}}, {}, "A test that must fail did not"),
        ({"canary": {**CANARY, "got": None}}, {}, "A test that must fail did not"),
        ({"end": {"kind": "end", "broken": ["pytest.raises"]}}, {}, "changed pytest or Python"),
        ({"x": {"kind": "refused", "sentence": "your code reads"}}, {}, "Your code reads."),
        ({"x": {"kind": "changed", "names": ["json.dumps"]}}, {}, "changed pytest or Python"),
        (CUT, {"why": "output"}, "printed more than 10 MB in test_one"),
        (CUT, {"why": "forks"}, "started more than 64 processes in test_one"),
        (CUT, {"why": "time"}, "did not end within 5 s in test_one and swallowed"),
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
    run = judge(CUT)
    assert (run.green, run.tests[0].outcome) == (False, "failed")


FAILED = {**GOOD["result"], "outcome": "failed"}
OTHER = {"kind": "start", "id": "test_other", "file": FILE}


@pytest.mark.parametrize(
    "records",
    [
        ["collected", "start", FAILED, "result", "canary starts", "canary", "end"],
        ["collected", "start", "result", "start", "result", "canary starts", "canary", "end"],
        ["collected", "result", "canary starts", "canary", "end"],
        ["collected", "start", "result", "canary starts", "canary", "canary", "end"],
        ["collected", "start", "result", "canary starts", "canary", "end", "end"],
        ["collected", "start", "result", "canary starts", "canary", "end", "result"],
        ["collected", "start", "canary", "canary starts", "canary", "end"],
        ["collected", "start", "result", OTHER, "canary starts", "canary", "end"],
        ["collected", "start", "canary starts", "canary", "result", "end"],
        ["start", "collected", "result", "canary starts", "canary", "end"],
        ["collected", "collected", "start", "result", "canary starts", "canary", "end"],
        ["collected", "start", "result", {"kind": "forged"}, "canary starts", "canary", "end"],
        ["collected", "start", "result", "canary starts", "canary", "start", "end"],
        ["collected", "start", "result", "canary starts", "canary", {"kind": "x"}, "end"],
    ],
)
def test_records_in_another_order_are_red(records: list[Any]) -> None:
    run = judge(dict.fromkeys(GOOD) | {str(i): GOOD.get(str(r), r) for i, r in enumerate(records)})
    assert run.sentence == "Your code wrote into the records of the test run, so no result counts."


def test_a_module_may_be_loaded_when_the_tests_are_over() -> None:
    assert judge({"late": GOOD["loaded"]}).green


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


KEY = b"k" * 16


def written(path: Path, *kinds: str) -> list[bytes]:
    write, _ = recorder(path, KEY)
    for kind in kinds:
        write(kind, text="\u4e2d")
    return path.read_bytes().splitlines(keepends=True)


def kinds(path: Path, lines: list[bytes]) -> list[str]:
    path.write_bytes(b"".join(lines))
    return [record["kind"] for record in read_records(path, KEY)]


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "records"
    lines = written(path, "start", "end")
    assert read_records(path, KEY) == [
        {"kind": kind, "text": "\u4e2d"} for kind in ("start", "end")
    ]
    assert kinds(path, [lines[0], lines[1][:20]]) == ["start"], "a line that was cut short"
    assert read_records(tmp_path / "none", KEY) == []


def test_a_record_by_another_hand_is_forged(tmp_path: Path) -> None:
    path = tmp_path / "records"
    one, two, three = written(path, "one", "two", "three")
    assert kinds(path, [one, two, three]) == ["one", "two", "three"]
    assert kinds(path, [one, b'{"kind": "end"}\n', two]) == ["one", "forged", "forged"]
    assert kinds(path, [one, one]) == ["one", "forged"]
    assert kinds(path, [one, three]) == ["one", "forged"]
    assert kinds(path, [one, two.replace(b"two", b"end")]) == ["one", "forged"]
    assert [record["kind"] for record in read_records(path, b"other")] == ["forged"] * 2
