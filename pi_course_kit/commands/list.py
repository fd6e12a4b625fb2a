"""pi-course list"""

from __future__ import annotations

import click


@click.command("list")
def command() -> None:
    """List the chapters and how far you are."""
    from pi_course_kit.checkpoint import checkpoints
    from pi_course_kit.workspace import progress_for

    progress = progress_for()
    chapters = checkpoints()
    room = max(len(chapter.title) for chapter in chapters)
    for chapter in chapters:
        state = progress.state(chapter.id)
        click.echo(f"{chapter.nn}  {chapter.title:<{room}}  {chapter.minutes:>3} min  {state}")
    click.echo("\nOpen one: pi-course lab 00    Practise: pi-course practice 01")
