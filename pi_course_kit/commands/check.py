"""pi-course check [DIR]"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pi_course_kit.output import print_json

if TYPE_CHECKING:
    from pi_course_kit.checkpoint import Checkpoint
    from pi_course_kit.results import CheckResult, TestResult
    from pi_course_kit.runner import Checker
    from pi_course_kit.typecheck import Diagnostic


@click.command("check")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--lab", metavar="3.1", help="Run the tests of one lab alone.")
@click.option("--types", is_flag=True, help="Also run the type checker on your files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(folder: Path | None, lab: str | None, types: bool, as_json: bool) -> None:
    """Run the focused test on your files.

    The course's own copy of the test runs on the pi_course/ in DIR (default: the practice folder
    around the current one). Exit code 0 is green, 1 red, 2 a check that could not run. A script
    should read --json: an exit code of 0 without output is no verdict.
    """
    from pi_course_kit.errors import CourseError

    try:
        raise SystemExit(_check(folder, lab, types, as_json))
    except BrokenPipeError:  # nobody reads the report; click ends without a word
        raise
    except (CourseError, OSError) as error:
        if not as_json:
            raise CourseError(str(error)) from error
        print_error(str(error))
        raise SystemExit(2) from error


def _check(folder: Path | None, lab: str | None, types: bool, as_json: bool) -> int:
    from pi_course_kit import practice, report, runner

    folder = practice.practice_folder(folder)
    chapter = practice.chapter_of(folder)
    earlier: tuple[TestResult, ...] = ()
    with runner.Checker(chapter) as checker:
        result = checker.check(folder, lab=lab)
        if lab is not None and not as_json and result.sentence is None:
            earlier = _earlier(checker, folder, lab)
    if elsewhere := os.environ.get("PI_COURSE_DATA"):
        note = f"the tests are those of another course: PI_COURSE_DATA names {elsewhere}."
        result = replace(result, notes=(*result.notes, note))
    record(result, chapter, folder)
    wrong = _type_errors(folder, chapter) if types and result.verdict != "error" else None
    if as_json:
        value = runner.to_json(result)
        if types:
            value["types"] = [str(item) for item in wrong or ()]
        print_json(value)
    else:
        click.echo(
            report.text(result, chapter, folder, colour=in_colour(), earlier=earlier, types=wrong)
        )
    return {"green": 0, "red": 1, "error": 2}[result.verdict] or int(bool(wrong))


def _earlier(checker: Checker, folder: Path, lab: str) -> tuple[TestResult, ...]:
    """The results of the labs before one: together with its own they are how far it is."""
    from pi_course_kit import runner

    chapter = checker.chapter
    before = takewhile(lambda entry: entry.id != lab, chapter.labs)
    select = [test for entry in before for test in entry.tests]
    if not select:
        return ()
    run = checker.session.run(
        folder, select=select, pinned=runner.pins(chapter, select), labs=runner.labs(chapter)
    )
    return run.tests


def record(result: CheckResult, chapter: Checkpoint, folder: Path) -> None:
    """Keep the evidence of a check of the whole chapter; a lab alone is none."""
    from pi_course_kit.errors import CourseError
    from pi_course_kit.workspace import file_hashes, progress_for

    if result.lab is not None or result.verdict == "error":
        return
    ran = {file.path: file.sha256 for file in result.tested}
    # Everything that ran is evidence, a helper or a given file too; and each teaching file must
    # have run, or the evidence could stand without the learner's work.
    whole = set(chapter.files) <= ran.keys() and ran == file_hashes(folder, tuple(ran))
    green = result.verdict == "green" and whole
    try:
        progress_for(folder).record_check(chapter.id, folder, ran, green)
    except CourseError as error:
        click.echo(f"This result was not recorded: {error}", err=True)


def print_error(sentence: str) -> None:
    """A check that could not run, in the shape of one that could."""
    print_json(
        {
            "chapter": None,
            "verdict": "error",
            "tests": [],
            "tested": [],
            "missing": [],
            "sentence": sentence,
            "notes": [],
        }
    )


def in_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _type_errors(folder: Path, chapter: Checkpoint) -> list[Diagnostic]:
    from pi_course_kit.typecheck import type_check

    files = [folder / file for file in chapter.files if (folder / file).is_file()]
    return type_check(files, folder) if files else []
