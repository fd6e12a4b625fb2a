"""Run the type checker (basedpyright: pyright with its runtime inside the wheel, so offline)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi_course_kit.errors import CourseError

SECONDS = 120


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One type error; `file` is relative to the checked folder, `line` counts from 1."""

    file: str
    line: int
    message: str
    rule: str

    def __str__(self) -> str:
        rule = f" ({self.rule})" if self.rule else ""
        return f"{self.file}:{self.line}: {self.message}{rule}"


def type_check(paths: Sequence[Path], root: Path) -> list[Diagnostic]:
    """The errors that strict mode finds in `paths`, with `pi_course` taken from `root`."""
    with tempfile.TemporaryDirectory(prefix="pi-course-types-") as folder:
        return type_check_all({root: paths}, Path(folder))[root]


def type_check_all(
    roots: Mapping[Path, Sequence[Path]], home: Path
) -> dict[Path, list[Diagnostic]]:
    """`type_check` of several roots in one start of the checker, which costs more than its work.

    The project file goes to `home`. It must lie above the roots when there are several: the
    checker then keeps their packages apart, and otherwise takes one's class for the other's.
    """
    real = {root: root.resolve() for root in roots}
    config = {
        "include": [str(path.resolve()) for paths in roots.values() for path in paths],
        "executionEnvironments": [
            {"root": str(root), "extraPaths": [str(root)]} for root in real.values()
        ],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    report = _report(config, home)
    return {
        root: [
            Diagnostic(
                file=Path(item["file"]).relative_to(folder).as_posix(),
                line=item["range"]["start"]["line"] + 1,
                # The checker puts the reason on lines of its own, indented.
                message=": ".join(line.strip() for line in item["message"].split("\n")),
                rule=item.get("rule", ""),
            )
            for item in report["generalDiagnostics"]
            if item["severity"] == "error" and Path(item["file"]).is_relative_to(folder)
        ]
        for root, folder in real.items()
    }


def _report(config: Mapping[str, object], home: Path) -> dict[str, Any]:
    project = home / "pyrightconfig.json"
    project.write_text(json.dumps(config), encoding="utf-8", newline="\n")
    command = [sys.executable, "-P", "-m", "basedpyright", "--outputjson"]
    command += ["--pythonpath", sys.executable, "--project", str(project)]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL, cwd=home
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise CourseError(
            f"The type checker did not answer ({error}). "
            "Run `pi-course doctor`; the tests do not need it."
        ) from error
