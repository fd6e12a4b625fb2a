"""pi-course verify [NN …]"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("verify")
@click.argument("chapters", nargs=-1, metavar="[NN …]")
@click.option("--deep", is_flag=True, help="Run mutants and hostile students where they changed.")
@click.option("--self-test", is_flag=True, help="Plant a fault for each rule; each must be caught.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write index.html and report.json there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    chapters: tuple[str, ...], deep: bool, self_test: bool, report: Path | None, as_json: bool
) -> None:
    """Prove the chapters: red parents, green targets, faults.

    Without NN all chapters are proved. --deep keeps its results in each chapter's proof.json,
    which is committed; without it they are only compared with what they were made from.
    Exit 0: every rule holds; 1: one does not.
    """
    from pi_course_kit.errors import CourseError
    from pi_course_kit.output import json_errors

    with json_errors(as_json):
        if self_test:
            if chapters or deep or report:
                raise CourseError(
                    "--self-test has a course of its own: use it without NN and options."
                )
            raise SystemExit(_test_itself(as_json))
        raise SystemExit(_prove(chapters, deep, report, as_json))


def _prove(names: tuple[str, ...], deep: bool, report: Path | None, as_json: bool) -> int:
    from pi_course_kit import checkpoint
    from pi_course_kit.output import print_json
    from pi_course_kit.verify import page, text
    from pi_course_kit.verify.matrix import RULES, prove

    chosen = {checkpoint.find(name) for name in names} or set(checkpoint.checkpoints())
    ordered = sorted(chosen, key=lambda chapter: chapter.number)
    found = prove(ordered, deep=_say if deep else None)
    if report is not None:
        page.write(found, RULES, report)
    if as_json:
        print_json(text.to_json(found, RULES))
    else:
        click.echo(text.matrix(found, RULES))
        if not found.green:
            click.echo("\n" + text.findings(found))
        click.echo("\n" + text.counts(found, RULES))
    return 0 if found.green else 1


def _say(line: str) -> None:
    click.echo(f"running {line}", err=True)


def _test_itself(as_json: bool) -> int:
    from pi_course_kit.output import print_json
    from pi_course_kit.verify import text
    from pi_course_kit.verify.matrix import RULES
    from pi_course_kit.verify.trial import Trial, self_test

    trials: list[Trial] = []
    for trial in self_test(RULES):
        trials.append(trial)
        if not as_json:
            click.echo(text.trial(trial))
    missed = {trial.rule for trial in trials if not trial.caught}
    caught = sum(rule.id not in missed for rule in RULES)
    if as_json:
        print_json(
            {
                "verdict": "red" if missed else "green",
                "rules": len(RULES),
                "caught": caught,
                "trials": {t.name or "nothing": list(t.red) for t in trials},
            }
        )
    else:
        click.echo(f"\n{len(trials) - 1} faults; {len(RULES)} rules = {caught} caught")
    return 1 if missed else 0
