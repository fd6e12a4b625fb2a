"""What several commands print alike: their JSON, also of wrong use."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager

import click

from pi_course_kit.errors import CourseError


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
