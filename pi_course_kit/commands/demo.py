"""pi-course demo NAME"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

Write = Callable[[str], None]


def prologue(write: Write) -> None:
    from pi_course.prologue import format_trace, run_prologue

    write(format_trace(run_prologue()) + "\n")


def streaming(write: Write) -> None:
    import asyncio

    from pi_course.streaming_demo import streaming_demo

    asyncio.run(streaming_demo(write))


# name: (what it shows, the function that plays it)
DEMOS: dict[str, tuple[str, Callable[[Write], None]]] = {
    "prologue": ("One request through the whole loop, as a trace of seven events.", prologue),
    "streaming": ("Three lines to a scripted model, one of which fails.", streaming),
}


@click.command("demo")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Play a short demonstration.

    It runs on the finished runtime. Without NAME the demonstrations are listed.
    """
    if name is None:
        click.echo(_listed())
        return
    if name not in DEMOS:
        click.echo(f"pi-course: There is no demo {name!r}. These exist:\n{_listed()}", err=True)
        raise SystemExit(2)
    from pi_course_kit.endpoint import serve_runtime

    serve_runtime()
    DEMOS[name][1](partial(click.echo, nl=False))


def _listed() -> str:
    return "\n".join(f"  {name:<12}{about}" for name, (about, _) in DEMOS.items())
