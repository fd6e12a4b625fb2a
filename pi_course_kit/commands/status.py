"""pi-course status"""

from __future__ import annotations

from typing import Any

import click


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """Show your progress and your predictions."""
    from pi_course_kit.checkpoint import checkpoints
    from pi_course_kit.output import json_errors, print_json
    from pi_course_kit.workspace import progress_for

    progress = progress_for()
    with json_errors(as_json):
        entries = progress.read()
        states = {chapter.id: progress.state(chapter.id) for chapter in checkpoints()}
    if as_json:
        print_json(
            {
                "workspace": str(progress.path.parent),
                "chapters": [
                    {"chapter": name, "state": state, **entries.get(name, {})}
                    for name, state in states.items()
                ],
            }
        )
        return
    click.echo(f"Workspace {progress.path.parent}\n")
    for chapter in checkpoints():
        entry = entries.get(chapter.id, {})
        words = [states[chapter.id]]
        if entry.get("hints"):
            rungs = ", ".join(f"{lab} to rung {level}" for lab, level in entry["hints"].items())
            words.append(f"hints {rungs}")
        if entry.get("gave_up"):
            words.append("gave up")
        if entry.get("predictions"):
            words.append(_guesses(entry["predictions"]))
        click.echo(f"{chapter.nn}  {chapter.title}\n    {'; '.join(words)}")


def _guesses(predictions: list[dict[str, Any]]) -> str:
    """ "4 guesses: 2 right, 1 wrong, 1 not marked"."""
    marks = [guess.get("right") for guess in predictions]
    counts = [("right", True), ("wrong", False), ("not marked", None)]
    words = [f"{marks.count(mark)} {word}" for word, mark in counts if mark in marks]
    return f"{len(marks)} guess{'es' * (len(marks) != 1)}: {', '.join(words)}"
