"""The chapter's texts as passages, and rules on what they quote: commands and paths."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from pi_course_kit import checkpoint, practice, snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.errors import CourseError
from pi_course_kit.verify import sources
from pi_course_kit.verify.case import Case
from pi_course_kit.verify.rule import Finding, Rule, swap


@dataclass(frozen=True, slots=True)
class Passage:
    where: str
    text: str


def passages(case: Case) -> Iterator[Passage]:
    """Each paragraph a learner reads: manifest, hints.md, notebook."""
    for where, text in _texts(case):
        for part in re.split(r"\n\s*\n", text):
            if part.strip():
                yield Passage(where, part.strip())


def _texts(case: Case) -> Iterator[tuple[str, str]]:
    chapter, toml = case.chapter, case.name(case.toml)
    for field in ("title", "idea", "interface", "transfer"):
        yield f"{toml}, {field}", getattr(chapter, field)
    for goal in chapter.goals:
        yield f"{toml}, goals", goal
    for term in chapter.terms:
        yield f"{toml}, terms", term.text
    for lab in chapter.labs:
        yield f"{toml}, lab {lab.id}", f"{lab.title}\n\n{lab.expect}"
        for step in lab.steps:
            yield f"{toml}, lab {lab.id}", step.name
    for fault in chapter.faults:
        text = f"{fault.title}\n\n{fault.shows}\n\n{fault.reason}"
        yield f"{toml}, fault {fault.id}", text
    for question in chapter.questions:
        yield f"{toml}, questions", f"{question.ask}\n\n{question.answer}"
    for fact in chapter.pi:
        yield f"{toml}, pi", fact.text
    hints = chapter.folder / "hints.md"
    if hints.is_file():
        yield case.name(hints), sources.read(hints)
    yield from _cells(case, "markdown")


def code_cells(case: Case) -> Iterator[tuple[str, str]]:
    """Where and source of the notebook's code cells, shell and magic lines left out."""
    for where, text in _cells(case, "code"):
        yield where, "\n".join(line for line in text.split("\n") if line[:1] not in "!%")


def _cells(case: Case, kind: str) -> Iterator[tuple[str, str]]:
    if case.notebook is None:
        return
    try:
        notebook: dict[str, Any] = json.loads(sources.read(case.notebook))
        cells = list(notebook["cells"])
    except (ValueError, KeyError):
        return  # the rule `notebook` says so
    for cell in cells:
        if cell["cell_type"] == kind:
            source = cell["source"]
            text = source if isinstance(source, str) else "".join(source)
            yield f"{case.name(case.notebook)}, cell {cell.get('id', '?')}", text


def uses_term(text: str, term: str) -> bool:
    """Whether a term stands in a text as a word of its own, plural too.

    Example:
        >>> uses_term("Two partials follow.", "partial"), uses_term("partially", "partial")
        (True, False)
    """
    plain = re.sub(r"`[^`\n]*`", " ", text)
    return re.search(rf"(?<![\w-]){re.escape(term)}(?:s|es)?(?![\w-])", plain, re.I) is not None


# Commands


def learning_text(case: Case) -> str:
    return sources.read(case.practice / "LEARNING.md")


def quoted_commands(case: Case) -> Iterator[tuple[str, str]]:
    """Where and text of every `pi-course …` that a learner can copy."""
    texts = [("LEARNING.md", learning_text(case)), *_texts(case)]
    if case.notebook is not None:
        texts += list(_cells(case, "code"))
    seen: set[str] = set()
    for where, text in texts:
        for command in commands_in(text):
            if command not in seen:
                seen.add(command)
                yield where, command


def commands_in(text: str) -> list[str]:
    """The commands that stand in code spans, or start a line of code.

    Example:
        >>> commands_in("Run `pi-course check`, then:\\n\\n    $ pi-course diff 03\\n")
        ['pi-course check', 'pi-course diff 03']
    """
    found = re.findall(r"`(pi-course(?: [^`\n]*)?)`", text)
    found += re.findall(r"^(?:\s*[!$%]\s*|\s{4,})?(pi-course(?: [^`\n]*)?)$", text, re.M)
    return [" ".join(command.split()) for command in found]


def commands(case: Case) -> Iterator[Finding]:
    """Each quoted command parses, and the chapter, lab and fault it names exist."""
    for where, command in quoted_commands(case):
        wrong = wrong_with(command, case.chapter)
        if wrong is not None:
            yield Finding(f"`{command}`: {wrong}", where, "Quote a command that works.")


def wrong_with(command: str, chapter: Checkpoint) -> str | None:
    from pi_course_kit.cli import main

    words = arguments(command, chapter)
    context = click.Context(main, info_name="pi-course")
    group: click.Command = main
    while isinstance(group, click.Group) and words:
        if words[0] in ("-h", "--help", "--version"):
            return None
        name = words.pop(0)
        found = group.get_command(context, name)
        if found is None:
            return f"there is no command {name!r}"
        group = found
    try:
        parsed = group.make_context(group.name, words, parent=context)
        return _unknown(parsed.params, chapter)
    except click.exceptions.Exit:
        return None
    except (click.ClickException, CourseError) as error:
        return error.format_message() if isinstance(error, click.ClickException) else str(error)


def arguments(command: str, chapter: Checkpoint) -> list[str]:
    """The words after "pi-course", placeholders filled in and optional parts left out."""
    text = re.sub(r"\[[^\]]*\]|…|\.\.\.", "", command)
    words = shlex.split(text)[1:]
    fault = chapter.faults[0].id if chapter.faults else "ID"
    filled = {"NN": chapter.nn, "ID": fault, "LAB": chapter.labs[0].id if chapter.labs else "LAB"}
    return [filled.get(word, word) for word in words]


def _unknown(given: dict[str, Any], chapter: Checkpoint) -> str | None:
    named = given.get("chapter")
    found = checkpoint.find(named) if isinstance(named, str) else chapter
    if isinstance(given.get("fault"), str):
        found.fault(given["fault"])
    lab = given.get("lab")
    if isinstance(lab, str) and "." in lab:
        checkpoint.find(lab.split(".")[0]).lab(lab)
    return None


# Paths

ROOTS = r"(?:pi_course|pi_course_kit|tests|notebooks|checkpoints|benchmarks)"


def paths(case: Case) -> Iterator[Finding]:
    """Each path of the course that a text names is there after this chapter."""
    there = {*snapshot.snapshot_files(case.number), *practice_paths(case)}
    texts = [("LEARNING.md", learning_text(case)), *_texts(case)]
    seen: set[str] = set()
    for where, text in texts:
        for path in re.findall(rf"(?<![\w./-]){ROOTS}/[\w./-]*\w", text):
            if path in seen or path in there or (case.course.root / path).exists():
                continue
            seen.add(path)
            yield Finding(f"it names {path}, which is not there", where, "Correct the path.")


def practice_paths(case: Case) -> set[str]:
    files = set(sources.tree(case.practice)) | {practice.MARKER}
    return files | {path.rpartition("/")[0] for path in files}


# Counts

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
NUMBERS = {str(word): number for number, word in enumerate(WORDS, 1)}
COUNT = re.compile(
    rf"(?P<whole>\b(?:all|chapter's|chapter has) )?\b(?P<count>\d+|{'|'.join(NUMBERS)}) "
    r"(?P<what>lab|fault|test|goal)s?\b",
    re.I,
)


def counts_in(text: str) -> list[tuple[str, str, int, bool]]:
    """What is counted: the words, the kind, the number, and whether it means all there are.

    Example:
        >>> counts_in("This chapter's two faults. The next 3 labs.")
        [("chapter's two faults", 'fault', 2, True), ('3 labs', 'lab', 3, False)]
    """
    found: list[tuple[str, str, int, bool]] = []
    for match in COUNT.finditer(text):
        word = match["count"].lower()
        number = int(word) if word.isdigit() else NUMBERS[word]
        found.append((match[0], match["what"].lower(), number, bool(match["whole"])))
    return found


def counts(case: Case) -> Iterator[Finding]:
    """A number of labs, faults, tests or goals is the chapter's own, or a part of it."""
    chapter = case.chapter
    there = {
        "lab": len(chapter.labs),
        "fault": len(chapter.faults),
        "test": len(chapter.tests),
        "goal": len(chapter.goals),
    }
    for where, text in [("LEARNING.md", learning_text(case)), *_texts(case)]:
        for words, what, number, whole in counts_in(text):
            if number > there[what] or (whole and number != there[what]):
                yield Finding(
                    f"it says {words!r}, the chapter has {there[what]}", where, "Count again."
                )


RULES = (
    Rule(
        "counts",
        "Every number of labs, faults, tests or goals in a text is right.",
        counts,
        swap("checkpoints/01-hello/hints.md", "Join the word", "All 9 tests ask for it. Join"),
        needs=("files",),
    ),
    Rule(
        "commands",
        "Every quoted pi-course command parses and names things that exist.",
        commands,
        swap("checkpoints/01-hello/hints.md", "Join the word", "See `pi-course hunt 1.1`. Join"),
        needs=("files",),
    ),
    Rule(
        "paths",
        "Every path of the course that a text names exists.",
        paths,
        swap("checkpoints/01-hello/hints.md", "Join the word", "In pi_course/hallo.py: join"),
        needs=("files",),
    ),
)
