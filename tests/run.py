"""Everything that CI runs, one step after the other, and one last line that counts what ran.

A step that fails does not stop the next one, so that one run shows all there is to repair;
the whole fails when any step failed, or when a step ran nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = Path(sysconfig.get_path("scripts"))
CELL_SECONDS = 120

SECRET = "5C1f0e9a7b"  # a part of every key that the tests use: one that gets out is found by it
RECORDED = ["-o", "junit_family=xunit1", "-o", "junit_logging=all", "-o", "log_level=DEBUG"]


@dataclass
class Report:
    """What ran so far: the counts in the order of the summary, and the steps that failed."""

    counts: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def count(self, what: str, number: int) -> None:
        self.counts[what] = number
        if number == 0:
            self.failed.append(f"no {what} ran")

    def summary(self) -> str:
        ran = ", ".join(f"{number} {what}" for what, number in self.counts.items())
        if self.failed:
            return f"FAILED: {', '.join(self.failed)} ({ran})"
        return f"All green: {ran}."


def environment(scratch: Path) -> dict[str, str]:
    """The caller's environment without what would let it decide which code or settings run."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE"}
    dropped |= {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PI_COURSE_SOURCE"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {
        "PI_COURSE_CACHE": str(scratch / "cache"),
        "IPYTHONDIR": str(scratch / "ipython"),
        "JUPYTER_CONFIG_DIR": str(scratch / "jupyter"),
        "PATH": os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)]),
        "PYTHONUTF8": "1",
    }


@contextmanager
def step(report: Report, name: str, scratch: Path) -> Iterator[Callable[..., None]]:
    """Gives `run`, which starts a command and puts the step among the failed when it fails.

    Each step has a workspace of its own: progress made in one would show in the next.
    """
    started = time.monotonic()
    print(f"\n== {name}", flush=True)
    env = environment(scratch) | {"PI_COURSE_WORKSPACE": str(scratch / name)}

    def run(*command: str | Path, output: Path | None = None) -> None:
        with open(output or os.devnull, "wb") as file:
            done = subprocess.run(
                [str(part) for part in command],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file if output else None,
                check=False,
            )
        if done.returncode != 0 and name not in report.failed:
            report.failed.append(name)

    yield run
    print(f"   {name}: {time.monotonic() - started:.1f} s", flush=True)


def junit(path: Path) -> list[ElementTree.Element]:
    """The test cases that really ran; a skipped one did not."""
    if not path.exists():
        return []
    cases = ElementTree.parse(path).getroot().iter("testcase")
    return [case for case in cases if case.find("skipped") is None]


def let_a_key_out(path: Path) -> list[str]:
    """The test cases that printed or logged a key, or showed it in a traceback."""
    return [
        f"{case.get('classname')}.{case.get('name')}"
        for case in junit(path)
        if SECRET in ElementTree.tostring(case, encoding="unicode")
    ]


def verified(path: Path) -> tuple[int, int]:
    """Show what `pi-course verify --json` reports; how many snapshots and faults it ran."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        print(f"pi-course verify gave no report: {error}", flush=True)
        return 0, 0
    chapters = report.get("chapters", [])
    if not chapters:
        print(report.get("error", "pi-course verify proved no chapter"), flush=True)
    for chapter in chapters:
        states: Counter[str] = Counter(chapter["rules"].values())
        shown = ", ".join(f"{number} rules {state}" for state, number in sorted(states.items()))
        print(f"{chapter['chapter']}: {shown}; {chapter['faults']} faults")
        for finding in chapter["findings"]:
            print(f"  {finding['rule']}, {finding['where']}: {finding['what']} {finding['do']}")
    return len(chapters), sum(chapter["faults"] for chapter in chapters)


def run_all(scratch: Path, *, fast: bool) -> Report:
    report = Report()
    python = sys.executable
    pytest = [python, "-m", "pytest", "-q", "-rs", *RECORDED]

    with step(report, "lint", scratch) as run:
        run(SCRIPTS / "ruff", "check", ".")
    with step(report, "format", scratch) as run:
        run(SCRIPTS / "ruff", "format", "--check", ".")
    with step(report, "types", scratch) as run:
        run(SCRIPTS / "basedpyright", "--pythonpath", python)

    with step(report, "snapshots", scratch) as run:
        out = scratch / "verify.json"
        page = ROOT / "build" / "verify"
        run(SCRIPTS / "pi-course", "verify", "--json", "--report", page, output=out)
        snapshots, faults = verified(out)
        print(f"the matrix of chapters and rules: {page / 'index.html'}")

    with step(report, "tests", scratch) as run:
        out = scratch / "tests.xml"
        chosen = ["-m", "not slow and not browser"] if fast else []
        go_on = "--continue-on-collection-errors"
        run(*pytest, go_on, f"--junitxml={out}", *chosen)
        report.count("tests", len(junit(out)))
        for case in let_a_key_out(out):
            report.failed.append(f"{case} let a key out")

    if not fast:
        with step(report, "notebooks", scratch) as run:
            out = scratch / "notebooks.xml"
            nbval = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout", CELL_SECONDS]
            run(*pytest, f"--junitxml={out}", *map(str, nbval), "notebooks")
            cells = junit(out)
            report.count("notebooks", len({cell.get("file") for cell in cells}))
            report.count("cells", len(cells))
        if report.counts["notebooks"] != len(list((ROOT / "notebooks").glob("*.ipynb"))):
            report.failed.append("a notebook ran no cell")

    report.count("snapshots", snapshots)
    report.count("faults", faults)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description="Run what CI runs.")
    parser.add_argument("--fast", action="store_true", help="no notebooks, wheel or browser")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pi-course-") as scratch:
        report = run_all(Path(scratch), fast=options.fast)
    print(f"\n{report.summary()} {time.monotonic() - started:.0f} s")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
