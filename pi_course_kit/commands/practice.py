"""pi-course practice NN [DIR]"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("practice")
@click.argument("chapter")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Start from your own green folder of an earlier chapter.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(chapter: str, folder: Path | None, source: Path | None, as_json: bool) -> None:
    """Make a practice folder whose focused test is red.

    CHAPTER is 3, 03 or 03-message-ir. Without DIR the folder lies in your workspace.
    """
    from pi_course_kit import checkpoint, practice, snapshot
    from pi_course_kit.output import json_errors, print_json

    with json_errors(as_json):
        found = checkpoint.find(chapter)
        made = practice.create(found, folder, source)
    if as_json:
        print_json(
            {
                "chapter": found.id,
                "folder": str(made.folder),
                "parent": snapshot.parent_digest(found.number),
                "target": snapshot.target_digest(found.number),
                "files": list(made.files),
                "kept": list(made.kept),
            }
        )
        return
    click.echo(f"{found.nn} · {found.title}\n\nMade {made.folder}")
    for file in made.kept:
        click.echo(f"  yours: {file}")
    for file in made.files if made.kept else ():
        if file.startswith("pi_course/") and file not in made.kept:
            click.echo(f"  from the course: {file}")
    if made.before is not None:
        click.echo(f"\nYour folder of before stays as it is: {made.before}")
    click.echo(
        f"\n  cd {_quoted(made.folder)}\n"
        "  pi-course check          say first what you expect to see\n"
        "\nLEARNING.md there says what to write and how to work."
    )


def _quoted(folder: Path) -> str:
    import shlex

    return shlex.quote(str(folder))
