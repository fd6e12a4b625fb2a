"""LEARNING.md, the page in each practice folder: what to do, what to expect, how to be coached."""

from __future__ import annotations

import difflib

from pi_course_kit import gaps, snapshot, symbols
from pi_course_kit.checkpoint import Checkpoint

ROOM = 76  # columns of what check shows, which is indented by four
PROMPT = """\
You are coaching me through one chapter of pi-course. Rules that bind you:
1. Do not write the solution and do not open or quote the course's target files.
2. Before I run anything, ask me what I expect to see, and wait for my answer.
3. Give me one action at a time, then wait for what I report.
4. When something is red, help me find the first place where the run differs from what I
   expected, and which layer that place belongs to, before we talk about a fix.
5. When I am stuck, climb one rung at a time and ask before the next: where in the files,
   then the signature, then pseudocode, then a few lines of local code.
6. Only `pi-course check` says green. Do not change the tests and do not skip any.
Start by reading LEARNING.md with me and asking for my first prediction."""


def text(chapter: Checkpoint, notes: str = "") -> str:
    """The whole page as Markdown."""
    parts = [
        _head(chapter),
        _files(chapter),
        _first_red(chapter),
        _labs(chapter),
        _interface(chapter),
        f"## Your own files\n\n{notes}\n" if notes else "",
        _coaching(chapter),
    ]
    return "\n".join(part for part in parts if part)


def _head(chapter: Checkpoint) -> str:
    goals = "\n".join(f"- {goal}" for goal in chapter.goals)
    terms = "\n".join(f"- **{term.term}**: {term.text}" for term in chapter.terms)
    return f"""\
# {chapter.nn} · {chapter.title}

{chapter.idea}

After this chapter you will be able to:

{goals}

Words of this chapter:

{terms}

| | |
|---|---|
| mode | {_MODES[chapter.mode]} |
| parent | `{snapshot.parent_digest(chapter.number)[:12]}` |
| target | `{snapshot.target_digest(chapter.number)[:12]}` |
| focused test | `tests/{chapter.test_name}` |
| time | about {chapter.minutes} minutes, {chapter.level} |
"""


_MODES = {
    "rebuild": "rebuild: the test is red, you write the code that makes it green",
    "observe": "observe: everything is there; you predict, run, and break it on purpose",
}


def _files(chapter: Checkpoint) -> str:
    if chapter.mode == "observe":
        listed = "\n".join(f"- `{file}`: read it, then break it" for file in chapter.files)
        return f"## Files\n\n{listed}\n"
    there = snapshot.practice_files(chapter.number)
    lines: list[str] = []
    for file in chapter.files:
        how = "add what is missing" if file in there else "write it from an empty file"
        lines.append(f"- `{file}`: {how}")
    lines += [f"- `{file}`: given, read it" for file in chapter.given if ":" not in file]
    listed = "\n".join(lines)
    return f"""\
## Files

{listed}

To try them, start `python` in this folder: `import pi_course` takes these files there. A script
that lies in another folder gets the course's finished ones.
"""


def _first_red(chapter: Checkpoint) -> str:
    if not chapter.first_red:
        return ""
    lines = "\n".join(f"    {line}" for line in gaps.text(chapter.first_red, chapter, ROOM))
    return f"""\
## First red

Say what you expect, then run `pi-course check`. The untouched folder shows:

{lines}
"""


def _labs(chapter: Checkpoint) -> str:
    parts = ["## Labs\n"]
    for lab in chapter.labs:
        parts.append(f"### Lab {lab.id} · {lab.title}\n")
        for step in lab.steps:
            count = len(step.tests)
            parts.append(f"- {step.name}: {count} {'test' if count == 1 else 'tests'}")
        parts.append(f"\nRun `pi-course check --lab {lab.id}`. Expect: {lab.expect}")
        if chapter.mode == "rebuild":
            parts.append(f"\nStuck? `pi-course hint {lab.id}` opens one rung at a time.")
        parts.append("")
    if chapter.faults:
        parts.append("When you are green, break it on purpose, on a copy:\n")
        parts += [
            f"- `pi-course fault {chapter.nn} {fault.id}`: {fault.title}"
            for fault in chapter.faults
        ]
        parts.append("")
    return "\n".join(parts)


def _interface(chapter: Checkpoint) -> str:
    """Names and fields read off the target; the bodies stay out."""
    if chapter.mode == "observe":
        return ""
    parts = ["## Interface\n"]
    for file in chapter.files:
        target = snapshot.snapshot_files(chapter.number)[file].read_text(encoding="utf-8")
        names = [f"- {line}" for line in symbols.outline(target, symbols.owners(chapter, file))]
        if names:
            parts.append(f"In `{file}`:\n\n" + "\n".join(names) + "\n")
    if chapter.interface.strip():
        parts.append(chapter.interface.strip() + "\n")
    return "\n".join(parts)


def _coaching(chapter: Checkpoint) -> str:
    rungs = f"""\
5. Stuck: open one rung of `pi-course hint`, try again, and only then the next: where,
   signature, pseudocode, local code. `pi-course hint {chapter.labs[0].id} --write 2` lays the
   signatures into your files.
""" * (chapter.mode == "rebuild" and bool(chapter.labs))
    return f"""\
## How to work

1. Say, or write down, what you expect to see. Then run.
2. One action at a time. A run after each.
3. Red: find the first thing that differs from what you expected. Name the layer it belongs
   to (the value, the stream, the test) before you change anything.
4. `pi-course watch` checks on every save; `pi-course check` once.
{rungs}
To be coached by an AI assistant, paste this first:

```text
{PROMPT}
```
"""


def difference(chapter: Checkpoint, path: str, mine: str, starter: str, names: list[str]) -> str:
    """What the chapter changes in names that the learner has already."""
    diff = "\n".join(
        difflib.unified_diff(
            mine.split("\n"),
            starter.split("\n"),
            "yours",
            f"chapter {chapter.nn}",
            n=1,
            lineterm="",
        )
    )
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"`{path}` has {listed} already; yours was kept. "
        f"The chapter's start looks like this:\n\n```diff\n{diff}\n```\n"
    )
