"""pi-course dev: tools for those who change the course."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("dev")
def command() -> None:
    """Tools for those who change the course."""


@command.command("snapshot")
@click.argument("chapter")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
def snapshot_command(chapter: str, folder: Path) -> None:
    """Write the package and the tests after a chapter to DIR, which must not exist."""
    from pi_course_kit import checkpoint, snapshot
    from pi_course_kit.errors import CourseError

    found = checkpoint.find(chapter)
    if folder.exists():
        raise CourseError(f"{folder} exists already and was not touched. Name a new folder.")
    files = {**snapshot.snapshot_files(found.number), **snapshot.test_files(found.number)}
    snapshot.write(files, folder)
    click.echo(f"{len(files)} files, {snapshot.target_digest(found.number)[:12]}")


@command.command("sync")
@click.option("--check", is_flag=True, help="Change nothing; exit 1 when something is stale.")
def sync_command(check: bool) -> None:
    """Make pi_course/ from the last snapshot, and starters and given files from their targets."""
    from pi_course_kit import sync

    stale = sync.sync(check=check)
    for path in stale:
        click.echo(f"{'stale' if check else 'wrote'} {path}")
    click.echo(f"{len(stale)} {'stale' if check else 'written'}")
    if check and stale:
        raise SystemExit(1)


@command.command("carry")
@click.argument("chapter")
@click.argument("path")
@click.option("--base", required=True, help="The git revision before your fix, e.g. HEAD.")
def carry_command(chapter: str, path: str, base: str) -> None:
    """Carry a fix in a chapter's PATH forward into the later versions of that file.

    PATH is e.g. pi_course/messages.py. Each later version is merged three ways with `git
    merge-file`; a conflict stops the run and nothing after it is changed.
    """
    from pi_course_kit import checkpoint, sync

    for later in sync.carry(checkpoint.find(chapter), path, base):
        click.echo(f"merged into chapter {later}")


@command.command("notebooks")
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True, help="Compare with what is committed and change nothing.")
def notebooks_command(names: tuple[str, ...], check: bool) -> None:
    """Run the notebooks and write (or compare) their outputs."""
    from pi_course_kit.commands.dev_notebooks import build

    raise SystemExit(build(list(names), check))
