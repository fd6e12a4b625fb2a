"""pi-course fault [NN] [ID]"""

from __future__ import annotations

import textwrap

import click

from pi_course_kit.checkpoint import Checkpoint


@click.command("fault")
@click.argument("chapter", required=False)
@click.argument("fault", required=False, metavar="[ID]")
def command(chapter: str | None, fault: str | None) -> None:
    """Break a copy on purpose and see which test notices.

    The fault is put into a copy of the finished chapter, never into your files.
    Without ID the chapter's faults are listed.
    """
    from pi_course_kit import checkpoint, practice

    found = checkpoint.find(chapter) if chapter else practice.chapter_of(practice.practice_folder())
    if fault is None:
        for item in found.faults:
            click.echo(f"{item.id:<18} {item.title}")
        if not found.faults:
            click.echo(f"Chapter {found.nn} declares no faults.")
        else:
            click.echo(f"\nRun one: pi-course fault {found.nn} {found.faults[0].id}")
        return
    _run(found, fault)


def _run(chapter: Checkpoint, name: str) -> None:
    from pi_course_kit import report
    from pi_course_kit.faults import run_fault

    result = run_fault(chapter, name)
    click.echo(_wrapped(f"Fault {result.fault.id}: {result.fault.title}"))
    click.echo(f"On a copy of {result.fault.file}:\n")
    click.echo("\n".join(f"  {line}".rstrip() for line in result.diff).strip("\n"))
    click.echo("\nWith the fault:")
    click.echo(report.labs(chapter, result.broken, owner="(in the copy)"))
    for item in result.types:
        click.echo(_wrapped(f"type checker: {item}", "  "))
    if result.fault.expect == "nothing":
        click.echo("\n" + _wrapped(f"No test notices: {result.fault.reason}"))
    if result.fault.shows:
        click.echo("\n" + _wrapped(result.fault.shows))
    click.echo("\nRestored:")
    click.echo(report.labs(chapter, result.restored))
    if not result.holds:
        expected = ", ".join(result.fault.tests) or "no test"
        click.echo(f"\nNot as declared: {expected} should have gone red.", err=True)
        raise SystemExit(1)


def _wrapped(text: str, indent: str = "") -> str:
    """Text in 80 columns; what its author put on lines of its own stays so."""
    return "\n".join(
        textwrap.fill(
            line,
            80,
            initial_indent=indent,
            subsequent_indent=indent and indent + "  ",
            break_on_hyphens=False,
        )
        for line in text.strip().split("\n")
    )
