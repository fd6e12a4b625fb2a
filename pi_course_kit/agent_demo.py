"""`pi-course agent --demo`: a scripted model mends a sample project, with real tools.

Only the model is scripted. The files are read and edited, and the tests run, in a temporary
folder; what is shown of them is what really came.
"""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi_course_kit import sample_project
from pi_course_kit.agent_talk import COLUMNS, Talk

if TYPE_CHECKING:
    from pi_course.agent_loop import LoopEvent
    from pi_course.messages import AssistantMessage

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
OLD, NEW = "{', '.join(names[:-1])}, {", "{', '.join(names[:-1])} and {"
TASK = "The test of this project fails. Find out why, and mend it."


def play(on_event: Callable[[LoopEvent], None], say: Callable[[str], object]) -> int:
    """Mend a copy of the sample; returns 0 if its test was red before and is green after."""
    from pi_course.coding_tools import create_coding_tools
    from pi_course.scripted_model import ScriptedModel

    with tempfile.TemporaryDirectory(prefix="pi-course-demo-") as name:
        folder = Path(name).resolve() / "project"
        sample_project.copy_to(folder)
        before, said_before = _test(folder)
        say(f"A copy of a small project lies in {folder}.\n\n> {TASK}")
        # The model types `python`, as models do: it has to be this one, which has pytest.
        path = os.pathsep.join(
            [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        )
        tools = create_coding_tools(folder, environment={"PATH": path, "COLUMNS": COLUMNS})
        delay = 0.02 if sys.stdout.isatty() else 0.0
        model = ScriptedModel(_turns(), chunk_size=4, delay=delay)
        talk = Talk(model, tools, folder, on_event, None, allowed=True)
        result = talk.prompt(TASK)
        after, said_after = _test(folder)
    say(f"\nThe project's test: {said_before}; after the run: {said_after}.")
    return 0 if (before, after, result.reason) == (1, 0, "stop") else 1


def _turns() -> list[AssistantMessage]:
    from pi_course.messages import ToolCall, assistant_message, text

    def turn(said: str, name: str = "", **arguments: Any) -> AssistantMessage:
        if not name:
            return assistant_message([text(said)])
        call = ToolCall(id=next(ids), name=name, arguments=arguments)
        return assistant_message([text(said), call], "toolUse")

    ids = (f"call_{number}" for number in itertools.count(1))
    tests = shlex.join(["python", *PYTEST])
    return [
        turn("First I run the test to see what it says.", "bash", command=tests),
        turn(
            'The last name comes without its "and". I read the function.',
            "read",
            path="greeting.py",
        ),
        turn(
            "A comma stands before the last name, too. There the word belongs.",
            "edit",
            path="greeting.py",
            edits=[{"oldText": OLD, "newText": NEW}],
        ),
        turn("Now the test again.", "bash", command=tests),
        turn('The test passes: the last name is joined by "and" now, the others by commas.'),
    ]


def _test(folder: Path) -> tuple[int, str]:
    """pytest on the project, in a process of its own: its exit code and its last line."""
    done = subprocess.run(
        [sys.executable, *PYTEST],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
    )
    return done.returncode, (done.stdout.strip() or done.stderr.strip()).split("\n")[-1]
