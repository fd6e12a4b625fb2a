"""Null students: people who hand in nothing. Each must be red, and be told what is missing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

from pi_course_kit import hints, snapshot, symbols
from pi_course_kit.results import RunResult
from pi_course_kit.verify import sources
from pi_course_kit.verify.case import HASTY, Case
from pi_course_kit.verify.rule import Finding, Rule, put, rebuilt, swap
from pi_course_kit.verify.runs import why_not_green

Student = Callable[[Case, str], str]


def empty(case: Case, file: str) -> str:
    return ""


def passing(case: Case, file: str) -> str:
    """Every body that a lab asks for is `pass`, those of classes too."""
    return _replaced(case, file, "pass", classes=True)


def returning_none(case: Case, file: str) -> str:
    """Fields and signatures are right; every function returns None."""
    return _replaced(case, file, "return None", classes=False)


def commented_out(case: Case, file: str) -> str:
    lines = case.target_text(file).split("\n")
    return "\n".join(f"# {line}" if line else line for line in lines)


def syntax_error(case: Case, file: str) -> str:
    """All of it right, and one line that is not Python."""
    return case.target_text(file) + "\n\ndef unfinished(:\n"


# Whoever lays down what hint level 2 shows has nothing yet.
SIGNATURES = "signatures of hint level 2"
STUDENTS: dict[str, Student] = {
    "empty files": empty,
    "bodies pass": passing,
    "return None": returning_none,
    "all commented out": commented_out,
    "syntax error": syntax_error,
}


def _replaced(case: Case, file: str, statement: str, *, classes: bool) -> str:
    """The target with the bodies of the labs' symbols replaced; what was there before stays."""
    text = case.target_text(file)
    owners = set(symbols.owners(case.chapter, file))
    lines = text.split("\n")
    for first, last, indent in reversed(list(_bodies(ast.parse(text), owners, classes))):
        lines[first:last] = [" " * indent + statement]
    return "\n".join(lines)


def _bodies(module: ast.Module, owners: set[str], classes: bool) -> Iterator[tuple[int, int, int]]:
    """Line range and indentation of each body to replace, outermost only."""
    for node in module.body:
        if not isinstance(node, sources.Function | ast.ClassDef):
            continue
        if isinstance(node, ast.ClassDef) and not (classes and node.name in owners):
            for child in node.body:
                named = {node.name, f"{node.name}.{getattr(child, 'name', '')}"}
                if isinstance(child, sources.Function) and named & owners:
                    yield from _range(child, child.body)
        elif node.name in owners:
            yield from _range(node, node.body)


def _range(node: ast.stmt, body: list[ast.stmt]) -> Iterator[tuple[int, int, int]]:
    if body[0].lineno > node.lineno and body[-1].end_lineno is not None:
        first = min([body[0].lineno] + [d.lineno for d in getattr(body[0], "decorator_list", [])])
        yield first - 1, body[-1].end_lineno, body[0].col_offset


def null_students(case: Case) -> Iterator[Finding]:
    earlier = untouched_tests(case)
    students = [*STUDENTS, SIGNATURES]
    yield from case.each(lambda name: list(_attempt(case, name, earlier)), students)


def _attempt(case: Case, name: str, earlier: list[Path]) -> Iterator[Finding]:
    folder, where = case.practice_copy("student"), f"student: {name}"
    if name == SIGNATURES:
        for lab in case.chapter.labs:
            hints.write_hint(folder, case.chapter, lab, 2)
    else:
        for file in case.chapter.files:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(STUDENTS[name](case, file), encoding="utf-8", newline="\n")
    # One failure that tells something is enough; where the first ones do not, the rest is run.
    found = list(_judge(case, folder, case.run(folder, limits=HASTY), where))
    yield from found and _judge(case, folder, case.run(folder), where)
    if earlier and name != SIGNATURES:
        result = case.run_earlier(folder, earlier)
        if not result.green:
            yield Finding(f"earlier tests break: {why_not_green(result)}", where, "")


def _judge(case: Case, folder: Path, result: RunResult, where: str) -> Iterator[Finding]:
    test = case.name(case.test)
    if result.error is not None:
        yield Finding(f"{result.error}", f"{test}, {where}", "A learner's file must end red.")
    elif result.green:
        yield Finding("green with nothing done", f"{test}, {where}", "Sharpen the tests.")
    elif not symbols.missing(case.chapter, folder) and not any(
        test.type == "AssertionError" for test in result.tests
    ):
        yield Finding(
            f"no failure is an assertion or names what is missing: {why_not_green(result)}",
            f"{test}, {where}",
            "Assert on the value before the test uses it.",
        )


def untouched_tests(case: Case) -> list[Path]:
    """Earlier tests that reach something new in the folder but none of the teaching files."""
    before = snapshot.snapshot_files(case.number - 1)
    there = {p: f for p, f in snapshot.practice_files(case.number).items() if p in before}
    changed = {path for path, file in there.items() if file != before[path]}
    found: list[Path] = []
    for file in snapshot.test_files(case.number - 1).values():
        reached = sources.reached(sources.read(file), before)
        if reached & changed and not reached & set(case.chapter.files):
            found.append(file)
    return found


def _weak(course: Path) -> None:
    """Tests that ask only whether the names are there."""
    test = """\
        def test_hello_name() -> None:
            '''There is something to call.'''
            from pi_course.greet import hello

            assert callable(hello)


        def test_hello_nobody() -> None:
            '''There is an error.'''
            from pi_course.greet import NamelessError

            assert NamelessError.__name__ == "NamelessError"


        def test_greet_all() -> None:
            '''There is something to call.'''
            from pi_course.greet import greet_all

            assert callable(greet_all)
        """
    hello = "checkpoints/01-hello"
    put(f"{hello}/parent/tests/test_01_hello.py", dedent(test))(course)
    swap(
        f"{hello}/checkpoint.toml",
        'expect = "tests"\ntests = ["test_hello_name", "test_greet_all"]',
        'expect = "nothing"\nreason = "No test asks."',
    )(course)


RULES = (
    Rule(
        "students",
        "Whoever hands in nothing is red, with an assertion or the name of what is missing.",
        null_students,
        _weak,
        needs=("files", "pins", "tests", "fresh", "target"),
        applies=rebuilt,
        apart=True,
    ),
)
