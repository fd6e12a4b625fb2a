"""Rule: a chapter's notebook holds the outputs that its code gave on this snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from pi_course_kit.errors import CourseError
from pi_course_kit.verify.case import Case
from pi_course_kit.verify.rule import Finding, Rule, swap


def notebook(case: Case) -> Iterator[Finding]:
    from pi_course_kit.notebook import build

    if case.notebook is None:
        yield Finding(
            "the chapter has no notebook",
            f"notebooks/{case.chapter.id}.ipynb",
            "Write it, then run `pi-course dev notebooks`.",
        )
        return
    where = case.name(case.notebook)
    if case.notebook.stem != case.chapter.id:
        yield Finding("its name is not the chapter's", where, f"Call it {case.chapter.id}.ipynb.")
    try:
        read = build.read(case.notebook)
        problems = build.problems(read, case.number)
    except (CourseError, KeyError) as error:
        yield Finding(f"it can't be read: {error}", where, "")
        return
    for problem in problems:
        yield Finding(problem, where, f"Run `pi-course dev notebooks {case.chapter.nn}`.")


RULES = (
    Rule(
        "notebook",
        "The notebook's outputs are those that its code gave on this snapshot, all of them.",
        notebook,
        swap("notebooks/01-hello.ipynb", "hello Ann\\\\n", "hello Bo\\\\n"),
    ),
)
