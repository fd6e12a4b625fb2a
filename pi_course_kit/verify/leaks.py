"""Rules that the answer is nowhere before it is asked for: not in the folder, not in a hint.

Compared are lines of code inside function bodies, without indentation; lines that any program
has (`return None`, `else:`) say nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from pi_course_kit import hints, snapshot, symbols
from pi_course_kit.errors import CourseError
from pi_course_kit.verify import sources
from pi_course_kit.verify.case import Case
from pi_course_kit.verify.rule import Finding, Rule, put, rebuilt, swap

RUN = 3  # so many lines of a body in a row are the answer
TRIVIAL = 16  # characters; shorter lines are everybody's


def body_lines(text: str, owners: Container[str] | None = None) -> list[list[str]]:
    """For each function (of `owners`, if given) the telling lines of its body."""
    module = sources.parsed(text)
    lines = text.split("\n")
    found: list[list[str]] = []
    for name, function in sources.functions(module) if module else ():
        if owners is not None and name not in owners and name.split(".")[0] not in owners:
            continue
        body = sources.body(function)
        if body and body[-1].end_lineno is not None:
            found.append(telling(lines[body[0].lineno - 1 : body[-1].end_lineno]))
    return [part for part in found if part]


def telling(lines: list[str]) -> list[str]:
    """The lines that say something, in one spelling.

    Example:
        >>> telling(["    else:", "    return  join(parts, name)", "    # why"])
        ['return join(parts, name)']
    """
    return [line for line in (" ".join(line.split()) for line in lines) if is_telling(line)]


def is_telling(line: str) -> bool:
    return len(line) >= TRIVIAL and not line.startswith(
        ("#", '"', "'", "raise NotImplementedError")
    )


def runs_of(lines: list[str], length: int = RUN) -> set[tuple[str, ...]]:
    return {tuple(lines[i : i + length]) for i in range(len(lines) - length + 1)}


def answer_runs(case: Case) -> dict[tuple[str, ...], str]:
    """Each run of new body lines in the teaching files, and the file it is from."""
    old = set[tuple[str, ...]]()
    files = [*snapshot.snapshot_files(case.number - 1).values()]
    files += [case.chapter.folder / "parent" / p for p in case.chapter.given if ":" not in p]
    for file in files:
        if file.suffix == ".py":
            for lines in body_lines(sources.read(file)):
                old |= runs_of(lines)
    return {
        run: file
        for file in case.chapter.files
        for lines in _answers(case, file)
        for run in runs_of(lines)
        if run not in old
    }


def _answers(case: Case, file: str) -> list[list[str]]:
    """The bodies that the labs ask for; what is given is shown whole."""
    return body_lines(case.target_text(file), symbols.owners(case.chapter, file))


def _shown(case: Case, file: str) -> set[str]:
    """Lines that stand in bodies which are there from the start."""
    lines: set[str] = set()
    if case.chapter.starters:
        owners = symbols.owners(case.chapter, file)
        for part in body_lines(symbols.starter(case.target_text(file), owners)):
            lines |= set(part)
    return lines


def absent(case: Case) -> Iterator[Finding]:
    """No teaching file whole, and no three lines of a body in a row, anywhere in the folder."""
    answers = answer_runs(case)
    whole = {
        "".join(case.target_text(file).split()): file
        for file in case.chapter.files
        if case.target_text(file) != case.before_text(file) and _can_be_cut(case, file)
    }
    for path, file in sources.tree(case.practice).items():
        text = sources.read(file)
        if source := whole.get("".join(text.split())):
            yield Finding(
                f"it is the finished {source}", f"practice folder, {path}", "Take it out."
            )
            continue
        for run in runs_of(telling(text.split("\n"))):
            if run in answers:
                yield Finding(
                    f"it holds lines of the finished {answers[run]}: {run[0]}",
                    f"practice folder, {path}",
                    "Say it in other words, or give the file whole.",
                )
                break


def _can_be_cut(case: Case, file: str) -> bool:
    """Fields alone have no body: there the starter is the whole file."""
    target, owners = case.target_text(file), symbols.owners(case.chapter, file)
    return not case.chapter.starters or symbols.starter(target, owners) != target


def hint_truth(case: Case) -> Iterator[Finding]:
    """Levels 1 and 2 name what is there; levels 1 to 3 hold no line of an answer's body."""
    answer: dict[str, str] = {}
    for file in case.chapter.files:
        shown = _shown(case, file)
        lines = (line for part in _answers(case, file) for line in part)
        answer |= {line: file for line in lines if line not in shown}
    for lab in case.chapter.labs:
        for level in (1, 2, 3):
            where = f"lab {lab.id}, hint level {level}"
            try:
                text = hints.hint(case.chapter, lab, level)
            except (CourseError, KeyError) as error:
                yield Finding(str(error), where, "")
                continue
            if not text.strip():
                yield Finding("it is empty", where, "Say where to begin.")
            yield from _answers_in(text, answer, where)
        yield from _signatures(case, lab.id)


def _answers_in(text: str, answer: dict[str, str], where: str) -> Iterator[Finding]:
    for line in telling(_unmarked(text).split("\n")):
        if line in answer:
            yield Finding(
                f"it holds a line of {answer[line]}: {line}", where, "Say it as pseudocode."
            )


def _unmarked(text: str) -> str:
    """Pseudocode without Markdown's bullets and numbers, which would hide a copied line."""
    lines = (line.strip().lstrip("-*0123456789. ").strip("`") for line in text.split("\n"))
    return "\n".join(lines)


def _signatures(case: Case, lab: str) -> Iterator[Finding]:
    """Every name of a lab stands in the target, and in its level-2 text."""
    for symbol in case.chapter.lab(lab).symbols:
        file, _, name = symbol.partition(":")
        if file not in snapshot.snapshot_files(case.number):
            continue  # the rule `files` says so
        text = symbols.signatures(case.target_text(file), symbols.owners(case.chapter, file), lab)
        last = name.rpartition(".")[2]
        if last not in text:
            yield Finding(f"{name} is not in it", f"lab {lab}, hint level 2", "Correct the symbol.")


def _copy_target(course: Path) -> None:
    hello = course / "checkpoints/01-hello"
    put("checkpoints/01-hello/parent/notes.txt", (hello / TARGET).read_text(encoding="utf-8"))(
        course
    )


TARGET = "target/pi_course/greet.py"
HELLO_TOML = "checkpoints/01-hello/checkpoint.toml"
INTERFACE = 'interface = "Words are joined with one blank."'
ANSWER = """
    greeted: list[str] = []
    for name in names:
        greeted.append(hello(name))
"""

RULES = (
    Rule(
        "absent",
        "The target's text is nowhere in the practice folder.",
        absent,
        swap(HELLO_TOML, INTERFACE, f"interface = '''{ANSWER}'''"),
        more={"whole-target": _copy_target},
        needs=("files", "fresh"),
        applies=rebuilt,
    ),
    Rule(
        "hints",
        "Hints 1 and 2 name what exists; hints 1 to 3 hold no line of the answer.",
        hint_truth,
        swap(
            "checkpoints/01-hello/hints.md",
            "Join the word",
            "- `greeted.append(hello(name))`\n\nJoin the word",
        ),
        needs=("files", "owned"),
        applies=rebuilt,
    ),
)
