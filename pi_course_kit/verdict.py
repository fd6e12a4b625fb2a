"""From the records of a run and the way it ended to results, and a sentence if it was spoiled."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pi_course_kit.limits import Limits
from pi_course_kit.records import FORGED, Record
from pi_course_kit.results import RunResult, Tested, TestResult

Key = tuple[str, str]  # test file, test id
CANARY: Key = ("canary.py", "test_canary")
ANYTIME = ("loaded", "refused", "changed")  # a thread may still import when the tests are over

# Ends of a test that are no ordinary failure: the sentence over the report says so.
STOPS = {
    "KitRefused",
    "SystemExit",
    "KeyboardInterrupt",
    "MemoryError",
    "Skipped",
    "XFailed",
    "Exit",
}

BROKEN = 70  # the exit code of a child that could not go on
STOPPED = "The run was stopped."


def in_order(records: Sequence[Record]) -> bool:
    """Whether the records are those of one run: each test started and ended once, then the end."""
    tests: Counter[Key] | None = None
    running: Key | None = None
    done: set[Key] = set()
    over = False
    for record in records:
        kind, key = record["kind"], (record.get("file", ""), record.get("id", ""))
        if kind in ANYTIME and tests is not None:
            continue
        elif over or kind == FORGED:
            return False
        elif kind == "collected" and tests is None:
            tests = Counter((file, name) for file, name, _ in record["tests"])
        elif kind == "start" and running is None and key not in done and key in (tests or ()):
            running = key
        elif kind in ("result", "canary") and key == running:
            if (kind == "canary") != (key == CANARY):
                return False
            done.add(key)
            running = None
        elif kind in ("stopped", "crashed") or (kind == "end" and running is None):
            over = True
        else:
            return False
    return True


class Verdict:
    """`answer` is the supervisor's: status, why it killed, what was printed."""

    def __init__(self, records: Sequence[Record], answer: Record, limits: Limits) -> None:
        self._answer = answer
        self._limits = limits
        self._in_order = in_order(records)
        self._by_kind: dict[str, list[Record]] = {}
        for record in records:
            self._by_kind.setdefault(record["kind"], []).append(record)
        collected = self._one("collected") or {"tests": [], "errors": []}
        self._titles: dict[Key, str] = {(f, name): title for f, name, title in collected["tests"]}
        self._count = Counter((file, name) for file, name, _ in collected["tests"])
        self._collect_errors: list[str] = collected["errors"]
        self._results = {(r["file"], r["id"]): r for r in reversed(self._all("result"))}
        starts = self._all("start")
        self._last: Record | None = starts[-1] if starts else None

    def result(self, pinned: Sequence[Key] | None, labs: Mapping[str, str]) -> RunResult:
        """`pinned` must have run once each; None takes what was collected."""
        sentence = self._sentence()
        extra = [key for key in self._titles if key != CANARY and key not in (pinned or ())]
        wanted = [*(pinned or ()), *extra]
        return RunResult(
            tests=tuple(self._test(key, labs, sentence) for key in wanted),
            tested=tuple(self._tested()),
            sentence=sentence,
            printed=self._answer["printed"],
            error=self._error(),
        )

    def _error(self) -> str | None:
        if self._collect_errors:
            return f"The course's own tests can't be collected: {self._collect_errors[0]}"
        if self._one("collected") is None and self._answer["why"] not in ("stopped", "deleted"):
            return f"The test run did not start: {self._answer['printed'][-2000:]}"
        return None

    def _test(self, key: Key, labs: Mapping[str, str], sentence: str | None) -> TestResult:
        file, name = key
        lab, title = labs.get(name, ""), self._titles.get(key, name)
        record = self._results.get(key)
        if self._count[key] != 1:
            count = self._count[key]
            message = (
                "the course's tests have no such test" if not count else f"found {count} times"
            )
            return TestResult(name, lab, "missing", title, message, file=file)
        if record is not None:
            return TestResult(
                name,
                lab,
                record["outcome"],
                title,
                record.get("message", ""),
                record.get("called"),
                record.get("expected"),
                record.get("got"),
                record.get("where"),
                record.get("code"),
                file,
                record.get("type", ""),
            )
        if self._last is not None and (self._last["file"], self._last["id"]) == key:
            return TestResult(name, lab, "failed", title, sentence or "did not end", file=file)
        return TestResult(name, lab, "missing", title, self._why_not_run(), file=file)

    def _why_not_run(self) -> str:
        stopped = self._one("stopped")
        if stopped is not None and stopped["why"] == "late":
            seconds = self._limits.red_seconds
            return f"not run: tests had failed and the run was over {seconds:g} s old"
        return f"not run: the run ended in {self._last['id']}" if self._last else "not run"

    def _tested(self) -> Iterator[Tested]:
        seen: dict[str, str] = {r["path"]: r["sha256"] for r in self._all("loaded")}
        for path, sha256 in sorted(seen.items()):
            yield Tested(path, sha256)

    def _sentence(self) -> str | None:
        """The first reason, worst first, why the run as a whole can't be green."""
        return (
            self._refused()
            or self._killed()
            or self._disordered()
            or self._tampered()
            or self._cut_short()
            or self._stop_in_a_test()
        )

    def _refused(self) -> str | None:
        refused = self._one("refused")
        return _sentence(refused["sentence"]) if refused else None

    def _killed(self) -> str | None:
        limits, test = self._limits, self._at()
        match self._answer["why"]:
            case "output":
                size = f"{limits.output_bytes / 1e6:g} MB"
                return f"Your code printed more than {size}{test}, so the run was stopped."
            case "forks":
                return (
                    f"Your code started more than {limits.forks} processes{test}; all were ended."
                )
            case "time":
                return (
                    f"Your code did not end within {limits.test_seconds:g} s{test} and swallowed "
                    "the interruption: look for a loop with a bare `except:`."
                )
            case "total":
                return f"The run took more than {limits.total_seconds:g} s and was stopped{test}."
            case "stopped":
                return STOPPED
            case "deleted":
                return "Your code deleted the files of the test run itself."
            case _:
                return None

    def _cut_short(self) -> str | None:
        if self._one("end") is not None:
            status = self._answer["status"]
            return (
                f"The test process ended with {_status(status)} after the tests."
                if status
                else None
            )
        stopped = self._one("stopped")
        if stopped is not None:
            if stopped["why"] == "late":
                return None
            return (
                f"Your code {self._results[(self._last or {})['file'], stopped['id']]['message']}."
            )
        status = self._answer["status"]
        if status == BROKEN:
            return f"Your code broke the test process{self._at()}: it could not go on."
        how = "by os._exit(), before the test was over" if status >= 0 else ""
        return f"Your code ended Python itself{self._at()}: {_status(status)} {how}".rstrip() + "."

    def _disordered(self) -> str | None:
        if self._in_order:
            return None
        return "Your code wrote into the records of the test run, so no result counts."

    def _tampered(self) -> str | None:
        crash = self._one("crashed")
        end = crash or self._one("end")
        changed = [name for record in self._all("changed") for name in record["names"]]
        names = ", ".join(dict.fromkeys([*changed, *(end["broken"] if end else ())][:3]))
        canary = self._one("canary")
        # 1 + 1 == 3: the pair shows that the comparison was made, not only that something failed.
        alive = canary is not None and (canary["outcome"], canary.get("got")) == ("failed", "2")
        if names:
            return f"Your code changed pytest or Python itself ({names}), so no result counts."
        if crash is not None:
            return f"Your code broke the test run itself{self._at()} ({crash['error']})."
        if end is not None and not alive:
            return "A test that must fail did not: your code changed pytest, so no result counts."
        if end is not None and end.get("equal"):
            names = ", ".join(end["equal"][:3])
            return (
                f"Your code has a class that is equal to everything ({names}): that proves nothing."
            )
        return None

    def _stop_in_a_test(self) -> str | None:
        for result in self._all("result"):
            if result.get("type") in STOPS:
                where = f" at {result['where']}" if result.get("where") else ""
                return _sentence(f"{result['message']}{where}")
        return None

    def _at(self) -> str:
        return f" in {self._last['id']}" if self._last else ""

    def _all(self, kind: str) -> list[Record]:
        return self._by_kind.get(kind, [])

    def _one(self, kind: str) -> Record | None:
        return next(iter(self._all(kind)), None)


def _status(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
