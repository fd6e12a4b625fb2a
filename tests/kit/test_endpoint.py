"""From options to a model: what is refused, with which sentence, before anything is sent."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pi_course_kit import endpoint as endpoints
from pi_course_kit.cli import Course
from pi_course_kit.endpoint import Endpoint
from tests.run import SECRET

KEY = f"sk-{SECRET}"
THERE = ["--base-url", "http://model.test/v1", "--model", "m"]
HERE = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"]


@click.command()
@endpoints.options
def opened(endpoint: Endpoint | None, mine: Path | None) -> None:
    """A command that opens the model and says what its options have become."""
    if endpoint is not None:
        endpoints.open_model(endpoint)
    click.echo(f"{endpoint}, sends a key: {endpoint is not None and endpoint.sends_key}, {mine}")


class OneCommand(Course):
    """The errors of the kit's own command line, for the command above."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return opened


def run(*options: str, **environment: str) -> Result:
    none = {name: None for name in os.environ if name.endswith("_API_KEY")}
    return CliRunner().invoke(OneCommand("pi-course"), ["opened", *options], env=none | environment)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--base-url", "/v1", "--model", "m"], "--base-url must begin with http:// or https://"),
        (["--base-url", "localhost:8000", "--model", "m"], "--base-url must begin with http://"),
        (["--base-url", "http://h/v1?a=b", "--model", "m"], "--base-url has a query"),
        (["--base-url", "http://me:pw@h/v1", "--model", "m"], "--base-url must not hold a user"),
        (["--base-url", "http://h:x/v1", "--model", "m"], "--base-url is not a URL: "),
        (["--base-url", "http://h/v1"], "--base-url needs --model as well"),
        (["--base-url", "http://h/v1", "--model", ""], "--base-url needs --model as well"),
        (["--model", "m"], "--model needs --base-url as well, as in --base-url http://"),
        (["--key-env", "X"], "--key-env needs --base-url as well"),
        ([*HERE, "--provider", "pigeon"], "'pigeon' is not one of 'openai', 'anthropic'"),
        (THERE, "The variable OPENAI_API_KEY is not set, so there is no key for http://model."),
        ([*THERE, "--provider", "anthropic"], "The variable ANTHROPIC_API_KEY is not set"),
        ([*HERE, "--key-env", "TINY_KEY"], "The variable TINY_KEY is not set"),
    ],
)
def test_bad_options_have_a_sentence_each(options: list[str], sentence: str) -> None:
    done = run(*options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("bad", ["\n", " ", "\u00e9"], ids=["line-end", "blank", "accent"])
def test_key_that_is_no_header_is_refused_and_not_shown(bad: str) -> None:
    done = run(*HERE, OPENAI_API_KEY=f"{KEY}{bad}")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"at position {len(KEY)}, which no header can" in done.stderr
    assert done.stderr.endswith("It comes from the variable OPENAI_API_KEY.\n")
    assert KEY not in done.stderr


def test_default_is_offline() -> None:
    assert run().stdout == "None, sends a key: False, None\n"


def test_default_is_the_openai_format_and_its_variable() -> None:
    done = run(*HERE, OPENAI_API_KEY=KEY)
    endpoint = Endpoint("http://127.0.0.1:9/v1", "m", "openai", "OPENAI_API_KEY")
    assert done.stdout == f"{endpoint}, sends a key: True, None\n"
    assert KEY not in done.output


def test_empty_variable_is_no_key() -> None:
    assert "OPENAI_API_KEY is not set" in run(*THERE, OPENAI_API_KEY="").stderr
    assert "sends a key: False" in run(*HERE, OPENAI_API_KEY="").stdout
    assert "sends a key: False" in run(*THERE, "--key-env", "", OPENAI_API_KEY=KEY).stdout


def test_hosts_of_this_machine_need_no_key() -> None:
    for host in ("localhost", "LOCALHOST", "127.0.0.7", "[::1]"):
        assert run("--base-url", f"http://{host}:9/v1", "--model", "m").exit_code == 0
    for host in ("127.example.com", "localhost.example.com", "10.0.0.1"):
        assert run("--base-url", f"http://{host}:9/v1", "--model", "m").exit_code == 2


def test_help_names_the_options() -> None:
    shown = run("--help").stdout
    for option in ("--base-url", "--model", "--provider", "--key-env", "--mine"):
        assert option in shown
    assert max(map(len, shown.split("\n"))) <= 80
