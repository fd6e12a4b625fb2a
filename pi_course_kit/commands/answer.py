"""pi-course answer NN"""

from __future__ import annotations

import click

from pi_course_kit.checkpoint import Checkpoint


def may_see(chapter: Checkpoint, give_up: bool) -> bool:
    """Whether the target may be shown; giving up is recorded."""
    from pi_course_kit.workspace import progress_for

    progress = progress_for()
    if chapter.mode == "observe" or progress.state(chapter.id) in ("green", "accepted"):
        return True
    if give_up:
        progress.record_gave_up(chapter.id)
        return True
    return bool(progress.chapter(chapter.id).get("gave_up"))


@click.command("answer")
@click.argument("chapter")
@click.option("--give-up", is_flag=True, help="Show it before you are green; this is recorded.")
def command(chapter: str, give_up: bool) -> None:
    """Show a chapter's finished files.

    It opens when the chapter is green, or with --give-up, which is recorded.
    """
    from pi_course_kit import checkpoint, snapshot

    found = checkpoint.find(chapter)
    if not may_see(found, give_up):
        click.echo(
            f"Chapter {found.nn} is not green yet. Open a hint first: "
            f"pi-course hint {found.labs[0].id}\n"
            f"To see the answer all the same: pi-course answer {found.nn} --give-up",
            err=True,
        )
        raise SystemExit(1)
    files = snapshot.snapshot_files(found.number)
    for path in found.files:
        click.echo(f"# {path}\n")
        click.echo(files[path].read_text(encoding="utf-8"))
