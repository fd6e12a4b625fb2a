"""How `pi-course agent` ends when it is told to, or when nobody reads what it prints any more.

Whatever ends it, no command that it started is left running.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pi_course_kit.loopback import Answer, Call, LoopbackServer, Reply
from tests.kit.talking import PATIENCE, Endless, Terminal, at, served
from tests.kit.test_agent_demo import AGENT

ENDS = [signal.SIGTERM, signal.SIGHUP]


@contextmanager
def started(
    folder: Path, server: LoopbackServer, *options: str
) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*AGENT, str(folder), *at(server), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def talk(folder: Path, server: LoopbackServer, *options: str) -> Generator[Terminal]:
    made = Terminal([*AGENT, str(folder), *at(server), *options], folder)
    try:
        made.until("\n> ")
        yield made
    finally:
        made.close()


def begun(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert any("begun" in line for line in process.stdout)


@pytest.mark.parametrize("number", ENDS)
def test_a_run_that_is_told_to_end_leaves_no_command(
    tmp_path: Path, number: signal.Signals
) -> None:
    endless = Endless()
    with served([endless.turn]) as server:
        with started(tmp_path, server, "--print", "go", "--yes") as process:
            begun(process)
            assert endless.is_left()
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (128 + number, "")
    assert number.name in out
    assert not endless.is_left()


def test_a_run_that_is_told_twice_ends_as_if_told_once(tmp_path: Path) -> None:
    """A terminal that closes says it, and then the shell in it says it again."""
    endless = Endless()
    with served([endless.turn]) as server:
        with started(tmp_path, server, "--print", "go", "--yes") as process:
            begun(process)
            for number in [*ENDS, *ENDS]:
                process.send_signal(number)
            _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in {128 + number for number in ENDS}
    assert (err, endless.is_left()) == ("", False)


def test_a_run_that_is_told_to_end_and_interrupted_meanwhile_ends(tmp_path: Path) -> None:
    """It gives its command two seconds, and whoever is at the keyboard has no patience."""
    endless = Endless(deaf=True)
    with served([endless.turn]) as server, talk(tmp_path, server, "--yes") as person:
        person.press("go\r")
        person.until("    begun\n")
        person.signal(signal.SIGTERM)
        for _ in range(2):
            person.running(0.4)
            person.press("\x03")
        assert person.wait() == 128 + signal.SIGTERM
    assert "Traceback" not in person.screen
    assert not endless.is_left()


def test_the_events_of_a_run_that_is_told_to_end_are_whole(tmp_path: Path) -> None:
    endless = Endless()
    with served([endless.turn]) as server:
        with started(tmp_path, server, "--print", "go", "--yes", "--json") as process:
            begun(process)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=PATIENCE)
    events = [json.loads(line) for line in out.split("\n") if line]
    assert [event["type"] for event in events] == ["tool_end", "end"]
    assert events[-1]["reason"] == "aborted"


def test_a_talk_that_is_told_to_end_in_a_run_leaves_no_command(tmp_path: Path) -> None:
    endless = Endless()
    with served([endless.turn]) as server, talk(tmp_path, server, "--yes") as person:
        person.press("go\r")
        person.until("    begun\n")
        person.signal(signal.SIGTERM)
        assert person.wait() == 128 + signal.SIGTERM
    assert "Traceback" not in person.screen
    assert not endless.is_left()


@pytest.mark.parametrize("number", ENDS)
def test_a_talk_that_is_told_to_end_at_its_prompt_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    with served([]) as server, talk(tmp_path, server) as person:
        person.press("hal")
        person.until("hal")
        person.signal(number)
        assert person.wait() == 128 + number
    assert "Traceback" not in person.screen


def test_a_talk_that_is_told_to_end_at_the_question_runs_nothing(tmp_path: Path) -> None:
    call = Call("call_1", "write", json.dumps({"path": "made.txt", "content": "x"}))
    with served([Reply(calls=(call,)), Reply(text="Over.")]) as server:
        with talk(tmp_path, server) as person:
            person.press("go\r")
            person.until("[y/N] ")
            person.press("y")
            person.until("y")
            person.signal(signal.SIGTERM)
            assert person.wait() == 128 + signal.SIGTERM
        assert len(server.requests) == 1
    assert not (tmp_path / "made.txt").exists()
    assert "Traceback" not in person.screen


def test_a_terminal_that_is_closed_leaves_no_command(tmp_path: Path) -> None:
    endless = Endless()
    with served([endless.turn]) as server, talk(tmp_path, server, "--yes") as person:
        person.press("go\r")
        person.until("    begun\n")
        assert person.hang_up() == 128 + signal.SIGHUP
    assert not endless.is_left()


def test_what_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    slow = Answer(Reply(text="It goes on, and comes to its end."), each=250, pause=0.05)
    with served([slow]) as server:
        command = [*AGENT, str(tmp_path), *at(server), "--print", "go", "--json"]
        with subprocess.Popen(
            ["nohup", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGHUP)
            out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, '{"type": "end", "reason": "stop"}' in out) == (0, True)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_run_whose_output_nobody_reads_is_aborted(tmp_path: Path, options: list[str]) -> None:
    """As `| head -1` does it. A command that prints on and on would never hear of it by itself."""
    endless = Endless(text="I begin.\nSo much for that.\n")
    with served([endless.turn, Reply(text="Over.")]) as server:
        with started(tmp_path, server, "--print", "go", "--yes", *options) as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.wait(PATIENCE) == 1
            assert process.stderr is not None
            assert process.stderr.read() == ""
    assert not endless.is_left()
    assert len(server.requests) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_that_is_full_is_a_sentence(tmp_path: Path) -> None:
    command = shlex.join([*AGENT, str(tmp_path)])
    with served([Reply(text="I begin.")]) as server:
        done = subprocess.run(
            ["bash", "-c", f"{command} {shlex.join(at(server))} --print go > /dev/full"],
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pi-course: The run was aborted: its output can't be written (")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_demo_whose_output_nobody_reads_ends(options: list[str]) -> None:
    command = shlex.join([*AGENT, "--demo", *options])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("\n") == 1
