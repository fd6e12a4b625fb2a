"""What several commands print alike: sentences at 80 columns, and JSON, also of wrong use."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager

import click

from pi_course_kit.errors import CourseError

WIDTH = 80


def say(text: str, *, err: bool = False) -> None:
    """Print sentences. On a terminal long lines are folded, each under its own indent; no word
    is cut, and no `quoted command`: it can be copied whole.
    """
    if (sys.stderr if err else sys.stdout).isatty():
        text = "\n".join(map(folded, text.split("\n")))
    click.echo(text, err=err)


def folded(line: str) -> str:
    """A line in at most 80 columns.

    Example:
        >>> print(folded("  " + "word " * 15 + "run `pi-course check --lab 3.1` there."))
          word word word word word word word word word word word word word word word run
          `pi-course check --lab 3.1` there.
    """
    if len(line) <= WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    whole = re.sub(r"`[^`]*`", lambda quoted: quoted[0].replace(" ", "\0"), line)
    folded = textwrap.fill(
        whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return folded.replace("\0", " ")


def print_json(value: object) -> None:
    """The one JSON object of a command that was asked for --json."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def json_errors(wanted: bool) -> Generator[None]:
    """With --json a wrong use is a JSON object on stdout too; its exit code stays 2."""
    try:
        yield
    except CourseError as error:
        if not wanted:
            raise
        print_json({"verdict": "error", "error": str(error)})
        raise SystemExit(2) from error
