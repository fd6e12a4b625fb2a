"""pi-course hint [LAB]"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("hint")
@click.argument("lab", required=False)
@click.option("--level", type=click.IntRange(1, 4), help="Open this rung and those below it.")
@click.option(
    "--write",
    type=click.Choice(["2", "4"]),
    help="Lay the signatures (2) or the code (4) of the lab into your files.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="The practice folder; the current one by default.",
)
def command(lab: str | None, level: int | None, write: str | None, folder: Path | None) -> None:
    """Open the next hint of a lab.

    LAB is 3.1 and so on; without it, the first lab that is not green. The rungs are
    where, signature, pseudocode and local code; each call opens one more.
    """
    from pi_course_kit import hints, practice
    from pi_course_kit.checkpoint import find
    from pi_course_kit.errors import CourseError
    from pi_course_kit.workspace import progress_for

    try:
        here = practice.practice_folder(folder)
        chapter = practice.chapter_of(here)
    except CourseError:
        if lab is None or write is not None or folder is not None:
            raise
        here, chapter = None, None
    if lab is not None and (chapter is None or lab.split(".")[0] != str(chapter.number)):
        if write is not None and chapter is not None:
            raise CourseError(
                f"{here} is chapter {chapter.nn}; lab {lab} belongs elsewhere. Nothing was written."
            )
        chapter = find(lab.split(".")[0])
    assert chapter is not None
    chosen = chapter.lab(lab) if lab is not None else chapter.lab(_first_red(here))
    progress = progress_for(here)
    if write is not None:
        assert here is not None
        changed = hints.write_hint(here, chapter, chosen, int(write))
        progress.record_hint(chapter.id, chosen.id, int(write))
        for file in changed:
            click.echo(f"wrote {file}")
        if not changed:
            click.echo("Nothing to write: your files have all of it, and yours is never replaced.")
        return
    opened = level or min(progress.hint_level(chapter.id, chosen.id) + 1, 4)
    click.echo(f"Lab {chosen.id} · {chosen.title}")
    for rung in range(1, opened + 1) if level else [opened]:
        click.echo(f"\nRung {rung} of 4: {hints.LEVELS[rung]}\n")
        click.echo(hints.hint(chapter, chosen, rung))
    progress.record_hint(chapter.id, chosen.id, opened)
    click.echo(
        f"\nTry it, run `pi-course check --lab {chosen.id}`"
        + (", and only then open the next rung." if opened < 4 else ".")
    )


def _first_red(folder: Path | None) -> str:
    from pi_course_kit import practice, runner

    assert folder is not None
    result = runner.check(folder)
    for test in result.tests:
        if test.outcome != "passed":
            return test.lab
    return practice.chapter_of(folder).labs[-1].id
