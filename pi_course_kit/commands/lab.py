"""pi-course lab [CHAPTER]"""

from __future__ import annotations

import click


@click.command("lab")
@click.argument("chapter", required=False)
@click.option("--port", type=click.IntRange(1, 65535), help="Listen on this port only.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
def command(chapter: str | None, port: int | None, no_browser: bool) -> None:
    """Open JupyterLab on a chapter's notebook.

    CHAPTER is 3, 03 or 03-message-ir; without it, the first chapter that is not accepted.
    The notebooks are copied into your workspace once; your changes to them are kept.
    """
    from pi_course_kit.notebook import server

    server.require()
    place = server.lay_out(chapter)
    click.echo(f"Workspace: {place.workspace}")
    try:
        with server.started(place, port=port, browser=not no_browser) as running:
            click.echo(f"Open this address in a browser:\n\n    {running.url}\n")
            click.echo("JupyterLab runs until you press Ctrl-C here.")
            running.wait()
    except KeyboardInterrupt:
        pass  # also while it was starting
    click.echo("JupyterLab has stopped; what you saved is in the workspace.")
