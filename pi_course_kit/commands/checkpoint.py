"""pi-course checkpoint NN"""

from __future__ import annotations

import click


@click.command("checkpoint")
@click.argument("chapter")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(chapter: str, as_json: bool) -> None:
    """Show where a chapter starts and ends.

    CHAPTER is 3, 03 or 03-message-ir.
    """
    from pi_course_kit import checkpoint, snapshot
    from pi_course_kit.output import json_errors, print_json

    with json_errors(as_json):
        found = checkpoint.find(chapter)
    parent = snapshot.parent_digest(found.number)
    target = snapshot.target_digest(found.number)
    test = f"tests/{found.test_name}"
    if as_json:
        print_json(
            {
                "chapter": found.id,
                "title": found.title,
                "mode": found.mode,
                "parent": parent,
                "target": target,
                "files": list(found.files),
                "given": list(found.given),
                "test": test,
                "tests": list(found.tests),
            }
        )
        return
    click.echo(f"{found.nn} · {found.title}\n")
    rows = [
        ("mode", found.mode),
        ("parent", f"{parent[:12]}  the package after chapter {found.number - 1:02d}"),
        ("target", f"{target[:12]}  the package after this chapter"),
        *((("files" if i == 0 else ""), file) for i, file in enumerate(found.files)),
        ("test", test),
        ("diff", f"pi-course diff {found.nn}"),
    ]
    if found.number == 0:
        rows[1] = ("parent", f"{parent[:12]}  nothing: this is the first chapter")
    for name, value in rows:
        click.echo(f"{name:<8}{value}")
    click.echo(
        "\nBefore you run anything, write down what you expect to see.\n"
        f"Then: pi-course practice {found.nn}"
    )
