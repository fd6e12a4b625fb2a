"""Rules that run the focused test: red parent, green target, faults, hints, lone snapshots."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pi_course_kit import acceptance, faults, hints, snapshot
from pi_course_kit.checkpoint import Fault
from pi_course_kit.errors import CourseError
from pi_course_kit.results import RunResult, TestResult
from pi_course_kit.verify import sources
from pi_course_kit.verify.case import PATIENT, Case
from pi_course_kit.verify.rule import Finding, Rule, both, rebuilt, swap


def why_not_green(result: RunResult) -> str:
    """The first reason, short."""
    if result.error or result.sentence:
        return str(result.error or result.sentence)
    bad = [test for test in result.tests if test.outcome != "passed"]
    return "; ".join(f"{test.id}: {_short(test)}" for test in bad[:3]) or "no test ran"


def _short(test: TestResult) -> str:
    text = test.message.partition("\n")[0]
    return text if len(text) <= 120 else text[:119] + "…"


def parent(case: Case) -> Iterator[Finding]:
    where, result = case.name(case.toml), case.parent
    if case.chapter.mode == "observe":
        if result.verdict != "green":
            message = result.sentence or ", ".join(t.id for t in result.tests)
            yield Finding(f"an observed chapter starts green, this is {message}", where, "")
        return
    if result.verdict != "red":
        yield Finding(
            f"the untouched parent is {result.verdict}", where, "The tests must ask for new code."
        )
    passed = [test.id for test in result.tests if test.outcome == "passed"]
    passed = [name for name in passed if _asks_for_new_code(case, name)]
    if passed:
        yield Finding(
            f"green before a line is written: {', '.join(passed)}",
            case.name(case.test),
            "Let each test use what the chapter brings.",
        )
    if result.missing != case.chapter.first_red:
        shown = "; ".join(result.missing) or "nothing"
        yield Finding(
            f"check shows as missing: {shown}", where, "Make first_red equal to it, line by line."
        )


def _asks_for_new_code(case: Case, test: str) -> bool:
    """Whether a test reaches a teaching file; one that looks at given files alone may be green."""
    text = sources.with_helpers(sources.read(case.test), test.partition("[")[0])
    files = snapshot.snapshot_files(case.number)
    return not sources.reached(text, files).isdisjoint(case.chapter.files)


def target(case: Case) -> Iterator[Finding]:
    """The finished chapter is green, and so is every earlier test that it can touch."""
    if not case.target.green:
        yield Finding(
            f"the target is not green: {why_not_green(case.target)}",
            case.name(case.chapter.folder / "target"),
            "Correct the target or the test.",
        )
    touched = touched_tests(case)
    if touched:
        result = case.run_earlier(case.target_root, touched)
        if not result.green:
            yield Finding(
                f"earlier tests break: {why_not_green(result)}",
                case.name(case.chapter.folder / "target"),
                "A chapter keeps what earlier chapters promised.",
            )


def touched_tests(case: Case) -> list[Path]:
    """Earlier test files that reach a file which this chapter changes."""
    before, after = (snapshot.snapshot_files(n) for n in (case.number - 1, case.number))
    changed = {path for path, file in after.items() if before.get(path) != file}
    found: list[Path] = []
    for file in snapshot.test_files(case.number - 1).values():
        text = sources.read(file)
        if (sources.reached(text, before) | sources.reached(text, after)) & changed:
            found.append(file)
    return found


def declared_faults(case: Case) -> Iterator[Finding]:
    """Each fault on a copy of the target: exactly its tests, or the type checker, or nothing."""
    yield from case.each(lambda fault: list(_fault(case, fault)), case.chapter.faults)


def _fault(case: Case, fault: Fault) -> Iterator[Finding]:
    where = f"{case.name(case.toml)}, fault {fault.id}"
    root = case.target_copy(f"fault-{fault.id}")
    try:
        broken = faults.apply(fault, case.target_text(fault.file))
    except CourseError as error:
        yield Finding(str(error), where, "")
        return
    (root / fault.file).write_text(broken, encoding="utf-8", newline="\n")
    yield from _of_fault(case, fault, case.run(root, limits=PATIENT), where)


def _of_fault(case: Case, fault: Fault, result: RunResult, where: str) -> Iterator[Finding]:
    if result.error:
        yield Finding(result.error, where, "")
    red, declared = set(result.red_ids), set(fault.tests)
    if red - declared:
        yield Finding(
            f"it also turns red: {', '.join(sorted(red - declared))}", where, "List them."
        )
    if declared - red:
        yield Finding(
            f"it leaves green: {', '.join(sorted(declared - red))}",
            where,
            "Sharpen the test, or take it out of the fault's list.",
        )
    if fault.expect == "types":
        if not case.course.types.result().get(f"{case.chapter.nn} {fault.id}"):
            yield Finding("the type checker does not notice it", where, "Choose another edit.")


def local_code(case: Case) -> Iterator[Finding]:
    """Level 4, lab by lab, makes each lab green and at the end all."""
    folder = case.practice_copy("hints")
    asked: list[tuple[Path, tuple[str, ...] | None, str, str]] = []
    for lab in case.chapter.labs:
        hints.write_hint(folder, case.chapter, lab, 4)
        asked.append(
            (
                case.copy(sources.tree(folder), f"hints-{lab.id}"),
                lab.tests,
                f"lab {lab.id}, hint level 4",
                "not green after its hint",
            )
        )
    asked.append((folder, None, "level 4", "all hints do not make it green"))
    folder = case.practice_copy("signatures")
    for level in (2, 4):
        for lab in case.chapter.labs:
            hints.write_hint(folder, case.chapter, lab, level)
    problem = "level 4 over the signatures of level 2 is not green"
    asked.append((folder, None, "hint level 4", problem))

    def ask(one: tuple[Path, tuple[str, ...] | None, str, str]) -> list[Finding]:
        root, tests, where, problem = one
        result = case.run(root, tests)
        do = "List what the lab's tests use under its symbols, or in an earlier lab."
        what = f"{problem}: {why_not_green(result)}"
        return [] if result.green else [Finding(what, where, do if tests else "")]

    yield from case.each(ask, asked)


# Each module is the first that its process imports, as in a learner's terminal.
_ALONE = """
import importlib, sys
for name in sys.argv[1:]:
    for there in [n for n in sys.modules if n.split(".")[0] == "pi_course"]:
        del sys.modules[there]
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        print(f"{name}: {type(error).__name__}: {error}")
    else:
        file = module.__file__ or ""
        if not file.startswith(sys.path[0] + "/"):
            print(f"{name}: it came from {file}")
"""


def alone(case: Case) -> Iterator[Finding]:
    """Every module of the snapshot imports first in a fresh interpreter, with no warning."""
    files = snapshot.snapshot_files(case.number)
    modules = [sources.module_name(path) for path in files if path.endswith(".py")]
    program = f"import sys; sys.path.insert(0, {str(case.target_root)!r})\n{_ALONE}"
    # Each module is compiled once, and not again for each that imports it.
    cache = f"pycache_prefix={case.folder('bytecode')}"
    done = subprocess.run(
        [sys.executable, "-P", "-X", cache, "-W", "error", "-c", program, *modules],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        cwd=case.scratch,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
    )
    lines = [line for line in (done.stdout + done.stderr).split("\n") if line]
    for line in lines:
        yield Finding(
            line, f"snapshot {case.chapter.nn}", "Import only what chapters up to here have."
        )


def types(case: Case) -> Iterator[Finding]:
    for error in case.course.types.result().get(case.chapter.nn, []):
        yield Finding(str(error), f"snapshot {case.chapter.nn}", "")


def evidence(case: Case) -> Iterator[Finding]:
    """The acceptance questions' evidence can be computed on the finished chapter."""
    try:
        acceptance.evidence(case.chapter)
    except (CourseError, subprocess.TimeoutExpired) as error:
        yield Finding(str(error), case.name(case.toml), "")


GREET = "checkpoints/02-bye/target/pi_course/greet.py"
HELLO_TOML = "checkpoints/01-hello/checkpoint.toml"
BYE_TOML = "checkpoints/02-bye/checkpoint.toml"
WORDS = "checkpoints/02-bye/target/pi_course/words.py"
NAME, TWICE = ('name = "words"\ntests = ["test_bye_name"]', 'tests = ["test_bye_twice"]')
ASKED = 'ask = "Which word, 0?"\nanswer = "That one."\nshow = "'

RULES = (
    Rule(
        "parent",
        "The untouched parent is red, test by test, and lacks exactly what first_red says.",
        parent,
        swap(BYE_TOML, "greet.py is still the starter", "greet.py is missing"),
        needs=("files", "pins", "tests", "fresh", "chain"),
        apart=True,
    ),
    Rule(
        "target",
        "The target is green, and so are the earlier tests that its changes can reach.",
        target,
        both(
            swap(GREET, "hello {name}", "Hello {name}"),
            swap(BYE_TOML, "given = [", 'given = ["pi_course/greet.py:hello", '),
        ),
        needs=("files", "pins", "tests"),
    ),
    Rule(
        "faults",
        "Each fault turns exactly its tests red, or the type checker, or nothing.",
        declared_faults,
        swap(BYE_TOML, '        return ""', "        return str(FAREWELL)"),
        needs=("files", "pins", "tests", "target"),
        apart=True,
    ),
    Rule(
        "code",
        "Level-4 hints, lab by lab, make each lab green and at the end all.",
        local_code,
        both(
            swap(BYE_TOML, TWICE, 'tests = ["test_bye_name" ]'),
            swap(BYE_TOML, NAME, f'name = "words"\n{TWICE}'),
        ),
        needs=("files", "pins", "target", "owned"),
        applies=rebuilt,
        apart=True,
    ),
    Rule(
        "alone",
        "Each module of the snapshot imports by itself in a fresh interpreter.",
        alone,
        swap(WORDS, "FAREWELL =", 'import warnings\n\nwarnings.warn("old")\nFAREWELL ='),
        needs=("files",),
        apart=True,
    ),
    Rule(
        "types",
        "The type checker, strict, finds nothing in the snapshot.",
        types,
        swap(WORDS, 'FAREWELL = "bye"', 'FAREWELL = "bye"\nLENGTH: str = len(FAREWELL)'),
        needs=("files",),
        apart=True,
    ),
    Rule(
        "evidence",
        "The evidence for the acceptance questions can be computed.",
        evidence,
        swap(HELLO_TOML, f"{ASKED}hello(", f"{ASKED}hullo("),
        needs=("files",),
        apart=True,
    ),
)
