"""What every benchmark shares: interleaved timing, and the shape of a row in the table."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict


class Row(TypedDict):
    """One line of the table. `ratio` is value to baseline, or None where nothing is compared.

    `goal` says in words what `ok` was decided by: "<= 1.5x", "<= 60"; both None for a mere fact.
    """

    name: str
    value: float
    unit: str
    baseline: str
    ratio: float | None
    goal: str | None
    ok: bool | None


def compared(
    name: str, value: float, unit: str, baseline: tuple[str, float], *, at_most: float | None = None
) -> Row:
    """A value beside the one it is compared with; the goal is the largest ratio allowed."""
    against, floor = baseline
    ratio = value / floor
    return Row(
        name=name,
        value=value,
        unit=unit,
        baseline=f"{against} {floor:.4g} {unit}".rstrip(),
        ratio=ratio,
        goal=None if at_most is None else f"<= {at_most:g}x",
        ok=None if at_most is None else ratio <= at_most,
    )


def limited(name: str, value: float, unit: str, *, at_most: float | None = None) -> Row:
    """A value with a limit of its own, or a mere fact."""
    return Row(
        name=name,
        value=value,
        unit=unit,
        baseline="",
        ratio=None,
        goal=None if at_most is None else f"<= {at_most:g} {unit}".rstrip(),
        ok=None if at_most is None else value <= at_most,
    )


def medians(subjects: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each subject. They take turns, so that a busy moment hits them all.

    One round before the first is not counted: it warms the page cache and writes bytecode.
    """
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for number in range(rounds + 1):
        for name, subject in subjects.items():
            started = time.perf_counter()
            subject()
            if number:
                taken[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(times) for name, times in taken.items()}


def environment(**extra: str) -> dict[str, str]:
    """The caller's environment with bytecode allowed, as on a learner's machine."""
    dropped = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PI_COURSE_SOURCE"}
    return {name: value for name, value in os.environ.items() if name not in dropped} | extra


def command(
    arguments: Sequence[str | Path], *, env: Mapping[str, str], exits: int = 0
) -> Callable[[], None]:
    """A subject that runs a command; one that ends otherwise than expected is no measurement."""

    def run() -> None:
        done = subprocess.run(
            arguments, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode != exits:
            told = done.stderr.decode(errors="replace") or done.stdout.decode(errors="replace")
            raise RuntimeError(f"{arguments} ended with {done.returncode}, not {exits}: {told}")

    return run
