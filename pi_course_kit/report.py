"""A check as text: 80 columns, words beside every colour, the first failing lab in full."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pi_course_kit import gaps
from pi_course_kit.checkpoint import Checkpoint, Lab
from pi_course_kit.output import WIDTH
from pi_course_kit.results import CheckResult, TestResult
from pi_course_kit.values import compare, cut, cut_left, width

NAME = 50  # columns of a lab's title
FULL = 3  # failing tests of the first failing lab that are shown in full
LINES = 6  # further ones, a line each
LINES_OF_OTHER = 2  # of a lab after the first failing one
PRINTED = 20  # last lines of what the learner's code printed
# What pdb prints where it stops: the place, the line, and a prompt for which there is no input.
COLOURS = {"green": "green", "red": "red", "error": "yellow"}


def text(
    result: CheckResult,
    chapter: Checkpoint,
    folder: Path,
    *,
    colour: bool = False,
    earlier: Sequence[TestResult] = (),
    types: Sequence[object] | None = None,
) -> str:
    """The whole report of one check.

    `earlier` are the results of the labs before the one that was asked for; `types` are the type
    errors, None when nobody asked for them.
    """
    paint = _Paint(colour)
    parts = [_head(result, chapter, types, paint), "\n".join(_tested(result, folder))]
    if result.sentence:
        parts.append("\n".join(paint(line, COLOURS["red"]) for line in _wrap(result.sentence)))
    lacks = gaps.of_lab(result.missing, chapter, result.lab)
    if lacks and result.verdict != "green":
        parts.append("\n".join(["missing", *_lacks(lacks, chapter)]))
    if result.verdict != "error":
        parts.append(
            labs(
                chapter,
                result.tests,
                lab=result.lab,
                earlier=earlier,
                colour=colour,
                said=result.sentence,
            )
        )
    if red := next((test.lab for test in result.tests if test.outcome != "passed"), None):
        lacks = gaps.of_lab(result.missing, chapter, red)
        parts.append("\n".join(field("next", _to_do(red, lacks))))
    if result.printed.strip():
        parts.append("\n".join(_printed(result.printed)))
    parts.extend("\n".join(_wrap(f"Note: {note}")) for note in result.notes)
    if types is not None:
        parts.append("\n".join(_types(types, paint)))
    if result.verdict == "green":
        unwritten = [line for line in lacks if result.lab and gaps.is_public(line)]
        if unwritten:
            head = f"still to write in lab {result.lab}, though its tests don't ask for it"
            parts.append("\n".join([head, *_lacks(unwritten, chapter)]))
        parts.append(_next(chapter, result.lab, types))
    return "\n\n".join(part for part in parts if part)


def labs(
    chapter: Checkpoint,
    tests: Sequence[TestResult],
    *,
    lab: str | None = None,
    earlier: Sequence[TestResult] = (),
    colour: bool = False,
    said: str | None = None,
    owner: str = "",
) -> str:
    """The labs with their counts, and the failing tests of the first lab that fails.

    `earlier` are results of the labs before `lab`. `said` is a sentence that stands above already.
    `owner` says whose file a place is in, if it is not the learner's.
    """
    paint = _Paint(colour)
    lines: list[str] = []
    passed, total = _passed(earlier), len(earlier)
    shown = [entry for entry in chapter.labs if lab in (None, entry.id)]
    for entry in shown:
        mine = [test for test in tests if test.lab == entry.id]
        passed += _passed(mine)
        total += len(mine)
        so_far = "" if lab and not earlier else f"{passed}/{total} so far"
        lines.extend(_lab(entry, mine, so_far, paint))
        lines.extend(_steps(entry, mine, paint))
    extra = [test for test in tests if not test.lab]
    for test in extra:
        lines.append(f"  {cut(test.id, 60)}  {_word(test, paint)}")
    lines.extend(
        _failures([test for test in tests if test.outcome != "passed"], said, owner, paint)
    )
    return "\n".join(lines)


class _Paint:
    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, text: str, colour: str) -> str:
        return click.style(text, fg=colour) if self._colour else text

    def bold(self, text: str) -> str:
        return click.style(text, bold=True) if self._colour else text


def _head(
    result: CheckResult, chapter: Checkpoint, types: Sequence[object] | None, paint: _Paint
) -> str:
    words = [(result.verdict, result.verdict)]
    if types is not None and result.verdict != "error":
        verdict = "red" if types else "green"
        words = [(f"tests {result.verdict}", result.verdict), (f"types {verdict}", verdict)]
    plain = ", ".join(word for word, _ in words)
    title = cut(f"{chapter.nn} · {chapter.title}", WIDTH - len(plain) - 2)
    gap = " " * (WIDTH - width(title) - len(plain))
    painted = ", ".join(paint(word, COLOURS[verdict]) for word, verdict in words)
    return f"{paint.bold(title)}{gap}{painted}"


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
    word, colour = "red", "red"
    if tests and _passed(tests) == len(tests):
        word, colour = "green", "green"
    elif tests and all(test.outcome == "missing" for test in tests):
        word, colour = "not run", "yellow"
    return f"{_passed(tests):>4}/{len(tests):<3}  {paint(word, colour)}" + " " * (5 - len(word))


def _passed(tests: Sequence[TestResult]) -> int:
    return sum(test.outcome == "passed" for test in tests)


def _word(test: TestResult, paint: _Paint) -> str:
    return paint("passed", "green") if test.outcome == "passed" else paint(test.outcome, "red")


def _failures(
    tests: Sequence[TestResult], said: str | None, owner: str, paint: _Paint
) -> Iterator[str]:
    """Three of the first lab in full; the rest a line for each reason."""
    told: list[str] = []
    rest: list[TestResult] = []
    same: Counter[str] = Counter()
    for test in tests:
        reason = _reason(test)
        if reason in told:
            same[reason] += 1
        elif test.lab == tests[0].lab and test.outcome != "missing" and len(told) < FULL:
            told.append(reason)
            yield ""
            yield from _full(test, said, owner, paint)
        else:
            rest.append(test)
    if rest or same:
        yield ""
    for reason, count in same.items():
        yield f"  {paint('red', 'red')}  {cut(f'{count} more: {_first_line(reason)}', 73)}"
    for lab in dict.fromkeys(test.lab for test in rest):
        yield from _rest(
            [test for test in rest if test.lab == lab], lab, lab == tests[0].lab, paint
        )


def _rest(tests: Sequence[TestResult], lab: str, first: bool, paint: _Paint) -> Iterator[str]:
    start = "red" if first else f"lab {lab}".rstrip()
    pad = " " * (len(start) + 4)
    groups: dict[str, list[TestResult]] = {}
    for test in tests:
        groups.setdefault(_reason(test), []).append(test)
    lines = LINES if first else LINES_OF_OTHER
    for reason, group in list(groups.items())[:lines]:
        count = len(group)
        line = (
            f"{group[0].id}: {_first_line(group[0].message)}"
            if count == 1
            else f"{count} tests: {_first_line(reason)}"
        )
        head, *more = textwrap.wrap(line, WIDTH - len(pad), max_lines=2, placeholder=" …")
        yield f"  {paint(start, 'red')}  {head}"
        yield from (pad + line for line in more)
    if left := sum(len(group) for group in list(groups.values())[lines:]):
        yield f"  and {left} more of " + ("this lab" if first else f"lab {lab}")


def _reason(test: TestResult) -> str:
    """Two tests of one reason would say the same; a value that differs is a reason of its own."""
    return test.id if test.got is not None and test.message.startswith("assert ") else test.message


def _full(test: TestResult, said: str | None, owner: str, paint: _Paint) -> Iterator[str]:
    for line in _wrap(test.title):
        yield paint.bold(line)
    yield f"  {cut(test.id, 78)}"
    if test.called:
        yield from field("called", test.called)
    pair = compare(test.expected, test.got, WIDTH - 12)
    for name, lines in (("expected", pair[0]), ("got", pair[1])):
        for index, line in enumerate(lines):
            yield f"  {name if not index else '':<10}{line}"
    compared = test.got is not None and test.message.startswith("assert ")
    if not compared and test.message != said:
        yield from field("because", test.message or test.outcome)
    if test.where:
        yield from field("where", f"{test.where} {owner}".rstrip())
    if test.code:
        yield f"              {cut(test.code, 66)}"


def field(name: str, value: str, *, hyphens: bool = True) -> Iterator[str]:
    """A named value; `hyphens` says whether a long line may end at one."""
    for line in value.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        parts = textwrap.wrap(line, WIDTH - 12, subsequent_indent=indent, break_on_hyphens=hyphens)
        for part in parts or [""]:
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


def _lacks(lines: Sequence[str], chapter: Checkpoint) -> list[str]:
    return [f"  {cut(line, WIDTH - 2)}" for line in gaps.text(lines, chapter, WIDTH - 2)]


def _to_do(lab: str, lacks: Sequence[str]) -> str:
    """The next step towards a lab: what is not there can't be wrong yet."""
    hint = f"pi-course hint {lab}"
    lacks = [line for line in lacks if gaps.is_public(line)]
    if broken := next((line for line in lacks if " is not valid Python" in line), None):
        return f"correct {broken.partition(' is not ')[0]}"
    if lacks:
        return f"write what lab {lab} lacks: LEARNING.md says what\nstuck? {hint}"
    return hint


def _types(types: Sequence[object], paint: _Paint) -> Iterator[str]:
    if not types:
        yield f"types     no error ({paint('green', 'green')})"
        return
    count = f"{len(types)} error" + ("s" if len(types) > 1 else "")
    yield f"types     {count} ({paint('red', 'red')})"
    for item in types:
        yield from textwrap.wrap(
            str(item), WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )


def _next(chapter: Checkpoint, lab: str | None, types: Sequence[object] | None) -> str:
    first = "correct the types above; then " if types else ""
    if lab is None:
        return f"next: {first}pi-course accept {chapter.nn}"
    return f"Lab {lab} is green. The whole chapter: {first}pi-course check"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH) or [""]
