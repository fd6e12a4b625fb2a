"""From a learner's files to the verdict: check beside bare pytest, and watch from save to verdict.

The bare pytest runs with plugin autoloading off: with it, plugins that happen to be installed here
would be the largest part of the baseline.
"""

from __future__ import annotations

import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import Row, command, compared, environment, limited, medians
from pi_course_kit import checkpoint, runner, snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.practice import MARKER, PYPROJECT
from pi_course_kit.results import CheckResult
from pi_course_kit.watch import Watch

ROUNDS = 9
SAVES = 30
# Chapter, what it stands for, the goal of watch in ms.
CASES = (
    ("01", "without pydantic", 100),
    ("02", "without pydantic", 100),
    ("03", "with pydantic", 180),
)


def rows() -> list[Row]:
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, kind, goal in CASES:
            chapter = checkpoint.find(name)
            folder = _green_folder(chapter, Path(scratch) / chapter.id)
            found += _check(chapter, folder)
            found += _watch(chapter, folder, kind, goal)
    return found


def _green_folder(chapter: Checkpoint, folder: Path) -> Path:
    snapshot.write(snapshot.snapshot_files(chapter.number), folder)
    snapshot.write(snapshot.test_files(chapter.number), folder)
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8", newline="\n")
    marker = f'{{"kit": "0", "chapter": "{chapter.id}"}}\n'
    (folder / MARKER).write_text(marker, encoding="utf-8", newline="\n")
    return folder


def _check(chapter: Checkpoint, folder: Path) -> list[Row]:
    tool = Path(sysconfig.get_path("scripts")) / "pi-course"
    env = environment(
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PI_COURSE_WORKSPACE=str(folder.parent / "workspace")
    )
    bare = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--rootdir",
        folder,
        "-c",
        folder / "pyproject.toml",
    ]
    took = medians(
        {
            "pytest": command([*bare, folder / "tests" / chapter.test_name], env=env),
            "check": command([tool, "check", folder], env=env),
            "runner": lambda: _green(runner.check(folder, chapter=chapter)),
        },
        ROUNDS,
    )
    floor = (f"python -m pytest, chapter {chapter.nn}", took["pytest"])
    return [
        compared(f"pi-course check, chapter {chapter.nn}", took["check"], "ms", floor, at_most=1.5),
        compared(f"runner.check(), chapter {chapter.nn}", took["runner"], "ms", floor),
    ]


def _watch(chapter: Checkpoint, folder: Path, kind: str, goal: int) -> list[Row]:
    """Save to verdict; each save changes the file by one comment, so the verdict stays."""
    file = folder / chapter.artifact
    text = file.read_text(encoding="utf-8")
    times: list[float] = []
    with Watch(folder, chapter) as watch:
        _green(watch.events.get(timeout=60))
        for number in range(SAVES):
            started = time.perf_counter()
            file.write_text(f"{text}# {number}\n", encoding="utf-8", newline="\n")
            _green(watch.events.get(timeout=60))
            times.append((time.perf_counter() - started) * 1000)
    name = f"watch, save to verdict, chapter {chapter.nn} ({kind})"
    return [limited(name, median(times), "ms", at_most=goal)]


def _green(result: object) -> None:
    if not isinstance(result, CheckResult) or result.verdict != "green":
        raise RuntimeError(f"a green folder was checked as {result}")
