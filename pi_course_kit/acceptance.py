"""The evidence for a chapter's acceptance questions, computed from the chapter's own run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.errors import CourseError
from pi_course_kit.snapshot import cached_snapshot

# Runs in a process of its own, so that a notebook or a learner's package can't disturb it.
_PROGRAM = """
import json, sys
asked = json.load(sys.stdin)
space = {}
exec(asked["run"], space)
print(json.dumps([repr(eval(show, space)) for show in asked["shows"]]))
"""


def evidence(chapter: Checkpoint) -> list[str]:
    """For each question the repr of its `show` expression on the finished chapter."""
    asked = {"run": chapter.run, "shows": [question.show for question in chapter.questions]}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM],
        input=json.dumps(asked),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(cached_snapshot(chapter.number))},
    )
    if done.returncode != 0:
        last = done.stderr.strip().split("\n")[-1]
        raise CourseError(
            f"Chapter {chapter.nn}: the questions' evidence can't be computed ({last}). "
            "Correct `run` or `show` in its checkpoint.toml."
        )
    return list(json.loads(done.stdout))
