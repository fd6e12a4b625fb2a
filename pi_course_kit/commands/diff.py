"""pi-course diff NN"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("diff")
@click.argument("chapter")
@click.option("--give-up", is_flag=True, help="Show it before you are green; this is recorded.")
def command(chapter: str, give_up: bool) -> None:
    """Show what a chapter changes.

    Before you are green it shows the files and the counts, and ends with exit code 1 like
    `answer`; after that, every line.
    """
    import difflib

    from pi_course_kit import checkpoint, snapshot
    from pi_course_kit.commands.answer import may_see

    found = checkpoint.find(chapter)
    before = snapshot.snapshot_files(found.number - 1)
    after = snapshot.snapshot_files(found.number)
    shown = may_see(found, give_up)
    for path, file in after.items():
        old = _lines(before.get(path))
        new = _lines(file)
        lines = list(
            difflib.unified_diff(old, new, f"parent/{path}", f"target/{path}", lineterm="")
        )
        if not lines:
            continue
        if shown:
            click.echo("\n".join(lines) + "\n")
        else:
            added = sum(line.startswith("+") for line in lines[2:])
            removed = sum(line.startswith("-") for line in lines[2:])
            click.echo(f"{path:<44} +{added} -{removed}")
    for path in before.keys() - after.keys():
        click.echo(f"{path:<44} deleted")
    if not shown:
        click.echo(
            f"\nChapter {found.nn} is not green yet, so the lines stay closed: predict them.\n"
            f"To see them all the same: pi-course diff {found.nn} --give-up",
            err=True,
        )
        raise SystemExit(1)


def _lines(file: Path | None) -> list[str]:
    text = file.read_text(encoding="utf-8") if file else ""
    return text.removesuffix("\n").split("\n") if text else []
