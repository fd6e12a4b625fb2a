"""What a chapter's checkpoint says, laid out for a cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi_course_kit import snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.notebook.shown import (
    Block,
    Code,
    Facts,
    Fold,
    Heading,
    Items,
    Pre,
    Shown,
    Table,
    Text,
    as_html,
    as_text,
    show,
)

if TYPE_CHECKING:  # the first cell of a notebook needs none of what these import
    from pi_course_kit.faults import FaultResult
    from pi_course_kit.results import TestResult
    from pi_course_kit.typecheck import Diagnostic

IN_FULL = 3  # red tests of a fault that are shown unfolded
SHORT = 12  # characters of a digest; as `pi-course checkpoint` prints it


def name(checkpoint: Checkpoint) -> str:
    return f"Chapter {checkpoint.nn} · {checkpoint.title}"


def opening(checkpoint: Checkpoint, source: str) -> Shown:
    """What `ch` shows of itself: the goals, and where pi_course comes from."""
    return show(
        Heading(name(checkpoint)),
        Text("You will be able to:"),
        Items(checkpoint.goals),
        Text(f"`pi_course` in this kernel is {source}."),
    )


def card(checkpoint: Checkpoint, state: str) -> Shown:
    number = checkpoint.number
    before = f"the package after chapter {number - 1:02d}" if number else "nothing yet"
    given = tuple(file for file in checkpoint.given if ":" not in file)  # the whole files
    facts = [
        ("you", "observe and predict" if checkpoint.mode == "observe" else "rebuild it"),
        ("takes", f"about {checkpoint.minutes} minutes, level {checkpoint.level}"),
        ("needs", ", ".join(f"chapter {nn}" for nn in checkpoint.requires) or "nothing"),
        ("parent", f"`{snapshot.parent_digest(number)[:SHORT]}`, {before}"),
        (
            "target",
            f"`{snapshot.target_digest(number)[:SHORT]}`, the package after this chapter",
        ),
        ("files" if checkpoint.mode == "observe" else "you write", _names(checkpoint.files)),
        *([("given", _names(given))] if given else []),
        ("focused test", f"`tests/{checkpoint.test_name}`, {_tests(len(checkpoint.tests))}"),
        *([("first red", "\n".join(checkpoint.first_red))] if checkpoint.first_red else []),
        *([("so far", state)] if state != "new" else []),
    ]
    labs = [
        (lab.id, lab.title, str(len(lab.tests)), Code(f"pi-course check --lab {lab.id}"))
        for lab in checkpoint.labs
    ]
    return show(
        Heading(f"Checkpoint {checkpoint.nn} · {checkpoint.title}"),
        Text(checkpoint.idea),
        Facts(facts),
        Table(("lab", "what you do", "tests", "command"), labs),
        Text("In a terminal (menu File, New, Terminal):"),
        Pre(f"pi-course practice {checkpoint.nn}"),
    )


def lab(checkpoint: Checkpoint, name: str) -> Shown:
    """What to write, in which order, and the commands that say how far it is."""
    found = checkpoint.lab(name)
    files: dict[str, list[str]] = {}
    for symbol in found.symbols:
        file, _, label = symbol.partition(":")
        files.setdefault(file, []).append(f"`{label}`")
    steps = [(step.name, str(len(step.tests))) for step in found.steps]
    return show(
        Heading(f"Lab {found.id} · {found.title}"),
        *(Text(f"In `{file}`: {', '.join(labels)}.") for file, labels in files.items()),
        Table(("step", "tests"), steps),
        Text(f"What you will see: {found.expect}"),
        Text("In your practice folder; the second command opens one rung of help at a time:"),
        Pre(f"pi-course check --lab {found.id}\npi-course hint {found.id}"),
    )


def _names(files: tuple[str, ...]) -> str:
    return "\n".join(f"`{file}`" for file in files)


def terms(checkpoint: Checkpoint, earlier: Sequence[Checkpoint]) -> Shown:
    """The chapter's own words; under them, folded, all words that a reader has met so far."""
    own = Table(("term", "meaning"), [(term.term, term.text) for term in checkpoint.terms])
    if not earlier:
        return show(own)
    known = [(t.term, t.text, c.nn) for c in (*earlier, checkpoint) for t in c.terms]
    rows = sorted(known, key=lambda row: row[0].casefold())
    return show(
        own,
        Fold(
            f"All words up to chapter {checkpoint.nn}", [Table(("term", "meaning", "from"), rows)]
        ),
    )


def real_pi(checkpoint: Checkpoint) -> Shown:
    versions = dict.fromkeys(fact.version for fact in checkpoint.pi)
    blocks: list[Block] = []
    for version in versions:
        blocks.append(Text(f"Pi {version}:"))
        blocks.append(Items([fact.text for fact in checkpoint.pi if fact.version == version]))
    return show(*blocks)


def following(checkpoint: Checkpoint, after: Checkpoint | None) -> Shown:
    if after is None:
        return show(Text(f"Chapter {checkpoint.nn} is the last one of this edition."))
    return show(
        Heading(f"Next: chapter {after.nn} · {after.title}"),
        Text(after.idea),
        Facts(
            [
                ("takes", f"about {after.minutes} minutes, level {after.level}"),
                ("open", f"`{after.id}.ipynb` in this folder, or `pi-course lab {after.nn}`"),
            ]
        ),
    )


def fault(result: FaultResult) -> Shown:
    """The edit, what went red with expected beside got, and the green run after it."""
    found = result.fault
    blocks: list[Block] = [
        Heading(f"Fault {found.id}: {found.title}"),
        Text(f"On a copy of `{found.file}`:"),
        Pre("\n".join(line.rstrip() for line in result.diff).rstrip()),
        Text(f"With the fault, {_count(len(result.red), len(result.broken), 'red')}."),
    ]
    blocks += [Facts(_failure(test)) for test in result.red[:IN_FULL]]
    if found.expect == "types":
        found_types = telling(result.types)
        blocks.append(Text(f"The type checker finds {_errors(len(found_types))}"))
        blocks.append(Items([str(error) for error in found_types]))
    if found.expect == "nothing":
        blocks.append(Text(f"Nothing notices. {found.reason}"))
    if found.shows:
        blocks.append(Text(found.shows))
    green = sum(test.outcome == "passed" for test in result.restored)
    blocks.append(Text(f"Taken out again, {_count(green, len(result.restored), 'green')}."))
    if not result.holds:
        blocks.append(Text("This is not what the chapter declares: report it as a bug."))
    if more := result.red[IN_FULL:]:
        rows = [(f"`{test.id}`", *_values(test)) for test in more]
        table = Table(("test", "expected", "got"), rows)
        blocks.append(Fold(f"Also red: {len(more)}", [table]))
    return show(*blocks)


def questions(checkpoint: Checkpoint, evidence: Sequence[str]) -> Shown:
    """Questions first. HTML folds each answer; the text form puts all answers after them."""
    top = [
        Text("Answer each question in your own words before you open its answer."),
        Text("When you can answer all of them, and your practice folder is green:"),
        Pre(f"pi-course accept {checkpoint.nn}"),
    ]
    asked = checkpoint.questions
    answers = [
        [Text(question.answer), Facts([("evidence", Code(question.show)), ("gives", Code(value))])]
        for question, value in zip(asked, evidence, strict=True)
    ]
    folds = [
        Fold(f"{number}. {question.ask}", answer)
        for number, (question, answer) in enumerate(zip(asked, answers, strict=True), 1)
    ]
    listed = Items([question.ask for question in asked], numbered=True)
    numbered = [Fold(f"Answer {number}", answer) for number, answer in enumerate(answers, 1)]
    return Shown(as_text([*top, listed, *numbered]), as_html([*top, *folds]))


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


def _count(some: int, of: int, colour: str) -> str:
    if not some:
        return f"none of {_tests(of)} is {colour}"
    return f"{some} of {_tests(of)} {'is' if some == 1 else 'are'} {colour}"


def telling(errors: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The errors without those that only follow from another one of the same line."""
    causes = [error for error in errors if not error.rule.startswith("reportUnknown")]
    lines = {(error.file, error.line) for error in causes}
    return [error for error in errors if error in causes or (error.file, error.line) not in lines]


def _errors(count: int) -> str:
    return "nothing." if count == 0 else f"{count} error{'' if count == 1 else 's'}:"


def _values(test: TestResult) -> tuple[str, str]:
    if test.expected is None or test.got is None:
        return "", test.message
    return Code(test.expected), Code(test.got)


def _failure(test: TestResult) -> list[tuple[str, str]]:
    facts = [("red", f"`{test.id}`"), ("it says", test.title)]
    for label, value in (("called", test.called), ("expected", test.expected), ("got", test.got)):
        if value:
            facts.append((label, Code(value)))
    if not test.expected and test.message:
        facts.append(("because", test.message))
    return facts
