"""pi-course accept NN"""

from __future__ import annotations

from typing import Any

import click

from pi_course_kit.checkpoint import Checkpoint, Question
from pi_course_kit.output import say
from pi_course_kit.workspace import Progress


@click.command("accept")
@click.argument("chapter")
def command(chapter: str) -> None:
    """Answer a chapter's questions and close it.

    The chapter must be green. You answer in your own words first; then the answer and its
    evidence are shown, and you mark yourself. Each answer is kept, so you may stop and go on
    later; a question is asked again until you say that your answer holds.
    """
    from pi_course_kit import checkpoint
    from pi_course_kit.workspace import progress_for

    found = checkpoint.find(chapter)
    progress = progress_for()
    state = progress.state(found.id)
    if state == "accepted":
        say(f"Chapter {found.nn} is accepted already. {_next(found)}")
        return
    if state != "green":
        say(
            f"Chapter {found.nn} is not green yet, so there is nothing to accept. "
            "Run `pi-course check` in its practice folder.",
            err=True,
        )
        raise SystemExit(1)
    open_ones = _ask(found, progress)
    if open_ones:
        which = ", ".join(map(str, open_ones))
        of = "question" if len(open_ones) == 1 else "questions"
        say(
            f"\nStill open: {of} {which}. Your answers are kept; `pi-course accept {found.nn}` "
            "asks the open ones again."
        )
        raise SystemExit(1)
    progress.record_accepted(found.id)
    say(f"\nChapter {found.nn} is accepted. A change in its files opens it again. {_next(found)}")


def _ask(chapter: Checkpoint, progress: Progress) -> list[int]:
    """Ask what no kept answer holds for; returns the numbers of the questions still open."""
    from pi_course_kit.acceptance import evidence

    shown = evidence(chapter)
    answers = {answer["ask"]: answer for answer in progress.answers(chapter.id)}
    for number, question in enumerate(chapter.questions, 1):
        if answers.get(question.ask, {}).get("same"):
            continue
        say(f"\n{number} of {len(chapter.questions)}: {question.ask}")
        try:
            answer = _answer(question, shown[number - 1])
        except click.Abort:  # Ctrl-C, or the end of the input
            click.echo()
            break
        if answer is not None:
            answers[question.ask] = answer
            progress.record_answers(chapter.id, list(answers.values()))
    return [
        number
        for number, question in enumerate(chapter.questions, 1)
        if not answers.get(question.ask, {}).get("same")
    ]


def _answer(question: Question, shown: str) -> dict[str, Any] | None:
    """One question: the learner's words, then ours; None where nothing was said."""
    mine = click.prompt("In your own words", default="", show_default=False).strip()
    if not mine:
        return None
    say(f"\n  {question.answer}\n  {question.show}\n  -> {shown}\n")
    return {"ask": question.ask, "mine": mine, "same": click.confirm("Does yours say the same?")}


def _next(chapter: Checkpoint) -> str:
    from pi_course_kit.checkpoint import following

    after = following(chapter)
    if after is None:
        return "It is the last chapter of this edition."
    return f"Next: `pi-course lab {after.nn}`, {after.title}."
