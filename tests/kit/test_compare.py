"""`pi-course compare`: two traces, the first entry that differs, and the line that made it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from pi_course_kit import checkpoint, compare, compared, display, faults, practice, snapshot, trace
from pi_course_kit.checkpoint import Checkpoint, Fault, Scenario
from pi_course_kit.cli import main
from pi_course_kit.compare import Comparison, Trace
from pi_course_kit.errors import CourseError
from pi_course_kit.limits import Limits


def declared(*numbers: str) -> list[tuple[str, Fault]]:
    return [(nn, fault) for nn in numbers for fault in checkpoint.find(nn).faults]


def compare_fault(nn: str, fault: Fault, folder: Path) -> Comparison:
    chapter = checkpoint.find(nn)
    snapshot.write(snapshot.snapshot_files(chapter.number), folder)
    file = folder / fault.file
    text = faults.apply(fault, file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8", newline="\n")
    return compare.compare_all(chapter, folder)[-1]


DECLARED = declared("02", "03", "06", "07", "08")


@pytest.mark.parametrize(
    ("nn", "fault"), DECLARED, ids=[f"{nn}-{fault.id}" for nn, fault in DECLARED]
)
def test_every_declared_fault_is_found_with_its_lab_and_line(
    nn: str, fault: Fault, tmp_path: Path
) -> None:
    found = compare_fault(nn, fault, tmp_path)
    if fault.expect != "tests":
        assert not found.differs, "only the type checker sees it"
        return
    assert found.differs
    assert found.place is not None and found.place.file == fault.file
    assert found.place.line in edited_lines(nn, fault)
    chapter = checkpoint.find(nn)
    assert found.lab is not None
    assert found.lab.id in {chapter.lab_of(test) for test in fault.tests}


def edited_lines(nn: str, fault: Fault) -> range:
    file = snapshot.snapshot_files(int(nn))[fault.file]
    before, _, _ = file.read_text(encoding="utf-8").partition(fault.old)
    first = before.count("\n") + 1
    return range(first, first + fault.new.rstrip("\n").count("\n") + 1)


@pytest.mark.parametrize("number", ["01", "02", "03", "04", "05", "06", "07", "08"])
def test_a_finished_chapter_is_equal_to_itself(number: str, tmp_path: Path) -> None:
    chapter = checkpoint.find(number)
    snapshot.write(snapshot.snapshot_files(chapter.number), tmp_path)
    found = compare.compare_all(chapter, tmp_path)
    assert [one.scenario.id for one in found] == [one.id for one in chapter.scenarios]
    assert not any(one.differs for one in found)
    assert 1 <= len(found) <= 4 and all(one.equal for one in found)


# One side: whatever the code does, the trace has an end


def played(folder: Path, thing: str, body: str, **limits: float) -> Trace:
    """The trace of a scenario on a package whose only module is `thing`."""
    package = folder / "pi_course"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "thing.py").write_text(thing, encoding="utf-8", newline="\n")
    code = f"async def scenario(trace):\n    from pi_course.thing import go\n    {body}\n"
    wanted = Limits(**{"test_seconds": 1, "grace_seconds": 0.5, "total_seconds": 20, **limits})  # pyright: ignore[reportArgumentType]
    return compare.run(folder, code, limits=wanted)


@pytest.mark.parametrize(
    ("thing", "body", "kind", "says"),
    [
        ("def go():\n    while True:\n        pass\n", "go()", "hangs", ""),
        ("while True:\n    pass\n", "", "hangs", ""),
        ("import os\ndef go():\n    os._exit(0)\n", "go()", "killed", "exit code 0"),
        ("import sys\ndef go():\n    sys.exit(3)\n", "go()", "raises", "SystemExit: 3"),
        ("def go():\n    while True:\n        print('x' * 999)\n", "go()", "killed", "1 MB"),
        ("def go():\n    return [0] * 10**10\n", "go()", "raises", "MemoryError"),
        ("def go():\n    raise ValueError('no')\n", "go()", "raises", "ValueError: no"),
        ("def go():\n    while True:\n        yield 1\n", "[trace(v) for v in go()]", "floods", ""),
        (
            "def go():\n    while True:\n        try:\n            go()\n        except:\n"
            "            pass\n",
            "go()",
            "killed",
            "ended from outside",
        ),
    ],
    ids=[
        "loop",
        "import-loop",
        "exit",
        "sys.exit",
        "print",
        "memory",
        "raise",
        "flood",
        "deaf-loop",
    ],
)
def test_code_that_does_not_end_well_is_cut_off(
    tmp_path: Path, thing: str, body: str, kind: str, says: str
) -> None:
    last = played(tmp_path, thing, body, output_bytes=1_000_000, memory_bytes=2**28).entries[-1]
    assert last["kind"] == kind
    assert says in last["value"]


def test_a_wait_for_what_never_comes_ends(tmp_path: Path) -> None:
    thing = "import asyncio\nasync def go():\n    await asyncio.Event().wait()\n"
    last = played(tmp_path, thing, "await go()", test_seconds=trace.WAIT_SECONDS + 2).entries[-1]
    assert last["kind"] == "waits"
    assert [step["kind"] for step in last["way"]] == ["enter", "yield"]


def test_what_does_not_end_when_it_is_cancelled_was_waiting_all_the_same(tmp_path: Path) -> None:
    thing = "import asyncio\nasync def go():\n    while True:\n        try:\n"
    thing += "            await asyncio.Event().wait()\n        except asyncio.CancelledError:\n"
    thing += "            print('not yet')\n"
    made = played(tmp_path, thing, "await go()", test_seconds=trace.WAIT_SECONDS + 1)
    assert [entry["kind"] for entry in made.entries] == ["waits"]
    assert made.printed == ""


def test_the_code_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for a scenario")
    thing = "import os\ndef go():\n    return 'OPENAI_API_KEY' in os.environ\n"
    assert played(tmp_path, thing, "trace(go())").entries[0]["value"] == "False"


def test_the_raising_line_and_no_path_are_told(tmp_path: Path) -> None:
    thing = "def go():\n    x = 1\n    raise ValueError(__file__)\n"
    last = played(tmp_path, thing, "go()").entries[-1]
    assert last["at"] == ["pi_course/thing.py", 3, "go"]
    assert last["value"] == "ValueError: pi_course/thing.py"


def test_an_error_inside_a_given_file_is_the_callers(tmp_path: Path) -> None:
    chapter = checkpoint.find("03")
    snapshot.write(snapshot.snapshot_files(3), tmp_path)
    file = tmp_path / "pi_course/messages.py"
    text = file.read_text(encoding="utf-8")
    wrong = text.replace("sections=sections or None,", "sections=frozen_json({1: 'a'}),")
    file.write_text(wrong, encoding="utf-8", newline="\n")
    (found,) = compare.compare_all(chapter, tmp_path, "readme")
    assert found.mine is not None and "InvalidValue" in found.mine.value
    assert found.place is not None and found.place.file == "pi_course/messages.py"
    assert found.place.function == "current_system_message"


def test_a_traced_exception_has_the_place_that_raised_it(tmp_path: Path) -> None:
    thing = "def no():\n    raise KeyError('k')\ndef go():\n    try:\n        no()\n"
    thing += "    except KeyError as error:\n        return error\n"
    first, *_ = played(tmp_path, thing, "trace(go())").entries
    assert (first["kind"], first["value"]) == ("value", "KeyError: 'k'")
    assert first["at"] == ["pi_course/thing.py", 2, "no"]


def test_of_a_chain_of_coroutines_only_the_innermost_yields(tmp_path: Path) -> None:
    thing = "import asyncio\nasync def inner():\n    await asyncio.sleep(0)\n    return 1\n"
    thing += "async def go():\n    return await inner()\n"
    first, *_ = played(tmp_path, thing, "trace(await go())").entries
    assert [(step["kind"], step["at"][2]) for step in first["way"]] == [
        ("enter", "go"),
        ("enter", "inner"),
        ("yield", "inner"),
        ("resume", "inner"),
        ("return", "inner"),
        ("return", "go"),
    ]


def test_the_folder_in_which_a_scenario_works_is_not_told(tmp_path: Path) -> None:
    """Each run has another one, and both sides must give the same to be equal."""
    thing = "import os\ndef go():\n    return os.path.realpath('a.txt'), os.getcwd()\n"
    first, *_ = played(tmp_path, thing, "trace(go())").entries
    assert first["value"] == "('a.txt', '.')"
    assert first["way"][-1]["value"] == "('a.txt', '.')"


def test_a_model_of_a_scenario_may_name_another_one(tmp_path: Path) -> None:
    code = """
from pydantic import BaseModel


class Edit(BaseModel):
    old: str


class Change(BaseModel):
    edits: list[Edit]


async def scenario(trace):
    trace(Change(edits=[{"old": "a"}]).edits[0].old)
"""
    (tmp_path / "pi_course").mkdir()
    values = [(entry["kind"], entry["value"]) for entry in compare.run(tmp_path, code).entries]
    assert values == [("value", "'a'"), ("end", "")]


def test_time_counts_from_the_last_value(tmp_path: Path) -> None:
    """A busy machine makes a long scenario slow; what waits for ever traces nothing more."""
    thing = "import asyncio\nasync def go(trace):\n    for step in range(3):\n"
    thing += "        await asyncio.sleep(0.4 * seconds)\n        trace(step)\n"
    thing = thing.replace("seconds", str(trace.WAIT_SECONDS))
    entries = played(tmp_path, thing, "await go(trace)", test_seconds=2).entries
    assert [entry["kind"] for entry in entries] == ["value"] * 3 + ["end"]


# How values are shown


class Bare:
    pass


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": (1,), "a": [None, True, 1.5]}, "{'a': [None, True, 1.5], 'b': (1,)}"),
        ({"y", "x"}, "{'x', 'y'}"),
        (frozenset[str](), "frozenset()"),
        (Bare(), "<Bare>"),
        (Rude(), "<Rude that can't be shown: RuntimeError>"),
        (len, "<built-in function len>"),
        (str.join, "<method 'join' of 'str' objects>"),
        (played, "<function played>"),
        (Bare, "Bare"),
        (ValueError("no"), "ValueError: no"),
    ],
)
def test_values_are_shown_without_addresses(value: object, text: str) -> None:
    assert display.shown(value) == text


def test_a_task_is_shown_without_the_line_where_it_is() -> None:
    async def task_shown() -> str:
        return display.shown(asyncio.create_task(asyncio.sleep(0)))

    assert asyncio.run(task_shown()) == "<Task pending name='Task-' coro=<sleep()>>"


def test_events_and_messages_are_shown_by_their_fields(tmp_path: Path) -> None:
    chapter = checkpoint.find("03")
    (one,) = compare.compare_all(chapter, practice_of(chapter, tmp_path), "socket-reset")
    shown = one.equal[1].value
    assert shown == "TextDelta(content_index=0, delta='I')"
    assert one.equal[2].value.startswith("Done(reason='stop', message=AssistantMessage {\"role\":")


MINE = '''
import asyncio

from pi_course.errors import PiError


class StreamClosed(PiError):
    pass


NOTHING = object()


class EventStream:
    """One consumer."""

    def __init__(self, is_complete, extract_result):
        self.is_complete = is_complete
        self.extract_result = extract_result
        self.queue = asyncio.Queue()
        self.done = asyncio.Event()
        self.value = NOTHING

    def push(self, event):
        if not self.done.is_set():
            self.queue.put_nowait(event)
            if self.is_complete(event):
                self.end(self.extract_result(event))

    def end(self, result=DEFAULT):
        if not self.done.is_set():
            self.value = result
            self.done.set()
            self.queue.put_nowait(NOTHING)

    async def result(self):
        await self.done.wait()
        if self.value is NOTHING:
            raise StreamClosed("nothing came")
        return self.value

    async def __aiter__(self):
        while (event := await self.queue.get()) is not NOTHING:
            yield event
'''


@pytest.mark.parametrize(("default", "equal"), [("NOTHING", True), ("None", False)])
def test_code_that_shares_nothing_with_the_reference(
    tmp_path: Path, default: str, equal: bool
) -> None:
    """It is equal as long as it behaves so; the mistake is found by what result() gives."""
    chapter = checkpoint.find("02")
    snapshot.write(snapshot.snapshot_files(2), tmp_path)
    text = MINE.replace("DEFAULT", default)
    (tmp_path / "pi_course/event_stream.py").write_text(text, encoding="utf-8", newline="\n")
    found = compare.compare_all(chapter, tmp_path)
    if equal:
        assert not found[-1].differs and len(found) == 3
        return
    last = found[-1]
    assert last.scenario.id == "ends" and last.place is not None
    assert last.place.function == "EventStream.result"
    assert text.split("\n")[last.place.line - 1].strip() == "return self.value"


def practice_of(chapter: Checkpoint, folder: Path) -> Path:
    """A practice folder that is solved."""
    made = practice.create(chapter, folder / "mine").folder
    snapshot.write(
        {p: f for p, f in snapshot.snapshot_files(chapter.number).items() if p in chapter.files},
        made,
    )
    return made


# The command


def test_the_command_says_equal_and_then_where_it_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path / "space"))
    folder = practice_of(checkpoint.find("03"), tmp_path)
    equal = CliRunner().invoke(main, ["compare", str(folder)])
    assert equal.exit_code == 0
    assert "5 values equal" in equal.output
    assert "Nothing that was traced differs" in equal.output

    fault = checkpoint.find("03").fault("textof")
    file = folder / fault.file
    text = faults.apply(fault, file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8", newline="\n")
    differs = CliRunner().invoke(main, ["compare", str(folder), "--scenario", "readme"])
    assert differs.exit_code == 1
    assert max(map(len, differs.output.split("\n"))) <= 80
    lines = differs.output.split("\n")
    assert "The first value is equal, then:" in lines
    assert "  traced    text_of(reply)" in lines
    assert "  reference I will read README.md first." in lines
    assert "            read" in lines
    number = text[: text.index('    return "\\n".join(\n        block.text if')].count("\n") + 1
    assert f"  made in   pi_course/messages.py:{number}, in text_of()" in lines
    assert "  lab       3.1  Save messages, read their text, replay the system prompt" in lines
    assert "  next      pi-course check --lab 3.1" in lines


def test_an_untouched_folder_lacks_the_module(tmp_path: Path) -> None:
    chapter = checkpoint.find("02")
    folder = practice.create(chapter, tmp_path / "mine").folder
    (found,) = compare.compare_all(chapter, folder)
    assert found.mine is not None and found.place is None
    assert "pi_course.event_stream is not in your folder" in found.mine.value
    assert found.lab is not None and found.lab.id == "2.1"


def test_a_starter_is_of_the_lab_in_which_it_is_written(tmp_path: Path) -> None:
    chapter = checkpoint.find("07")
    folder = practice.create(chapter, tmp_path / "mine").folder
    (found,) = compare.compare_all(chapter, folder)
    assert found.scenario.lab == "7.2"
    assert found.lab is not None and found.lab.id == "7.1"


def test_unknown_scenarios_and_chapters_without_any_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="Its scenarios are: readme, socket-reset, transcript"):
        compare.compare_all(checkpoint.find("03"), tmp_path, "x")
    with pytest.raises(CourseError, match="Chapter 00 declares no scenario"):
        compare.compare_all(checkpoint.find("00"), tmp_path)


def test_a_scenario_that_breaks_the_reference_is_no_fault_of_the_learner(tmp_path: Path) -> None:
    scenario = Scenario("own", "Own", "3.1", "async def scenario(trace):\n    1 / 0\n")
    with pytest.raises(CourseError, match="does not run on the reference itself: raises ZeroDiv"):
        compare.compare(checkpoint.find("03"), scenario, tmp_path)


# Finding the line in code that shares no text with the reference

OTHER = """
from pi_course.wire import InvalidValue
{before}

def drop(found, name):
    {drop}


def current_system_message(messages):
    told = [m for m in messages if m.role == "system"]
    if not told:
        return None
    found = {{}}
    for m in told:
        for key in m.sections or {{}}:
            if m.sections[key] is None:
                drop(found, key)
            else:
                found[key] = m.sections[key]
    said = [m.content for m in told if m.content]
    return SystemMessage(
        content="\\n\\n".join(said), sections=found or None, timestamp=told[0].timestamp
    )
"""


@pytest.mark.parametrize(("drop", "equal"), [("found.pop(name, None)", True), ("pass", False)])
def test_another_way_to_write_it_is_equal_until_it_gives_something_else(
    tmp_path: Path, drop: str, equal: bool
) -> None:
    chapter = checkpoint.find("03")
    snapshot.write(snapshot.snapshot_files(3), tmp_path)
    file = tmp_path / "pi_course/messages.py"
    text = file.read_text(encoding="utf-8")
    start = text.index("def current_system_message(")
    end = text.index("def system_message_text(")
    own = OTHER.format(before="", drop=drop).lstrip()
    file.write_text(f"{text[:start]}{own}\n\n{text[end:]}", encoding="utf-8", newline="\n")
    (found,) = compare.compare_all(chapter, tmp_path, "readme")
    assert found.differs is not equal
    if not equal:
        assert found.place is not None
        assert found.place.function == "current_system_message"
        assert found.lab is not None and found.lab.id == "3.1"


def test_the_text_of_a_comparison_has_no_absolute_path(tmp_path: Path) -> None:
    chapter = checkpoint.find("02")
    found = compare_fault("02", chapter.fault("last-event-lost"), tmp_path)
    text = compared.text(chapter, tmp_path, "mine", [found])
    assert str(tmp_path) not in text
    assert text == compared.text(
        chapter, tmp_path, "mine", compare.compare_all(chapter, tmp_path, found.scenario.id)
    )
