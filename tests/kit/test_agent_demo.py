"""`pi-course agent --demo`: offline, with nothing in the environment, and everything real."""

from __future__ import annotations

import json
import subprocess
import sys

AGENT = [sys.executable, "-m", "pi_course_kit.cli", "agent"]


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENT, "--demo", *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={},
        timeout=120,
    )


def test_the_demo_mends_a_real_project_in_an_empty_environment() -> None:
    done = demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 failed" in done.stdout and "1 passed" in done.stdout
    assert done.stdout.index("1 failed") < done.stdout.index("1 passed")
    assert max(map(len, done.stdout.split("\n"))) <= 80
    assert done.stderr == ""


def test_the_demo_as_json() -> None:
    done = demo("--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.split("\n") if line]
    results = [event["result"] for event in events if event["type"] == "tool_end"]
    assert [result["isError"] for result in results] == [True, False, False, False]
    assert events[-1] == {"type": "end", "reason": "stop"}
