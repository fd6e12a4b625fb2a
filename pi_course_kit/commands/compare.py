"""pi-course compare [DIR]"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("compare")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--scenario", metavar="NAME", help="Run this one only; all of the chapter else.")
def command(folder: Path | None, scenario: str | None) -> None:
    """Find the first value that differs from the reference.

    The same scenario runs on the finished chapter and on the pi_course/ in DIR (default: the
    practice folder around the current one), each in a process of its own. Exit code 0: all values
    are equal; 1: one differs.
    """
    from pi_course_kit import compared, practice
    from pi_course_kit.compare import compare_all

    folder = practice.practice_folder(folder)
    chapter = practice.chapter_of(folder)
    found = compare_all(chapter, folder, scenario)
    click.echo(compared.text(chapter, folder, str(folder), found))
    raise SystemExit(int(found[-1].differs))
