"""Learner code that is hostile by accident: always red, with a sentence, and nothing left running.

No case waits for a clock other than the short limits of the fixture; the time-out of a check that
hangs is the test runner's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pi_course_kit.limits import MIB, Limits
from pi_course_kit.runner import CheckResult, Session

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, prctl or RLIMIT_AS")

SOLUTION = """\
def greet(name):
    return f"hello {name}"


def count(text):
    return len(text.split())


def join(lines):
    return "\\n".join(lines)
"""

REST = SOLUTION[SOLUTION.index("def count") :]

SHORT = Limits(test_seconds=0.6, grace_seconds=0.6, output_bytes=2_000_000)

SWALLOW = """\
def greet(name):
    while True:
        try:
            while True:
                pass
        except:
            pass
"""


# By no name that a look at the text would find.
GET = "import sys, faulthandler; getattr(sys, 'mod' + 'ules').__getitem__"


@pytest.fixture
def red(learner):
    """Check `text` as pi_course/words.py: red, not an error, and no process left in the folder."""

    def red(text: str, **changed: float) -> CheckResult:
        learner.write(text)
        result = learner.check(**changed)
        assert result.verdict == "red", result
        assert running_in(learner.folder) == []
        return result

    return red


def running_in(folder: Path) -> list[str]:
    """What still runs there, after a moment in which the killed may die."""
    found = ["?"]
    for _ in range(100):
        found = _running_in(folder)
        if not found:
            break
        threading.Event().wait(0.02)
    return found


def _running_in(folder: Path) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        try:
            if Path(os.readlink(process / "cwd")).is_relative_to(folder):
                found.append((process / "cmdline").read_text("utf-8"))
        except OSError:
            continue
    return found


def focused(learner) -> Path:
    return learner.chapter.folder / "parent" / "tests" / "test_03_words.py"


def first(result: CheckResult):
    return result.tests[0]


def test_an_endless_loop_is_stopped_at_its_line(red) -> None:
    result = red("def greet(name):\n    while True:\n        pass\n" + REST)
    assert result.sentence.startswith("Your code did not end within 0.6 s; it was at pi_course/")
    assert first(result).where in ("pi_course/words.py:2 in greet", "pi_course/words.py:3 in greet")
    assert [test.outcome for test in result.tests] == ["failed", "missing", "missing"]
    assert result.tests[1].message == "not run: the run ended in test_greets_by_name"


def test_an_endless_loop_that_swallows_everything_is_killed(red) -> None:
    result = red(SWALLOW)
    assert "in test_greets_by_name and swallowed the interruption" in result.sentence
    assert first(result).outcome == "failed"


def test_an_endless_loop_at_import_is_stopped(red) -> None:
    result = red("while True:\n    pass\n" + SOLUTION)
    assert result.sentence.startswith("Your code did not end within 0.6 s; it was at pi_course/")


def test_an_endless_loop_in_a_task_is_stopped(red) -> None:
    result = red(
        """\
        import asyncio

        async def spin():
            while True:
                pass

        async def both():
            task = asyncio.ensure_future(spin())
            await asyncio.sleep(0)
            return "hello Ann"

        def greet(name):
            return asyncio.run(both())
        """
    )
    assert "pi_course/words.py:5 in spin" in result.sentence or ":4 in spin" in result.sentence


def test_a_coroutine_that_waits_for_ever_is_named(red) -> None:
    result = red(
        """\
        import asyncio

        async def wait():
            await asyncio.Event().wait()

        def greet(name):
            return asyncio.run(wait())
        """
    )
    assert "it was at pi_course/words.py:4 in wait" in result.sentence


def test_a_lock_that_is_never_released_is_stopped(red) -> None:
    result = red(
        """\
        import threading

        def greet(name):
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        """
    )
    assert "it was at pi_course/words.py:6 in greet" in result.sentence


def test_a_thread_that_never_ends_does_not_keep_the_run(learner) -> None:
    learner.write(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n" + SOLUTION
    )
    assert learner.check().verdict == "green"
    assert running_in(learner.folder) == []


@linux
def test_a_memory_hog_is_refused(red) -> None:
    result = red(
        "def greet(name):\n    return bytearray(8 << 30)\n" + REST,
        memory_bytes=256 * MIB,
        test_seconds=20,
    )
    assert result.sentence == (
        "Your code asked for more memory than check allows at pi_course/words.py:2 in greet."
    )
    assert [test.outcome for test in result.tests] == ["failed", "passed", "passed"]


@linux
def test_memory_that_fills_bit_by_bit_is_refused(red) -> None:
    result = red(
        """\
        kept = []

        def greet(name):
            while True:
                kept.append(bytearray(1 << 20))
        """,
        memory_bytes=256 * MIB,
        test_seconds=20,
    )
    assert "more memory than check allows" in result.sentence


def test_os_exit_is_red(red) -> None:
    result = red("import os\ndef greet(name):\n    os._exit(0)\n" + REST)
    assert result.sentence == (
        "Your code ended Python itself in test_greets_by_name: exit code 0 by os._exit(), "
        "before the test was over."
    )
    assert [test.outcome for test in result.tests] == ["failed", "missing", "missing"]


def test_os_exit_at_import_is_red(red) -> None:
    assert "exit code 0" in red("import os\nos._exit(0)\n" + SOLUTION).sentence


def test_os_exit_in_another_thread_after_the_tests_is_red(red) -> None:
    result = red(
        """\
        import os, threading
        def greet(name):
            threading.Thread(target=os._exit, args=(0,)).start()
            while True: pass
        """
    )
    assert "Your code ended Python itself" in result.sentence


def test_sys_exit_in_a_function_is_red(red) -> None:
    result = red("import sys\ndef greet(name):\n    sys.exit(0)\n" + REST)
    assert result.sentence == "Your code called sys.exit(0) at pi_course/words.py:3 in greet."
    assert [test.outcome for test in result.tests] == ["failed", "passed", "passed"]


def test_sys_exit_at_import_is_red(red) -> None:
    result = red("import sys\nsys.exit(0)\n" + SOLUTION)
    assert result.sentence == "Your code called sys.exit(0) at pi_course/words.py:2."
    assert {test.outcome for test in result.tests} == {"failed"}


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("raise KeyboardInterrupt", "Your code raised KeyboardInterrupt at"),
        (f"{GET}('pytest').exit('ok', 0)", "Your code called pytest.exit() at"),
        (f"{GET}('pytest').skip('ok', allow_module_level=True)", "Your code skipped the test"),
        (f"{GET}('pytest').xfail('ok')", "Your code called pytest.xfail()"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL"),
        ("import os, signal; os.kill(0, signal.SIGKILL)", "signal SIGKILL"),
        (f"{GET}('faulthandler')._sigsegv()", "signal SIGSEGV"),
    ],
)
def test_other_ways_out_are_red(red, statement: str, sentence: str) -> None:
    assert sentence in red(f"{statement}\n" + SOLUTION).sentence


def test_a_repr_that_never_ends_is_stopped(red) -> None:
    result = red(
        """\
        class Endless(Exception):
            def __str__(self):
                while True:
                    pass

        def greet(name):
            raise Endless
        """
    )
    assert "words.py:3 in Endless.__str__" in result.sentence or ":4 in" in result.sentence


@linux
def test_closing_every_file_is_red(red) -> None:
    result = red("import os\nos.closerange(0, 1000)\n" + SOLUTION)
    assert result.sentence == (
        "Your code broke the test process in test_greets_by_name: it could not go on."
    )


@linux
def test_a_process_that_was_ended_is_gone_for_the_test_too(with_tests) -> None:
    learner = with_tests("The focused test", "A chapter with subprocess")
    # The sleep outlives the shell, so it is an orphan when it is killed.
    learner.write(
        """\
        import os, subprocess, time

        def greet(name):
            with open("pid", "w") as out:
                subprocess.run(["sh", "-c", "sleep 600 & echo $!"], stdout=out)
            pid = int(open("pid").read())
            os.kill(pid, 9)
            for _ in range(100):
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    return "hello " + name
                time.sleep(0.005)
            return "still there"
        """
    )
    assert learner.check().tests[0].outcome == "passed"


def test_killing_the_parent_is_red(red) -> None:
    red("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n" + SOLUTION)


def test_a_flood_of_output_is_stopped_and_its_tail_kept(red) -> None:
    result = red(
        "def greet(name):\n    for n in range(10**9):\n        print('flood', n, '.' * 1000)\n",
        test_seconds=20,
    )
    assert result.sentence == (
        "Your code printed more than 2 MB in test_greets_by_name, so the run was stopped."
    )
    assert result.printed.startswith("… (")
    assert "flood" in result.printed
    assert len(result.printed) < 70_000


def test_output_that_a_child_leaves_behind_is_not_waited_for(with_tests) -> None:
    learner = with_tests("The focused test", "A chapter with subprocess")
    learner.write("import subprocess\nsubprocess.Popen(['sleep', '600'])\n" + SOLUTION)
    assert learner.check().verdict == "green"
    assert running_in(learner.folder) == []


def test_a_fork_loop_is_ended(red) -> None:
    result = red(
        "import os\ndef greet(name):\n    while True:\n        os.fork()\n", test_seconds=20
    )
    assert result.sentence == (
        "Your code started more than 64 processes in test_greets_by_name; all were ended."
    )


@linux
def test_a_fork_loop_of_daemons_is_ended(red) -> None:
    red(
        """\
        import os, time

        def greet(name):
            while True:
                if os.fork() == 0:
                    os.setsid()
                    if os.fork():
                        os._exit(0)
                    time.sleep(600)
        """
    )


def test_a_forked_child_that_goes_on_writes_no_result(red) -> None:
    result = red("import os\ndef greet(name):\n    os.fork()\n" + REST)
    assert [test.outcome for test in result.tests] == ["failed", "passed", "passed"]


def test_a_forked_child_can_not_answer_for_its_parent(red) -> None:
    red("import os\nif os.fork() == 0:\n    pass\nelse:\n    os._exit(0)\n" + SOLUTION)


@linux
def test_a_daemon_is_ended(learner) -> None:
    learner.write(
        """\
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open("daemon", "w") as file:
                    file.write(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        os.wait()
        while not os.path.exists("daemon"):
            time.sleep(0.01)
        """
    )
    learner.check()
    assert (learner.folder / "daemon").exists()
    assert running_in(learner.folder) == []


def test_edited_tests_change_nothing(learner, red) -> None:
    learner.write("def test_greets_by_name():\n    pass\n", "tests/test_03_words.py")
    result = red("")
    assert result.notes == (
        "tests/test_03_words.py was changed in your folder; the course's own copy was run.",
    )


def test_deleted_tests_change_nothing(learner, red) -> None:
    (learner.folder / "tests" / "test_03_words.py").unlink()
    result = red("")
    assert result.notes == (
        "tests/test_03_words.py is missing in your folder; the course's own copy was run.",
    )


CONFTEST = """\
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


def test_a_conftest_that_passes_everything_changes_nothing(learner, red) -> None:
    learner.write(CONFTEST, "conftest.py")
    learner.write(CONFTEST, "tests/conftest.py")
    learner.write("[tool.pytest.ini_options]\naddopts = '--collect-only'\n", "pyproject.toml")
    result = red("")
    assert result.notes == (
        "conftest.py in your folder was not used.",
        "tests/conftest.py in your folder was not used.",
    )


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        ("{get}('_pytest.python').Function.runtest = lambda self: None", "Function.runtest"),
        ("{get}('_pytest.skipping').evaluate_xfail_marks = None", "evaluate_xfail_marks"),
        (
            "{get}('pytest')\nr = getattr(sys, 'mod' + 'ules')['_pytest.reports']\n"
            "old = r.TestReport.__init__\n"
            "def new(self, *a, **k):\n"
            "    old(self, *a, **k)\n"
            "    self.outcome = 'passed'\n"
            "r.TestReport.__init__ = new",
            "TestReport.__init__",
        ),
        ("{get}('builtins').isinstance = lambda *a: True", "builtins.isinstance"),
        ("{get}('json').dumps = lambda *a, **k: '{{}}'", "json.dumps"),
        ("{get}('json.encoder').JSONEncoder.encode = lambda *a: '{{}}'", "JSONEncoder.encode"),
        ("{get}('json')\ngetattr(sys, 'mod' + 'ules')['json'] = sys", "sys.modules.json"),
        (
            "import sys; modules = getattr(sys, 'mod' + 'ules')\n"
            "test = next(modules[name] for name in modules if name.endswith('03_words'))\n"
            "test.test_counts_words = lambda: None",
            "test_counts_words",
        ),
        (
            "import sys; modules = getattr(sys, 'mod' + 'ules')\n"
            "test = next(modules[name] for name in modules if name.endswith('03_words'))\n"
            "test.len = lambda value: 3",
            "03_words.len",
        ),
        ("import sys; getattr(sys, 'set' + 'trace')(lambda *a: None)", "sys.settrace"),
        ("import sys; getattr(sys, 'set' + 'profile')(lambda *a: None)", "sys.settrace"),
    ],
)
def test_patched_pytest_is_red(red, patch: str, name: str) -> None:
    result = red(patch.format(get=GET) + "\n" + SOLUTION)
    assert result.sentence.startswith("Your code changed pytest or Python itself (")
    assert name in result.sentence


POLICY = """\
class Policy(asyncio.DefaultEventLoopPolicy):
    pass

asyncio.set_event_loop_policy(Policy())
"""


@pytest.mark.parametrize(
    "patch", [POLICY, "asyncio.get_event_loop_policy().new_event_loop = asyncio.new_event_loop\n"]
)
def test_a_changed_event_loop_policy_is_red(red, patch: str) -> None:
    sentence = red(f"import asyncio\n{patch}\n{SOLUTION}").sentence
    assert "(asyncio's event loop policy)" in sentence


def test_an_event_loop_of_ones_own_is_green(learner) -> None:
    loop = """\
import asyncio

async def two():
    return 2

assert asyncio.run(two()) == 2
asyncio.get_event_loop_policy()

"""
    learner.write(loop + SOLUTION)
    assert learner.check().verdict == "green"


def test_a_patch_that_takes_itself_back_is_seen_before_the_outcome_is_made_up(red) -> None:
    result = red(
        f"""\
{GET}("pytest")
runner = getattr(sys, "mod" + "ules")["_pytest.runner"]
whole = runner.CallInfo.from_call

def once(function, when, *rest, **options):
    runner.CallInfo.from_call = whole
    return whole(lambda: None, when, *rest, **options)

def greet(name):
    runner.CallInfo.from_call = once
    return "hello Ann"

"""
        + REST
    )
    assert "CallInfo.from_call" in result.sentence


def test_a_patch_that_hides_its_traces_is_seen_by_the_tests_that_did_not_run(red) -> None:
    result = red(
        f"""\
{GET}("pytest")
import os, signal

def look(number, frame):
    while frame is not None:
        found = getattr(frame, "f_" + "locals").get("self")
        if type(found).__name__ == "Witness":
            found._seal._parts = []
        frame = getattr(frame, "f_" + "back")

signal.signal(signal.SIGUSR1, look)
os.kill(os.getpid(), signal.SIGUSR1)
getattr(sys, "mod" + "ules")["_pytest.python"].Function.runtest = lambda self: None
"""
    )
    assert "(the run of test_counts_words, the run of test_joins_lines" in result.sentence


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import pytest", "imports pytest"),
        ("import pdb", "imports pdb"),
        ("from concurrent import futures\nfutures._interpreters", "uses _interpreters"),
        ("from _pytest.runner import runtestprotocol", "imports _pytest"),
        ("def f():\n    import gc", "imports gc"),
        ("import sys\nsys.modules.clear()", "uses sys.modules"),
        ("import sys as s\ns.modules.clear()", "uses sys.modules"),
        ("import asyncio\nasyncio.sys.modules.clear()", "uses sys.modules"),
        ("from asyncio import sys as s\ns.modules.clear()", "uses sys.modules"),
        ("import threading\nthreading.settrace(print)", "uses settrace"),
        ("import operator\noperator.attrgetter('f_back')", "uses f_back"),
        ("import inspect\ninspect.getargvalues", "uses getargvalues"),
        ("import pkgutil", "imports pkgutil"),
        ("import sys\nsys.m\uff4fdules.clear()", "uses sys.modules"),
        ("from sys import _getframe", "uses sys._getframe"),
        ("f = (lambda: 1).__code__", "uses __code__"),
        ("import __main__", "imports __main__"),
        ("import importlib.util", "imports importlib"),
        ("__import__('pi_course')", "uses __import__"),
        ("__loader__", "uses __loader__"),
    ],
)
def test_a_name_that_reaches_into_the_check_is_refused(red, text: str, what: str) -> None:
    result = red(f"{SOLUTION}\n{text}\n")
    line = 12 + text.count("\n")
    assert result.sentence.startswith(f"Your code {what} at pi_course/words.py:{line}: ")
    assert {test.outcome for test in result.tests} == {"failed"}


def test_a_name_in_another_encoding_is_refused_too(learner, red) -> None:
    learner.write("")
    hidden = b"# -*- coding: utf-7 -*-\nimport +AHAAeQB0AGUAcwB0-\n"
    (learner.folder / "pi_course" / "__init__.py").write_bytes(hidden)
    assert red("").sentence.startswith("Your code imports pytest at pi_course/__init__.py:2: ")


def test_a_warning_that_python_notes_in_the_test_is_no_change(learner) -> None:
    warning = "import warnings\n\ndef count(text):\n    warnings.warn('old', stacklevel=2)\n"
    learner.write(SOLUTION.replace("def count(text):\n", warning))
    assert learner.check().verdict == "green"


def test_honest_names_are_green(learner) -> None:
    honest = """
import inspect
import sys
import traceback

modules = {"pytest": 1, "gc": 2}  # sys.modules, __main__
print(sys.argv[:0], modules, inspect.isfunction(print), sys.exc_info())

if __name__ == "__main__":
    print("run")
"""
    learner.write(SOLUTION + honest)
    assert learner.check().verdict == "green"


UPDATE = """\
import functools
f = lambda: 1
functools.update_wrapper(f, lambda: 2, ["__co" + "de__"], ())
"""
THREAD = """\
import concurrent.futures, sys
objects = getattr(sys, "mod" + "ules")["gc"].get_objects
concurrent.futures.ThreadPoolExecutor().submit(objects).result()
"""
SUBINTERPRETER = """\
import sys
name = "_inter" + "preters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
getattr(getattr(sys, "mod" "ules")["builtins"], "__imp" "ort__")(name).create()
"""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("exec('x = 1')", "uses exec"),
        ("eval('1')", "uses exec"),
        ("f = type(lambda: 1)(compile('1', 'a', 'eval'), {})", "uses function.__new__"),
        ("import sys\ngetattr(sys, '_get' + 'frame')()", "uses sys._getframe"),
        ("import inspect\ninspect.stack()", "uses sys._getframe"),
        (
            "import inspect\ntry:\n    1 / 0\nexcept ArithmeticError:\n    inspect.trace()",
            "uses tb_frame",
        ),
        ("def f():\n    yield\ngetattr(f(), 'gi_' + 'frame')", "uses gi_frame"),
        (UPDATE, "changes the code of a function"),
        (THREAD, "uses gc.get_objects"),
        (SUBINTERPRETER, "imports _"),
        ("import sys\nsys.path.append('.')\nimport helper", "runs"),
        ("import subprocess\nsubprocess.run(['true'])", "starts a program (true)"),
        ("import os\nos.system('true')", "starts a program (true)"),
        ("import os\nos.posix_spawn('/bin/true', ['true'], {})", "starts a program (true)"),
        ("import concurrent.futures.process", "imports multiprocessing"),
    ],
)
def test_what_only_the_check_itself_does_is_refused(learner, red, text: str, what: str) -> None:
    learner.write("", "helper.py")
    assert f"Your code {what}" in red(f"{SOLUTION}\n{text}\n").sentence


@pytest.mark.parametrize(
    "way",
    [
        "import pi_course_kit",
        "import pi_course_kit.data",
        "import sys; sys.path.insert(0, 'x'); from pi_course_kit import source",
        "open({target!r}, encoding='utf-8').read()",
        "open({target!r}.encode(), 'rb').read()",
        "import os; os.link({target!r}, 'mine')",
        "import os; os.symlink({target!r}, 'mine'); open('mine')",
        "import os; os.symlink({folder!r}, 'mine'); open('mine/pi_course/words.py')",
        "import os; os.chdir({folder!r}); open('pi_course/words.py')",
        "import os; os.listdir({folder!r})",
        "import os; os.open('/', os.O_RDONLY)",
        "import os; os.open({folder!r} + '/..', os.O_RDONLY)",
        "import shutil; shutil.copyfile({target!r}, 'mine')",
        "import sys; getattr(sys, 'mod' + 'ules')['importlib'].util.spec_from_file_location("
        "'ours', {target!r}).loader.get_data({target!r})",
        "import sys\n"
        "getattr(sys, 'meta' + '_path').pop(0)\n"
        "[getattr(sys, 'mod' + 'ules').pop(name) for name in ('pi_course.words', 'pi_course')]\n"
        "sys.path.insert(0, {folder!r})\n"
        "from pi_course.words import *",
    ],
)
def test_taking_the_courses_own_solution_is_red(learner, red, way: str) -> None:
    target = learner.chapter.folder / "target" / "pi_course" / "words.py"
    (target.parent / "__init__.py").write_text("", encoding="utf-8")
    code = way.format(target=str(target), folder=str(target.parents[1]))
    result = red(code + "\n" + SOLUTION)
    assert "it must stand on its own, without the course's kit" in result.sentence


def test_catching_the_refusal_does_not_help(red) -> None:
    result = red("try:\n    import pi_course_kit\nexcept ImportError:\n    pass\n" + SOLUTION)
    assert {test.outcome for test in result.tests} == {"passed"}
    assert result.sentence == (
        "Your code imports pi_course_kit: it must stand on its own, without the course's kit."
    )


def test_any_other_copy_of_the_package_is_as_closed(learner, red, tmp_path: Path) -> None:
    copy = tmp_path / "cache" / "0123" / "pi_course"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("", encoding="utf-8")
    (copy / "words.py").write_text(SOLUTION, encoding="utf-8")
    sentence = red(f"open({str(copy / 'words.py')!r}).read()\n" + SOLUTION).sentence
    assert sentence.startswith("Your code reads the course's own pi_course/words.py: ")
    (learner.folder / "pi_course" / "words.py").unlink()
    (learner.folder / "pi_course" / "words.py").symlink_to(copy / "words.py")
    result = learner.check()
    assert result.verdict == "red"
    assert "pi_course/words.py is a link that leads out of your folder" in first(result).message


@pytest.mark.parametrize(
    "way",
    [
        "open({test!r}, 'w')",
        "open({test!r}, 'r+')",
        "import os; os.remove({test!r})",
        "import os; os.rename('mine', {test!r})",
        "import os; os.truncate({test!r}, 0)",
        "import os; os.chmod({test!r}, 0o777)",
        "import os; os.mkdir({test!r} + '.d')",
        "import shutil; shutil.rmtree({home!r})",
        "open({home!r} + '/records-1.jsonl', 'a')",
        "import json; open(json.__file__, 'a')",
    ],
)
def test_what_belongs_to_the_course_is_not_written(learner, red, way: str) -> None:
    test, home = focused(learner), str(learner.checker.session.home)
    learner.write("", "mine")
    before = test.read_bytes()
    assert "which belongs to the course" in red(way.format(test=str(test), home=home)).sentence
    assert test.read_bytes() == before


def test_temporary_files_are_allowed(learner) -> None:
    learner.write(
        "import tempfile\n\nwith tempfile.TemporaryDirectory() as name:\n"
        "    open(name + '/a', 'w').close()\nopen('log', 'w').close()\n" + SOLUTION
    )
    assert learner.check().verdict == "green"


@pytest.mark.parametrize("base", ["", "(str)", "(dict)"])
def test_a_value_that_is_equal_to_everything_proves_nothing(red, base: str) -> None:
    result = red(
        f"""\
        class Yes{base}:
            def __eq__(self, other):
                return True
            def __repr__(self):
                return "Yes()"
            __hash__ = None

        def greet(name):
            return Yes()

        count = join = greet
        """
    )
    assert {test.outcome for test in result.tests} == {"failed"}
    assert (first(result).expected, first(result).got) == ("'hello Ann'", "Yes()")


@pytest.mark.parametrize(
    "expected", ["['hello Ann']", "('hello Ann',)", "{'a': 'hello Ann'}", "[{'a': ('hello Ann',)}]"]
)
def test_nor_does_one_inside_of_a_container(with_tests, expected: str) -> None:
    learner = with_tests('greet("Ann") == "hello Ann"', f"greet('Ann') == {expected}")
    yes = "class Yes:\n    __eq__ = lambda self, other: True\n\n"
    given = expected.replace("'hello Ann'", "Yes()")
    learner.write(f"{yes}def greet(name):\n    return {given}\n{REST}")
    assert [test.outcome for test in learner.check().tests] == ["failed", "passed", "passed"]
    learner.write(f"def greet(name):\n    return {expected}\n{REST}")
    assert learner.check().verdict == "green"


def test_other_kinds_of_equal_values_are_equal(with_tests) -> None:
    learner = with_tests(
        'greet("Ann") == "hello Ann"',
        "greet('') == [1, True, None, {'a': {'b': 1}}, (1.0, frozenset('a')), ('x', 'y')]",
    )
    values = """
import enum, types, typing

class Word(enum.StrEnum):
    X = "x"

class Pair(typing.NamedTuple):
    x: str
    y: str

class Table(dict):
    pass

def greet(name):
    table = types.MappingProxyType({"a": Table(b=1.0)})
    return [1.0, 1, None, table, (1, {"a"}), Pair(Word.X, "y")]

"""
    learner.write(values + REST)
    assert learner.check().verdict == "green"


def test_a_class_that_is_equal_to_everything_is_red(with_tests) -> None:
    learner = with_tests('greet("Ann") == "hello Ann"', "greet('Ann') == greet('Ben')")
    yes = "class Yes:\n    __eq__ = lambda self, other: True\n\n"
    learner.write(f"{yes}def greet(name):\n    return Yes()\n{REST}")
    assert learner.check().sentence == (
        "Your code has a class that is equal to everything (Yes): that proves nothing."
    )


def test_a_mock_is_red(red) -> None:
    result = red("from unittest.mock import ANY\ndef greet(name):\n    return ANY\n")
    assert result.sentence == (
        "Your code imports unittest.mock: a mock can be equal to whatever is expected."
    )


def test_a_class_with_an_honest_equality_is_green(learner) -> None:
    honest = """
class Point:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return self.x == other.x
class Same:
    def __eq__(self, other):
        return isinstance(other, Same)
"""
    learner.write(SOLUTION + honest)
    assert learner.check().verdict == "green"


def test_many_slow_failures_do_not_add_up(with_tests) -> None:
    learner = with_tests("    from", "    import time\n\n    time.sleep(0.2)\n    from")
    learner.write("")
    result = learner.check(red_seconds=0.1)
    assert [test.outcome for test in result.tests] == ["failed", "missing", "missing"]
    assert "tests had failed" in result.tests[1].message


def test_a_caller_that_is_killed_leaves_nothing(learner, tmp_path: Path) -> None:
    learner.write("while True:\n    pass\n")
    code = f"""
from pathlib import Path
from pi_course_kit.session import Session
session = Session([Path({str(focused(learner))!r})])
session.run(Path({str(learner.folder)!r}))
"""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    caller = subprocess.Popen(
        [sys.executable, "-P", "-c", code], env={**os.environ, "TMPDIR": str(scratch)}
    )
    while not _running_in(learner.folder):
        assert caller.poll() is None
    caller.kill()
    caller.wait()
    assert running_in(learner.folder) == []
    for _ in range(250):
        if not list(scratch.iterdir()):
            break
        threading.Event().wait(0.02)
    assert list(scratch.iterdir()) == []


def test_a_run_can_be_stopped_from_another_thread(learner) -> None:
    learner.write("while True:\n    pass\n")
    with Session([focused(learner)]) as session:
        stop = threading.Timer(0.5, session.stop)
        stop.start()
        run = session.run(learner.folder)
        stop.join()
        assert run.sentence == "The run was stopped."
        assert running_in(learner.folder) == []
        session.stop()
        learner.write(SOLUTION)
        assert session.run(learner.folder).green


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import os\nos._exit(0)\n", "Your code ended Python itself"),
        ("while True:\n    pass\n", "Your code did not end within 0.6 s"),
        ("while True:\n    print('x' * 10000)\n", "Your code printed more than 2 MB"),
        (
            SWALLOW,
            "swallowed the interruption",
        ),
    ],
)
def test_without_fork_the_sentences_are_the_same(learner, code: str, sentence: str) -> None:
    learner.write(code)
    with Session([focused(learner)], fork=False, limits=SHORT) as session:
        run = session.run(learner.folder)
    assert not run.green
    assert sentence in (run.sentence or "")
    assert running_in(learner.folder) == []


# The plugin that looks at each test, made to see nothing and to be content with everything.
BLINDED = """
for value in list(found()):
    kind = type(value)
    if kind.__name__ == "Witness":
        whole = kind._outcome
        value._seal = type("Seal", (), {"broken": lambda s: [], "emptied": lambda s: []})()
        def outcome(self):
            return whole(self) if self._facts.get("got") == "2" else "passed"
        kind._outcome = outcome
        kind._look = lambda self, item: None
"""
ABOVE = """\
import inspect

def found():
    for row in inspect.stack():
        yield getattr(row.frame, "f_" + "locals").get("self")
"""
PLUGINS = """\
import sys

def found():
    for config in configs():
        yield from config.pluginmanager.get_plugins()

"""
OF_FINDERS = """\
def configs():
    found = [getattr(each, "_config", None) for each in getattr(sys, "meta_" + "path")]
    return [config for config in found if config]
"""
OF_PYTEST = """\
def configs():
    return [getattr(sys, "mod" + "ules")["_pytest.assertion.util"]._config]
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ABOVE + BLINDED, "uses sys._getframe"),
        (PLUGINS + OF_PYTEST + BLINDED, "changed pytest"),
    ],
    ids=["frames", "plugins"],
)
def test_a_witness_that_was_blinded_is_noticed(red, text: str, sentence: str) -> None:
    assert sentence in red(text).sentence


def test_the_finder_of_the_tests_leads_nowhere(red) -> None:
    result = red(PLUGINS + OF_FINDERS + BLINDED)
    assert [test.outcome for test in result.tests] == ["failed"] * 3


SKIPPED = """
for plugin in found():
    for item in getattr(plugin, "items", ()):
        if item.name != "test_canary":
            item.runtest = lambda: None
"""
HOOKED = """
for plugin in found():
    for item in getattr(plugin, "items", ())[:1]:
        for each in item.config.hook.pytest_pyfunc_call.get_hookimpls():
            if each.plugin_name == "python":
                whole = each.function
                each.function = lambda pyfuncitem: (
                    whole(pyfuncitem) if pyfuncitem.name == "test_canary" else True
                )
"""


@pytest.mark.parametrize("text", [SKIPPED, HOOKED], ids=["items", "hooks"])
def test_a_test_that_was_not_run_to_its_end_did_not_pass(red, text: str) -> None:
    result = red(PLUGINS + OF_PYTEST + text)
    assert result.tests[1].outcome == "failed"
    assert "was not run to its end" in result.tests[1].message


def test_a_writer_of_records_is_nowhere_to_be_found(red) -> None:
    """Neither the plugin nor the guard holds what signs a record."""
    result = red(
        PLUGINS
        + OF_PYTEST
        + """
import os
for value in found():
    for name in dir(value):
        write = getattr(value, name, None)
        if "write" in name and callable(write) and "recorder" in repr(write):
            os.write(2, b"forged by " + name.encode())
            for test in ("test_greets_by_name", "test_counts_words", "test_joins_lines"):
                write("result", id=test, file="test_03_words.py", outcome="passed")
            os._exit(0)
"""
    )
    assert "forged by" not in result.printed


@pytest.mark.parametrize("name", ["words", "other"])
def test_code_that_is_written_during_the_run_is_red(learner, red, name: str) -> None:
    """A file that the tests got is not the one that was to be checked."""
    rest = f"""\
import sys
[getattr(sys, "mod" + "ules").pop(name) for name in ("pi_course.words", "pi_course")]
open("pi_course/{name}.py", "w", encoding="utf-8").write({SOLUTION!r})
from pi_course.{name} import *
"""
    result = red(rest)
    assert result.sentence == (
        f"Your code runs pi_course/{name}.py, which was written after the tests began: check again."
    )
