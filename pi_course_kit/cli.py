"""The command line. Each command is a module that is imported when it is chosen.

COMMANDS holds the short helps, so that `pi-course --help` imports no command; a test compares
the table with the commands themselves.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from pi_course_kit import __version__
from pi_course_kit.errors import CourseError

COMMANDS = {
    "list": "List the chapters and how far you are.",
    "lab": "Open JupyterLab on a chapter's notebook.",
    "checkpoint": "Show where a chapter starts and ends.",
    "practice": "Make a practice folder whose focused test is red.",
    "check": "Run the focused test on your files.",
    "watch": "Check again each time you save.",
    "compare": "Find the first value that differs from the reference.",
    "hint": "Open the next hint of a lab.",
    "fault": "Break a copy on purpose and see which test notices.",
    "diff": "Show what a chapter changes.",
    "answer": "Show a chapter's finished files.",
    "accept": "Answer a chapter's questions and close it.",
    "status": "Show your progress and your predictions.",
    "doctor": "Look for what is missing or wrong on this machine.",
    "chat": "Talk with a model in the terminal.",
    "agent": "Let an agent read, edit and run what is in a folder.",
    "demo": "Play a short demonstration.",
    "verify": "Prove the chapters: red parents, green targets, faults.",
    "dev": "Tools for those who change the course.",
}


class Course(click.Group):
    """Commands by name from COMMANDS; nothing is imported before it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"pi_course_kit.commands.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CourseError as error:
            from pi_course_kit.output import say
            from pi_course_kit.terminal import plain

            say(f"pi-course: {plain(str(error))}", err=True)
            raise SystemExit(2) from error


@click.group(cls=Course, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pi-course")
def main() -> None:
    """Learn how a coding agent works by rebuilding one.

    Start with `pi-course lab` and read chapter 00.
    """


if __name__ == "__main__":
    sys.exit(main())
