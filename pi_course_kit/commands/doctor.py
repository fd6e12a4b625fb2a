"""pi-course doctor"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click


@click.command("doctor")
def command() -> None:
    """Look for what is missing or wrong on this machine."""
    bad = 0
    for good, what, words in _findings():
        bad += not good
        for number, line in enumerate(textwrap.wrap(words, 60, break_long_words=False)):
            head = f"{'ok' if good else 'wrong':<6} {what:<13}" if number == 0 else ""
            click.echo(f"{head:<20} {line}")
    if bad:
        click.echo(f"\n{bad} to mend.")
        raise SystemExit(2)
    click.echo("\nAll is there.")


def _findings() -> Iterator[tuple[bool, str, str]]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield sys.version_info >= (3, 11), "Python", f"{version} at {sys.executable} (3.11 or newer)"
    for name in ("pydantic", "httpx", "pytest", "jupyterlab", "ipywidgets", "basedpyright"):
        there = find_spec(name) is not None
        yield there, name, "installed" if there else "install pi-course again into this Python"
    yield _course()
    yield _kernel()
    yield _workspace()
    yield _progress()


def _course() -> tuple[bool, str, str]:
    from pi_course_kit.checkpoint import checkpoints
    from pi_course_kit.errors import CourseError

    try:
        return True, "chapters", f"{len(checkpoints())} found"
    except CourseError as error:
        return False, "chapters", str(error)


def _kernel() -> tuple[bool, str, str]:
    """A user's own python3 kernelspec can point to another Python, where the kit is not."""
    if find_spec("jupyter_client") is None:
        return False, "kernel", "install pi-course again into this Python"
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return False, "kernel", "no python3 kernel: install ipykernel into this Python"
    program = Path(spec.argv[0])
    if program.is_absolute() and program.absolute() != Path(sys.executable).absolute():
        return (
            False,
            "kernel",
            f"the kernel python3 runs {program}, not this Python; `pi-course lab` uses the "
            "right one, other front ends need that kernelspec removed",
        )
    return True, "kernel", "python3 runs this Python"


def _workspace() -> tuple[bool, str, str]:
    import tempfile

    from pi_course_kit.data import checkout
    from pi_course_kit.workspace import workspace

    folder, root = workspace(), checkout()
    if root is not None and folder.resolve().is_relative_to(root.resolve()):
        return (
            False,
            "workspace",
            f"{folder} lies inside the course's checkout, where your code would mix with ours: "
            "set PI_COURSE_WORKSPACE to a folder outside",
        )
    place = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=place):
            pass
    except OSError as error:
        return False, "workspace", f"{folder} can't be written: {error.strerror}"
    return True, "workspace", str(folder)


def _progress() -> tuple[bool, str, str]:
    from pi_course_kit.errors import CourseError
    from pi_course_kit.workspace import progress_for

    try:
        known = progress_for().read()
    except CourseError as error:
        return False, "progress", str(error)
    return True, "progress", f"{len(known)} chapters begun" if known else "nothing recorded yet"
