"""pi-course accept NN"""

from __future__ import annotations

from typing import Any

import click


@click.command("accept")
@click.argument("chapter")
def command(chapter: str) -> None:
    """Answer a chapter's questions and close it.

    The chapter must be green. You answer in your own words first; then the answer and its
    evidence are shown, and you mark yourself.
    """
    from pi_course_kit import checkpoint
    from pi_course_kit.acceptance import evidence
    from pi_course_kit.workspace import progress_for

    found = checkpoint.find(chapter)
    progress = progress_for()
    if progress.state(found.id) not in ("green", "accepted"):
        click.echo(
            f"Chapter {found.nn} is not green yet, so there is nothing to accept. "
            "Run `pi-course check` in its practice folder.",
            err=True,
        )
        raise SystemExit(1)
    shown = evidence(found)
    answers: list[dict[str, Any]] = []
    for number, question in enumerate(found.questions, 1):
        click.echo(f"\n{number} of {len(found.questions)}: {question.ask}")
        mine = click.prompt("In your own words", default="", show_default=False).strip()
        if not mine:
            click.echo("Left open. Nothing was recorded; come back when you can say it.")
            raise SystemExit(1)
        click.echo(f"\n  {question.answer}\n  {question.show}\n  -> {shown[number - 1]}\n")
        same = click.confirm("Does yours say the same?")
        answers.append({"ask": question.ask, "mine": mine, "same": same})
    progress.record_accepted(found.id, answers)
    click.echo(f"\nChapter {found.nn} is accepted. A change in its files opens it again.")
