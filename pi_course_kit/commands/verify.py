"""pi-course verify [NN …]"""

from __future__ import annotations

import click


@click.command("verify")
@click.argument("chapters", nargs=-1, metavar="[NN …]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(chapters: tuple[str, ...], as_json: bool) -> None:
    """Prove the chapters: red parents, green targets, faults.

    Without NN all chapters are proved. Exit 0: every rule holds; 1: one does not.
    """
    from pi_course_kit import checkpoint
    from pi_course_kit.output import json_errors, print_json
    from pi_course_kit.verify import text
    from pi_course_kit.verify.matrix import RULES, prove

    with json_errors(as_json):
        chosen = [checkpoint.find(name) for name in chapters] or list(checkpoint.checkpoints())
        chosen = sorted(set(chosen), key=lambda chapter: chapter.number)
        found = prove(chosen)
    if as_json:
        print_json(text.to_json(found, RULES))
    else:
        click.echo(text.matrix(found, RULES))
        if not found.green:
            click.echo("\n" + text.findings(found))
        click.echo("\n" + text.counts(found, RULES))
    raise SystemExit(0 if found.green else 1)
