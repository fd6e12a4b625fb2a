"""`compare`: one scenario on the reference and on a learner's package, and where they part.

Each side runs in a process of its own, so that neither can disturb the other; the two traces are
laid side by side, and the first entry that differs is what is told, with the line that made it.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pi_course_kit import checkpoint as checkpoints
from pi_course_kit import data, snapshot, source, symbols
from pi_course_kit.checkpoint import Checkpoint, Lab, Scenario
from pi_course_kit.divergence import Place, locate
from pi_course_kit.errors import CourseError
from pi_course_kit.limits import Limits
from pi_course_kit.session import CAN_FORK, child_environment
from pi_course_kit.trace import MOST as MOST_VALUES
from pi_course_kit.trace import WAIT_SECONDS

LIMITS = Limits(
    test_seconds=WAIT_SECONDS + 2, grace_seconds=1.0, total_seconds=20.0, output_bytes=1_000_000
)
FUNCTION = "scenario"


@dataclass(frozen=True, slots=True)
class Entry:
    """A traced value, or how the trace ended; `asked` is the scenario's own expression."""

    kind: str
    asked: str
    value: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`reference` and `mine` are the first entries that differ, None when all are equal."""

    scenario: Scenario
    equal: tuple[Entry, ...]
    reference: Entry | None = None
    mine: Entry | None = None
    place: Place | None = None
    lab: Lab | None = None
    printed: str = ""

    @property
    def differs(self) -> bool:
        return self.reference is not None


def compare(
    chapter: Checkpoint, scenario: Scenario, folder: Path, *, name: str = FUNCTION
) -> Comparison:
    """Run the scenario on the chapter's target and on `folder`; `name` is its function."""
    root = snapshot.cached_snapshot(chapter.number)
    play = partial(run, root, scenario.code, name, owner=f"chapter {chapter.nn}")
    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(play)
        theirs = pool.submit(run, folder, scenario.code, name, given=_given(chapter))
        reference, mine = ours.result(), theirs.result()
    if reference.entries[-1]["kind"] != "end":
        last = _entry(reference.entries[-1], scenario.code)
        raise CourseError(
            f"The scenario {scenario.id} does not run on the reference itself: {last.value}. "
            "Correct the scenario; if it is one of the course's, run it again when this machine "
            "is less busy."
        )
    pairs = zip(reference.entries, mine.entries, strict=False)
    index = next((i for i, (a, b) in enumerate(pairs) if _facts(a) != _facts(b)), None)
    before = reference.entries[:-1] if index is None else reference.entries[:index]
    equal = tuple(_entry(entry, scenario.code) for entry in before)
    if index is None:
        return Comparison(scenario, equal, printed=mine.printed)
    one, other = reference.entries[index], mine.entries[index]
    ways = list(zip(reference.entries[: index + 1], mine.entries[: index + 1], strict=True))
    place = locate(ways, root, folder, lambda: play(seed=1).entries)
    return Comparison(
        scenario,
        equal,
        _entry(one, scenario.code),
        _entry(other, scenario.code),
        place,
        lab_of(chapter, scenario, place, mine.entries[index]["value"]),
        mine.printed,
    )


def compare_all(chapter: Checkpoint, folder: Path, name: str | None = None) -> list[Comparison]:
    """The chapter's scenarios one after the other, up to the first that differs; or one of them."""
    if not chapter.scenarios:
        raise CourseError(
            f"Chapter {chapter.nn} declares no scenario to compare. Run its tests: pi-course check"
        )
    found: list[Comparison] = []
    for scenario in chapter.scenarios if name is None else [chapter.scenario(name)]:
        found.append(compare(chapter, scenario, folder))
        if found[-1].differs:
            break
    return found


def _given(chapter: Checkpoint) -> list[str]:
    """Files that no learner writes: what fails in them was caused by whoever called."""
    before = [c for c in checkpoints.checkpoints() if c.number <= chapter.number]
    return [file for c in before for file in c.given if ":" not in file]


def _facts(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["kind"], entry["value"], entry["line"]


# Running one side


@dataclass(frozen=True, slots=True)
class Trace:
    """What one side recorded: values, and last how it ended."""

    entries: tuple[dict[str, Any], ...]
    printed: str


def run(
    root: Path,
    code: str,
    name: str = FUNCTION,
    *,
    owner: str = "your folder",
    given: Sequence[str] = (),
    limits: Limits = LIMITS,
    seed: int = 0,
) -> Trace:
    """Run a scenario on the package in `root`; `seed` decides the order of sets."""
    with tempfile.TemporaryDirectory(prefix="pi-course-", ignore_cleanup_errors=True) as home:
        records = Path(home).resolve() / "records.jsonl"
        records.touch()
        job = {
            "root": str(root.resolve()),
            "code": code,
            "name": name,
            "records": str(records),
            "limits": limits.to_json(),
            "owner": owner,
            "given": list(given),
            "brings": source.brought_by(data.data_dir("checkpoints")),
            "fork": CAN_FORK,
        }
        answer = _ask(job, limits, seed, Path(home))
        lines = records.read_bytes().split(b"\n")[:-1] if records.exists() else []
    entries = [json.loads(line) for line in lines]
    if not entries or entries[-1]["kind"] == "value":
        entries.append({"kind": "killed", "value": _why(answer, limits), "line": 0, "way": []})
    return Trace(tuple(entries), answer["printed"])


def _ask(job: dict[str, Any], limits: Limits, seed: int, home: Path) -> dict[str, Any]:
    folder = home.resolve() / "work"
    folder.mkdir()
    with (home / "log").open("wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "pi_course_kit.trace"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if CAN_FORK else subprocess.DEVNULL,
            stderr=errors,
            cwd=folder,
            env=child_environment(PYTHONHASHSEED=str(seed)),
            start_new_session=CAN_FORK,
        )
    assert child.stdin is not None
    answer = b""
    why: str | None = None
    with child:
        child.stdin.write(json.dumps(job).encode() + b"\n")
        child.stdin.flush()  # and not closed: its end would stop the run
        try:
            if CAN_FORK and child.stdout is not None:
                answer = child.stdout.read()  # the supervisor keeps the limits
            else:
                child.wait(limits.total_seconds)
        except subprocess.TimeoutExpired:
            why = "total"
        finally:
            if not answer and child.poll() is None:
                child.kill()
    if answer:
        return json.loads(answer)
    return {"status": child.returncode, "why": why, "printed": ""}


def _why(answer: dict[str, Any], limits: Limits) -> str:
    """A sentence for a run that has left no end of its own."""
    match answer["why"]:
        case "output":
            return f"printed more than {limits.output_bytes // 1_000_000} MB and was stopped"
        case "forks":
            return f"started more than {limits.forks} processes and was stopped"
        case "time" | "total":
            return "did not stop and was ended from outside"
        case _ if answer["status"] < 0:
            return f"its process was killed by signal {-answer['status']}"
        case _:
            return f"ended the whole process (exit code {answer['status']})"


def _entry(entry: dict[str, Any], code: str) -> Entry:
    asked = _asked(code, entry["line"])
    match entry["kind"]:
        case "end":
            return Entry("end", asked, "the scenario is over")
        case "raises":
            return Entry("raises", asked, f"raises {entry['value']}")
        case "waits":
            return Entry("waits", asked, f"waits: nothing came within {WAIT_SECONDS:.0f} s")
        case "hangs":
            return Entry("hangs", asked, f"was still running after {LIMITS.test_seconds:.0f} s")
        case "floods":
            return Entry("floods", asked, f"gave more than {MOST_VALUES} values")
        case kind:
            return Entry(kind, asked, entry["value"])


def _asked(code: str, line: int) -> str:
    """The expression that was traced on a line of the scenario, else that line."""
    if not line:
        return ""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Name(id="trace"), args=[value], lineno=start) if start == line:
                return " ".join((ast.get_source_segment(code, value) or "").split())
            case _:
                continue
    return code.split("\n")[line - 1].strip()


def lab_of(
    chapter: Checkpoint, scenario: Scenario, place: Place | None, value: str = ""
) -> Lab | None:
    """The lab that owns the function, of an earlier chapter too; else the scenario's own.

    Of two labs of this chapter it is the later one: what the scenario does is asked for there,
    and the tests of the lab before may all be green. What is not written yet comes first.
    """
    own = next((lab for lab in chapter.labs if lab.id == scenario.lab), None)
    if place is not None:
        parts = place.function.split(".")
        for folder in reversed(checkpoints.folders()):
            if int(folder.name[:2]) > chapter.number:
                continue
            owner = checkpoints.find(folder.name)
            labs = symbols.owners(owner, place.file)
            for length in (2, 1):
                if (name := ".".join(parts[:length])) in labs:
                    found = owner.lab(labs[name])
                    late = own is not None and found in chapter.labs and found.id < own.id
                    return own if late and "NotImplementedError" not in value else found
    return own
