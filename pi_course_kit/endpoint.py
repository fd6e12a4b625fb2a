"""Who answers `chat` and `agent`, and through whose `pi_course`: from options to a model."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pi_course_kit.errors import CourseError

if TYPE_CHECKING:
    from pi_course.messages import Model

KEY_ENV = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
EXAMPLE = "http://127.0.0.1:11434/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model's API as the options name it. It holds the name of a variable, never the key."""

    base_url: str
    model: str
    provider: str
    key_env: str  # "" for none

    @property
    def sends_key(self) -> bool:
        return bool(self.key_env and os.environ.get(self.key_env))


OPTIONS = (
    click.option("--base-url", metavar="URL", help=f"Where a model's API is, as in {EXAMPLE}."),
    click.option("--model", metavar="NAME", help="The model, by the name that it has there."),
    click.option(
        "--provider",
        type=click.Choice([*KEY_ENV]),
        help="The format that is spoken there (default: openai, as most servers do).",
    ),
    click.option(
        "--key-env",
        metavar="NAME",
        help="The variable that holds the key (default: OPENAI_API_KEY or ANTHROPIC_API_KEY; "
        "a server on this machine may need none). '' sends none.",
    ),
    click.option(
        "--mine",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Run on the pi_course/ of your practice folder (default inside of one that is done).",
    ),
)


def options(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: OPTIONS, of which the command gets `endpoint` (None: offline) and `mine`."""

    @functools.wraps(command)
    def collected(
        base_url: str | None,
        model: str | None,
        provider: str | None,
        key_env: str | None,
        **more: Any,
    ) -> None:
        command(endpoint=_endpoint(base_url, model, provider, key_env), **more)

    decorated: Callable[..., None] = collected
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated


def _endpoint(
    base_url: str | None, model: str | None, provider: str | None, key_env: str | None
) -> Endpoint | None:
    given = {"--model": model, "--provider": provider, "--key-env": key_env}
    if base_url is None:
        if alone := [name for name, value in given.items() if value is not None]:
            raise CourseError(
                f"{alone[0]} needs --base-url as well, as in --base-url {EXAMPLE}. "
                "Without any of them the answers come from here, offline."
            )
        return None
    if not model:
        raise CourseError("--base-url needs --model as well: a name that the server knows.")
    provider = provider or "openai"
    return Endpoint(base_url, model, provider, KEY_ENV[provider] if key_env is None else key_env)


def serve_runtime(mine: Path | None = None, *, needs: int | None = None) -> Path | None:
    """Let `import pi_course` mean the learner's package or the finished one, in this process.

    `mine` names the learner's folder. Without it the practice folder around the current one is
    taken if its chapter `needs`, or a later one, is written there. Returns the folder if it is
    the learner's.
    """
    from pi_course_kit import practice, snapshot, source
    from pi_course_kit.checkpoint import folders
    from pi_course_kit.data import data_dir

    folder = practice.practice_folder(mine).resolve() if mine is not None else _around(needs)
    brings = source.brought_by(data_dir("checkpoints"))
    if folder is not None:
        source.serve(folder, brings, "your folder")
    else:
        # Not simply `import pi_course`: started inside a practice folder, that is the learner's.
        last = int(folders()[-1].name[:2])
        source.serve(snapshot.cached_snapshot(last), brings, "the finished runtime")
    return folder


def _around(needs: int | None) -> Path | None:
    from pi_course_kit import practice, symbols

    if needs is None:
        return None
    try:
        folder = practice.practice_folder()
    except CourseError:
        return None
    if not _known(folder):
        return None
    chapter = practice.chapter_of(folder)
    there = chapter.number > needs or (
        chapter.number == needs and not symbols.missing(chapter, folder)
    )
    return folder.resolve() if there else None


def _known(folder: Path) -> bool:
    """Whether the learner's own workspace knows the folder. Anybody can make one that looks so,
    and its code would run with the key in the environment.
    """
    from pi_course_kit.workspace import progress_for, workspace

    recorded = {entry.get("folder") for entry in progress_for().read().values()}
    return str(folder) in recorded or folder.resolve().is_relative_to(workspace().resolve())


def open_model(endpoint: Endpoint) -> Model:
    """A model of the `pi_course` that is served. Nothing is sent yet."""
    try:
        return _open(endpoint)
    except (ImportError, NotImplementedError, SyntaxError) as error:
        raise CourseError(
            f"These files can't reach a model yet: {str(error).rstrip('.')}. "
            "Make chapter 05 green there first."
        ) from error


def _open(endpoint: Endpoint) -> Model:
    from pi_course.providers import anthropic_messages, openai_compatible
    from pi_course.providers.chunks import ProviderError
    from pi_course.providers.http_transport import checked_base_url

    try:
        base_url = checked_base_url(endpoint.base_url)
    except ProviderError as error:
        raise CourseError(str(error).replace("base_url", "--base-url", 1)) from None
    key = _key(endpoint)
    if endpoint.provider == "anthropic":
        make_model = anthropic_messages.create_anthropic_model
        make_transport = anthropic_messages.create_anthropic_transport
    else:
        make_model = openai_compatible.create_openai_compatible_model
        make_transport = openai_compatible.create_openai_compatible_transport
    try:
        transport = make_transport(base_url=base_url, api_key=key)
    except ProviderError as error:  # the key is no header
        raise CourseError(f"{error} It comes from the variable {endpoint.key_env}.") from None
    return make_model(provider=endpoint.provider, model=endpoint.model, transport=transport)


def _key(endpoint: Endpoint) -> str | None:
    """The key, if one is to be sent. A server on this machine may do without."""
    import httpx

    from pi_course.providers.http_failure import is_loopback

    name = endpoint.key_env
    if endpoint.sends_key:
        return os.environ[name]
    usual = name == KEY_ENV[endpoint.provider]
    if not name or (usual and is_loopback(httpx.URL(endpoint.base_url).host)):
        return None
    raise CourseError(
        f"The variable {name} is not set, so there is no key for {endpoint.base_url}. "
        "Set it, or name another one with --key-env; --key-env '' sends none."
    )
