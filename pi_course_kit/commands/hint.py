"""pi-course hint [LAB] [NAME]"""

from __future__ import annotations

from pathlib import Path

import click

from pi_course_kit.checkpoint import Checkpoint, Lab
from pi_course_kit.workspace import Progress


@click.command("hint")
@click.argument("lab", required=False)
@click.argument("name", required=False)
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
def command(
    lab: str | None, name: str | None, level: int | None, write: str | None, folder: Path | None
) -> None:
    """Open the next hint of a lab.

    LAB is 3.1 and so on; without it, the first lab that is not green. The rungs are
    where, signature, pseudocode and local code; each call opens one more. NAME shows
    the signature or the code of that one definition.
    """
    from pi_course_kit import practice
    from pi_course_kit.checkpoint import find
    from pi_course_kit.errors import CourseError
    from pi_course_kit.workspace import progress_for

    here: Path | None = None
    chapter: Checkpoint | None = None
    try:
        here = practice.practice_folder(folder)
        chapter = practice.chapter_of(here)
    except CourseError:
        if lab is None or write is not None or folder is not None:
            raise
    if lab is not None and (chapter is None or lab.split(".")[0] != str(chapter.number)):
        if write is not None and chapter is not None:
            raise CourseError(
                f"{here} is chapter {chapter.nn}; lab {lab} belongs elsewhere. Nothing was written."
            )
        chapter = find(lab.split(".")[0])
    assert chapter is not None
    if lab is None and here is not None:
        lab = _first_red(here)
        if lab is None:
            click.echo(f"All labs of chapter {chapter.nn} are green: there is nothing to hint.")
            return
    chosen = chapter.lab(lab or "")
    if write is not None and here is not None:
        _write(here, chapter, chosen, int(write))
    else:
        _show(progress_for(here), chapter, chosen, level, name)


def _show(
    progress: Progress, chapter: Checkpoint, lab: Lab, level: int | None, name: str | None
) -> None:
    from pi_course_kit import hints
    from pi_course_kit.output import say

    opened = level or min(progress.hint_level(chapter.id, lab.id) + 1, 4)
    texts = [
        (rung, hints.hint(chapter, lab, rung, name))
        for rung in (range(1, opened + 1) if level else [opened])
    ]
    click.echo(f"Lab {lab.id} · {lab.title}")
    for rung, text in texts:
        click.echo(f"\nRung {rung} of 4: {hints.LEVELS[rung]}\n")
        if rung in (1, 3):  # words; the other two are code
            say(text)
        else:
            click.echo(text)
    progress.record_hint(chapter.id, lab.id, opened)
    if opened in (2, 4) and name is None and len(lab.symbols) > 1:
        one = lab.symbols[0].partition(":")[2]
        click.echo(f"\nOne of them alone: pi-course hint {lab.id} {one} --level {opened}")
    click.echo(
        f"\nTry it, run `pi-course check --lab {lab.id}`"
        + (", and only then open the next rung." if opened < 4 else ".")
    )


def _write(folder: Path, chapter: Checkpoint, lab: Lab, level: int) -> None:
    from pi_course_kit import hints
    from pi_course_kit.workspace import progress_for

    results = hints.write_hint(folder, chapter, lab, level)
    progress_for(folder).record_hint(chapter.id, lab.id, level)
    for file, laid in results:
        if laid.names:
            click.echo(f"wrote {file}: {', '.join(laid.names)}")
        if laid.kept and level == 4:
            click.echo(f"kept yours in {file}: {', '.join(laid.kept)}")
    if not any(laid.names for _, laid in results):
        click.echo(
            "Nothing to write: your files have all of it, and yours is never replaced.\n"
            "To have a definition laid, delete yours first."
        )
        return
    click.echo(f"\nNext: pi-course check --lab {lab.id}")


def _first_red(folder: Path) -> str | None:
    from pi_course_kit import runner

    result = runner.check(folder)
    return next((test.lab for test in result.tests if test.outcome != "passed"), None)
