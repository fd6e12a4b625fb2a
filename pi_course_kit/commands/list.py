"""pi-course list"""

from __future__ import annotations

import click


@click.command("list")
def command() -> None:
    """List the chapters and how far you are."""
    from pi_course_kit.checkpoint import checkpoints
    from pi_course_kit.workspace import progress_for

    progress = progress_for()
    for chapter in checkpoints():
        state = progress.state(chapter.id)
        words = f"{chapter.minutes} min, {chapter.level}"
        click.echo(f"{chapter.nn}  {chapter.title:<44} {words:<18} {state}"[:80].rstrip())
    click.echo("\nOpen one: pi-course lab 00    Practise: pi-course practice 01")
