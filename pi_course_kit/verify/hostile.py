"""Hostile students: accidents and tricks that would be green if `check` trusted the learner's code.

The claim is this list, not a sandbox. Each must end red within ten seconds, say what happened in
a sentence of its own, and leave no process behind. Whoever finds another way adds a student here.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from pi_course_kit import runner, snapshot
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.results import CheckResult
from pi_course_kit.verify.tricks import (
    ABOVE,
    AGREEABLE,
    BLINDED,
    FETCHED,
    FORGED,
    MODULES,
    NO_LOOP,
    OBJECTS,
    PLUGINS,
    POLICY,
    SELF_RESTORING,
    SWAPPED,
    TAKEN_BACK,
    TAKES_OVER,
    UNRUN,
)

VERSION = 3  # part of the digest under which results are kept: raise it with any change here
SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Student:
    """`prepare` changes a practice folder; `says` stands in the sentence that check gives."""

    name: str
    prepare: Callable[[Checkpoint, Path], None]
    says: str
    only: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`wrong` is "" for a student who was treated as it should be."""

    student: str
    said: str
    seconds: float
    wrong: str


def code(text: str) -> Callable[[Checkpoint, Path], None]:
    """A student whose teaching files are all this text, whichever a test imports first."""

    def prepare(chapter: Checkpoint, folder: Path) -> None:
        for file in chapter.files:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8", newline="\n")

    return prepare


def _deleted(chapter: Checkpoint, folder: Path) -> None:
    (folder / "tests" / chapter.test_name).unlink()


def _edited(chapter: Checkpoint, folder: Path) -> None:
    names = dict.fromkeys(test.partition("[")[0] for test in chapter.tests)
    text = "\n\n".join(f"def {name}():\n    pass" for name in names)
    (folder / "tests" / chapter.test_name).write_text(text, encoding="utf-8", newline="\n")


def _conftest(chapter: Checkpoint, folder: Path) -> None:
    text = """\
        import pytest

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(item, call):
            outcome = yield
            outcome.get_result().outcome = "passed"
        """
    for place in (folder / "conftest.py", folder / "tests" / "conftest.py"):
        place.write_text(dedent(text), encoding="utf-8", newline="\n")


def about(text: str) -> Callable[[Checkpoint, Path], None]:
    """Like `code`, with the course's own places in the text: {test}, {target}, {folder}."""

    def prepare(chapter: Checkpoint, folder: Path) -> None:
        target = chapter.folder / "target"
        places = {
            "test": repr(str(runner.test_path(chapter))),
            "target": repr(str(target / chapter.files[0])),
            "folder": repr(str(target.parent)),
        }
        code(dedent(text).format(**places))(chapter, folder)

    return prepare


def _linked(chapter: Checkpoint, folder: Path) -> None:
    """Links to another copy of the finished files, outside of the folder."""
    copy = folder.with_name(f"{folder.name}-copy")
    snapshot.write(snapshot.snapshot_files(chapter.number), copy)
    for file in chapter.files:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(copy / file)


STUDENTS = (
    Student("an endless loop", code("while True:\n    pass\n"), "did not end within"),
    Student(
        "all of the memory",
        # By leaps, since touching a gigabyte takes longer than a test may on a busy machine.
        code("text = 'x'\nwhile True:\n    text *= 4000\n"),
        "memory",
    ),
    Student("os._exit(0)", code("import os\nos._exit(0)\n"), "ended Python itself"),
    Student("sys.exit(0) at import", code("import sys\nsys.exit(0)\n"), "sys.exit"),
    Student(
        "100 MB of print",
        code("for _ in range(100_000):\n    print('x' * 1000)\n"),
        "printed more than",
    ),
    Student("deleted tests", _deleted, "is missing in your folder"),
    Student("edited tests", _edited, "was changed in your folder"),
    Student("a conftest.py that passes everything", _conftest, "conftest.py in your folder"),
    Student(
        "a changed pytest",
        code(f"{MODULES}modules['_pytest.python'].Function.runtest = lambda self: None\n"),
        "changed pytest",
    ),
    Student("pytest, by accident", code("import pytest\n"), "imports pytest at"),
    Student("the modules of the check", code("import sys\nsys.modules\n"), "uses sys.modules at"),
    Student("a patch that takes itself back", code(MODULES + SELF_RESTORING), "changed pytest"),
    Student(
        "a changed encoder of JSON",
        code(f"{MODULES}modules['json.encoder'].JSONEncoder.encode = lambda *a: '{{}}'\n"),
        "json.encoder.JSONEncoder.encode",
    ),
    Student(
        "an AssertionError that is never raised",
        code(f"{MODULES}modules['builtins'].AssertionError = type('Never', (Exception,), {{}})\n"),
        "builtins.AssertionError",
    ),
    Student(
        "names put into the tests",
        code(
            MODULES
            + "for name in list(modules):\n"
            + "    if '.parent.tests.' in name:\n"
            + "        modules[name].isinstance = lambda *a: True\n"
        ),
        "changed pytest",
    ),
    Student("the tests' code swapped", code(MODULES + SWAPPED), "changes the code"),
    Student(
        "a trace function",
        code("import sys\ngetattr(sys, 'set' + 'trace')(lambda *a: None)\n"),
        "sys.settrace",
    ),
    Student(
        "the frames of the check",
        code("import sys\ngetattr(sys, '_get' + 'frame')(1)\n"),
        "uses sys._getframe",
    ),
    Student("the frames that inspect hands out", code(ABOVE), "uses sys._getframe"),
    Student(
        "the modules of the check through another one",
        code("import asyncio\nasyncio.sys.modules['_pytest.runner']\n"),
        "uses sys.modules at",
    ),
    Student("a plugin of pytest that looks away", code(PLUGINS + BLINDED), "changed pytest"),
    Student("tests that are not run", code(PLUGINS + UNRUN), "(the run of test_"),
    Student("the objects of the check", code(MODULES + OBJECTS), "uses gc.get_objects"),
    Student("forged records", code(FORGED), "wrote into the records"),
    Student("code that no one looked at", code("exec('import sys; sys.modules')\n"), "uses exec"),
    Student(
        "the solution through a program",
        about("import subprocess\nsubprocess.run(['cat', {target}])\n"),
        "a program",
    ),
    Student(
        "the solution through a link",
        about("import os\nos.symlink({target}, 'mine')\nopen('mine').read()\n"),
        "reads the course's own",
    ),
    Student(
        "the solution from the folder above",
        about("import os\nfd = os.open({folder}, os.O_RDONLY)\nos.open('target', 0, dir_fd=fd)\n"),
        "opens the folder",
    ),
    Student("the solution fetched by a program", about(FETCHED), ""),
    Student("a file of 2 MB", code("#" * 2_000_000), "no chapter's file has 1"),
    Student("nested deeper than Python parses", code("x = " + "-" * 200_000 + "1\n"), ""),
    Student("links to another copy", _linked, "is a link that leads out"),
    Student(
        "the course's test overwritten",
        about("open({test}, 'w').close()\n"),
        "which belongs to the course",
    ),
    Student("answers that equal everything", code(AGREEABLE), ""),
    Student("a loop that runs nothing", code(AGREEABLE + NO_LOOP), ""),
    Student("a loop that runs nothing and is put back", code(AGREEABLE + TAKEN_BACK), ""),
    Student("answers that take over what they meet", code(AGREEABLE + TAKES_OVER), ""),
    Student("an event loop that runs nothing", code(AGREEABLE + POLICY), ""),
    Student(
        "the course's own solution",
        code(
            """\
            import pi_course_kit.checkpoint as found
            for path in found.folders():
                for file in sorted((path / "target").rglob("*.py")):
                    exec(file.read_text(encoding="utf-8"))
            """
        ),
        "imports pi_course_kit",
    ),
    Student("a fork loop", code("import os\nwhile True:\n    os.fork()\n"), "processes", "linux"),
    Student(
        "tests emptied in memory",
        code(
            MODULES
            + "for name, module in list(modules.items()):\n"
            + "    for test in [test for test in vars(module) if test.startswith('test_')]:\n"
            + "        setattr(module, test, lambda: None)\n"
        ),
        "changed pytest",
    ),
    Student(
        "a thread that exits",
        code(
            """\
            import os, threading
            threading.Timer(0.01, os._exit, (0,)).start()
            while True:
                pass
            """
        ),
        "ended Python itself",
    ),
)


def skipped(student: Student) -> str:
    """Why a student can't be tried here; "" when it can."""
    if student.only and student.only != sys.platform:
        return f"needs {student.only}"
    return ""


def attempt(student: Student, chapter: Checkpoint, folder: Path) -> Outcome:
    """Let the student loose on a fresh practice folder and look at what `check` makes of it."""
    student.prepare(chapter, folder)
    began = time.monotonic()
    result = runner.check(folder, chapter=chapter)
    seconds = time.monotonic() - began
    said = sentence(result)
    return Outcome(student.name, said, seconds, _wrong(student, result, said, seconds, folder))


def sentence(result: CheckResult) -> str:
    """The first thing that a learner reads of it."""
    failed = [test.message for test in result.tests if test.outcome != "passed" and test.message]
    options = [result.sentence, *result.notes, *failed[:1], *result.missing]
    text = " ".join(next((text for text in options if text), "")[:2000].split())
    # The same on every machine: it is kept in proof.json.
    return re.sub(r"[\w.-]+\.parent\.tests\.", "", re.sub(r" at 0x[0-9a-f]+", "", text))


def _wrong(student: Student, result: CheckResult, said: str, seconds: float, folder: Path) -> str:
    if result.verdict != "red":
        return f"it is {result.verdict}"
    if not said or student.says not in said:
        return f"it is told {said!r}, which does not say {student.says!r}"
    if seconds > SECONDS:
        return f"it took {seconds:.0f} s, more than {SECONDS:g}"
    left = processes_in(folder)
    return f"{len(left)} processes were left running" if left else ""


def processes_in(folder: Path) -> list[int]:
    """Processes whose current folder is this one; [] where the system can't say."""
    found: list[int] = []
    for entry in os.listdir("/proc") if sys.platform == "linux" else ():
        try:
            if entry.isdigit() and Path(os.readlink(f"/proc/{entry}/cwd")) == folder.resolve():
                found.append(int(entry))
        except OSError:
            continue
    return found
