"""Run the type checker (basedpyright: pyright with its runtime inside the wheel, so offline)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    root = root.resolve()
    config = {
        "include": [str(path.resolve()) for path in paths],
        "extraPaths": [str(root)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    with tempfile.TemporaryDirectory(prefix="pi-course-types-") as folder:
        project = Path(folder) / "pyrightconfig.json"
        project.write_text(json.dumps(config), encoding="utf-8", newline="\n")
        command = [sys.executable, "-P", "-m", "basedpyright", "--outputjson"]
        command += ["--pythonpath", sys.executable, "--project", str(project)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=SECONDS,
                stdin=subprocess.DEVNULL,
                cwd=folder,
            )
            report = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise CourseError(
                f"The type checker did not answer ({error}). "
                "Run `pi-course doctor`; the tests do not need it."
            ) from error
    return [
        Diagnostic(
            file=_relative(Path(item["file"]), root),
            line=item["range"]["start"]["line"] + 1,
            message=" ".join(item["message"].split()),
            rule=item.get("rule", ""),
        )
        for item in report["generalDiagnostics"]
        if item["severity"] == "error"
    ]


def _relative(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
