"""A check as text: 80 columns, words beside every colour, the first failing lab in full."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pi_course_kit.checkpoint import Checkpoint, Lab
from pi_course_kit.results import CheckResult, TestResult
from pi_course_kit.values import compare, cut, cut_left, width

WIDTH = 80
NAME = 50  # columns of a lab's title
FULL = 3  # failing tests of the first failing lab that are shown in full
LINES = 6  # further ones, a line each
PRINTED = 20  # last lines of what the learner's code printed
# What pdb prints where it stops: the place, the line, and a prompt for which there is no input.
DEBUGGER = re.compile(r"^> .*\(\d+\).*\n-> .*\n(\(Pdb\) *\n?)*", re.MULTILINE)
COLOURS = {"green": "green", "red": "red", "error": "yellow"}


def text(result: CheckResult, chapter: Checkpoint, folder: Path, *, colour: bool = False) -> str:
    """The whole report of one check."""
    paint = _Paint(colour)
    title = cut(f"{chapter.nn} · {chapter.title}", WIDTH - 8)
    gap = " " * (WIDTH - width(title) - width(result.verdict))
    parts = [f"{paint.bold(title)}{gap}{paint(result.verdict, COLOURS[result.verdict])}"]
    parts.append("\n".join(_tested(result, folder)))
    if result.sentence:
        parts.append("\n".join(paint(line, COLOURS["red"]) for line in _wrap(result.sentence)))
    if result.missing and result.verdict != "green":
        parts.append("\n".join(["missing", *(f"  {cut(line, 78)}" for line in result.missing)]))
    if result.verdict != "error":
        parts.append(
            labs(chapter, result.tests, lab=result.lab, colour=colour, said=result.sentence)
        )
    if red := next((test.lab for test in result.tests if test.outcome != "passed"), None):
        parts.append(f"  next      pi-course hint {red}")
    printed = result.printed
    if any(test.type == "BdbQuit" for test in result.tests):
        printed = DEBUGGER.sub("", printed)
    if printed.strip():
        parts.append("\n".join(_printed(printed)))
    parts.extend("\n".join(_wrap(f"Note: {note}")) for note in result.notes)
    if result.verdict == "green":
        parts.append(_next(chapter, result.lab))
    return "\n\n".join(part for part in parts if part)


def labs(
    chapter: Checkpoint,
    tests: Sequence[TestResult],
    *,
    lab: str | None = None,
    colour: bool = False,
    said: str | None = None,
) -> str:
    """The labs with their counts, and the failing tests of the first lab that fails.

    `said` is a sentence that stands above already.
    """
    paint = _Paint(colour)
    lines: list[str] = []
    passed = total = 0
    shown = [entry for entry in chapter.labs if lab in (None, entry.id)]
    for entry in shown:
        mine = [test for test in tests if test.lab == entry.id]
        passed += _passed(mine)
        total += len(mine)
        lines.extend(_lab(entry, mine, "" if lab else f"{passed}/{total} so far", paint))
        lines.extend(_steps(entry, mine, paint))
    extra = [test for test in tests if not test.lab]
    for test in extra:
        lines.append(f"  {cut(test.id, 60)}  {_word(test, paint)}")
    first = next((test.lab for test in tests if test.outcome != "passed"), None)
    if first is not None:
        failing = [test for test in tests if test.lab == first and test.outcome != "passed"]
        lines.extend(_failures(failing, said, paint))
    return "\n".join(lines)


class _Paint:
    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, text: str, colour: str) -> str:
        return click.style(text, fg=colour) if self._colour else text

    def bold(self, text: str) -> str:
        return click.style(text, bold=True) if self._colour else text


def _tested(result: CheckResult, folder: Path) -> Iterator[str]:
    yield "tested in " + cut_left(str(folder), WIDTH - 10)
    files = [file for file in result.tested if not file.path.endswith("__init__.py")]
    for file in files:
        yield f"  {cut(file.path, 66):<66}  {file.sha256[:8]}"
    if not files:
        yield "  no file of yours ran"


def _lab(lab: Lab, tests: Sequence[TestResult], so_far: str, paint: _Paint) -> Iterator[str]:
    head, *more = textwrap.wrap(
        f"lab {lab.id}  {lab.title}", NAME - 1, subsequent_indent=" " * len(f"lab {lab.id}  ")
    )
    yield f"{paint.bold(head)}{' ' * (NAME - width(head))}{_count(tests, paint)}  {so_far}".rstrip()
    for line in more:
        yield paint.bold(line)


def _steps(lab: Lab, tests: Sequence[TestResult], paint: _Paint) -> Iterator[str]:
    for step in lab.steps if len(lab.steps) > 1 else ():
        name = cut(f"  {step.name}", NAME)
        mine = [test for test in tests if test.id in step.tests]
        yield f"{name}{' ' * (NAME - width(name))}{_count(mine, paint)}".rstrip()


def _count(tests: Sequence[TestResult], paint: _Paint) -> str:
    word = "green" if tests and _passed(tests) == len(tests) else "red"
    return f"{_passed(tests):>4}/{len(tests):<3}  {paint(word, word)}" + " " * (5 - len(word))


def _passed(tests: Sequence[TestResult]) -> int:
    return sum(test.outcome == "passed" for test in tests)


def _word(test: TestResult, paint: _Paint) -> str:
    return paint("passed", "green") if test.outcome == "passed" else paint(test.outcome, "red")


def _failures(tests: Sequence[TestResult], said: str | None, paint: _Paint) -> Iterator[str]:
    """Three in full, those that would say the same left out; the rest a line each."""
    told: set[str] = set()
    rest: list[TestResult] = []
    same = 0
    for test in tests:
        fact = test.id if test.got is not None else test.message
        if test.outcome != "missing" and fact not in told and len(told) < FULL:
            told.add(fact)
            yield ""
            yield from _full(test, said, paint)
        elif fact in told:
            same += 1
        else:
            rest.append(test)
    if rest or same:
        yield ""
    if same:
        tests_say = "test of this lab says" if same == 1 else "tests of this lab say"
        yield f"  {paint('red', 'red')}  {same} more {tests_say} the same"
    for test in rest[:LINES]:
        yield f"  {paint('red', 'red')}  {cut(f'{test.id}: {_first_line(test.message)}', 73)}"
    if len(rest) > LINES:
        yield f"  and {len(rest) - LINES} more of this lab"


def _full(test: TestResult, said: str | None, paint: _Paint) -> Iterator[str]:
    for line in _wrap(test.title):
        yield paint.bold(line)
    yield f"  {cut(test.id, 78)}"
    if test.called:
        yield from _field("called", test.called)
    pair = compare(test.expected, test.got, WIDTH - 12)
    for name, lines in (("expected", pair[0]), ("got", pair[1])):
        for index, line in enumerate(lines):
            yield f"  {name if not index else '':<10}{line}"
    compared = test.got is not None and test.message.startswith("assert ")
    if not compared and test.message != said:
        yield from _field("because", test.message or test.outcome)
    if test.where:
        yield from _field("where", test.where)
    if test.code:
        yield f"              {cut(test.code, 66)}"


def _field(name: str, value: str) -> Iterator[str]:
    for line in value.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        for part in textwrap.wrap(line, WIDTH - 12, subsequent_indent=indent) or [""]:
            yield f"  {name:<10}{part}".rstrip()
            name = ""


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _printed(printed: str) -> Iterator[str]:
    lines = printed.rstrip("\n").split("\n")
    more = f" (the last {PRINTED} lines of {len(lines)})" if len(lines) > PRINTED else ""
    yield f"your code printed{more}"
    for line in lines[-PRINTED:]:
        yield f"  | {cut(line, 76)}"


def _next(chapter: Checkpoint, lab: str | None) -> str:
    if lab is None:
        return f"next: pi-course accept {chapter.nn}"
    return f"Lab {lab} is green. The whole chapter: pi-course check"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH) or [""]
