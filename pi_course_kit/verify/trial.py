"""Plant one rule's fault in a sample course and see which rules go red.

`python -m pi_course_kit.verify.trial FAULT FOLDER` prints what verify found there as JSON. It is a
process of its own because the kit reads its course once. The empty name plants nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pi_course_kit.verify import sample
from pi_course_kit.verify.rule import Rule

SECONDS = 120


@dataclass(frozen=True, slots=True)
class Trial:
    """A planted fault ("pins", "pins/skip") and the rules that went red; "" planted nothing."""

    name: str
    red: tuple[str, ...]
    error: str

    @property
    def caught(self) -> bool:
        return not self.error and self.red == ((self.rule,) if self.rule else ())

    @property
    def rule(self) -> str:
        return self.name.partition("/")[0]


def self_test(rules: Sequence[Rule]) -> Iterator[Trial]:
    """The sample course untouched, then with each rule's fault."""
    with TemporaryDirectory(prefix="pi-course-") as folder, ThreadPoolExecutor(2) as pool:
        names = ["", *(name for rule in rules for name in rule.plants)]
        waiting = [pool.submit(_trial, n, Path(folder) / str(i)) for i, n in enumerate(names)]
        for trial in waiting:
            yield trial.result()


def _trial(name: str, folder: Path) -> Trial:
    environment = {k: v for k, v in os.environ.items() if k != "PI_COURSE_SOURCE"}
    environment |= {"PI_COURSE_DATA": str(folder), "PI_COURSE_CACHE": str(folder / "cache")}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__, name, str(folder)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=SECONDS,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Trial(name, (), str(error))
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return Trial(name, (), done.stderr.strip()[-2000:])
    states = [state for row in found["chapters"] for state in row["rules"].items()]
    return Trial(name, tuple(sorted({rule for rule, state in states if state == "failed"})), "")


def main(name: str, root: Path) -> None:
    from pi_course_kit import checkpoint
    from pi_course_kit.verify import text
    from pi_course_kit.verify.matrix import RULES, prove

    chosen = [each for each in RULES if name in each.plants]
    sample.write(root)
    for each in chosen:
        if not each.settled:
            each.plants[name](root)
    sample.settle(root)
    sign()
    for each in chosen:
        if each.settled:
            each.plants[name](root)
    print(json.dumps(text.to_json(prove(checkpoint.checkpoints()), RULES)))


def sign() -> None:
    """A proof.json for each chapter, as `--deep` would leave it: its runs would take minutes."""
    from pi_course_kit import checkpoint
    from pi_course_kit.verify import hostile, proof
    from pi_course_kit.verify.case import Course, opened
    from pi_course_kit.verify.matrix import scratch_folder
    from pi_course_kit.verify.rule import rebuilt

    said = {student.name: "It is red." for student in hostile.STUDENTS}
    with scratch_folder() as scratch:
        course = Course(checkpoint.checkpoints(), scratch, Future())
        for chapter in course.chapters:
            with opened(course, chapter) as case:
                if not case.test.is_file():
                    continue
                signed: proof.Proof = {
                    "mutants": {"total": 20, "noticed": 20, "survivors": []},
                    "commands": {"ran": proof.run_commands(case), "wrong": {}},
                }
                signed["mutants"]["digest"] = proof.mutants_digest(case)
                signed["commands"]["digest"] = proof.commands_digest(case)
                if rebuilt(case):
                    digest = proof.hostile_digest(case)
                    signed["hostile"] = {"digest": digest, "students": said, "wrong": {}}
                proof.write(case, signed)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
