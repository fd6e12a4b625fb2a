"""`pi-course agent`: what a person at the terminal sees and is asked, over a real HTTP server."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pi_course_kit import __version__, sample_project, snapshot
from pi_course_kit.agent_demo import NEW, OLD, TASK
from pi_course_kit.agent_screen import question
from pi_course_kit.loopback import Answer, Call, LoopbackServer, Reply
from tests.kit.talking import Endless, Terminal, at, served
from tests.kit.test_agent_demo import AGENT

HELLO = Call("call_1", "read", '{"path": "notes.txt"}')
EDIT = Call(
    "call_2",
    "edit",
    json.dumps({"path": "notes.txt", "edits": [{"oldText": "world", "newText": "durable"}]}),
)
READ_AND_EDIT = [
    Reply(text="I read it first.", calls=(HELLO,)),
    Reply(calls=(EDIT,)),
    Reply(text="Done: it says durable now."),
]


def agent(
    folder: Path, server: LoopbackServer, *options: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENT, str(folder), *at(server), *options],
        input=typed,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "a project"
    place.mkdir()
    (place / "notes.txt").write_text("hello world\n", encoding="utf-8", newline="\n")
    return place


def test_one_prompt_reads_edits_and_ends(folder: Path) -> None:
    with served(READ_AND_EDIT) as server:
        done = agent(folder, server, "--print", "say durable", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello durable\n"
    shown = done.stdout.split("\n")
    assert "I read it first." in shown
    assert "  read notes.txt" in shown
    assert "    hello world" in shown
    assert "    -hello world" in shown and "    +hello durable" in shown
    assert "Done: it says durable now." in shown
    assert max(map(len, shown)) <= 80
    assert "\x1b" not in done.stdout
    roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]


def test_a_model_behind_a_server_mends_the_sample_project(tmp_path: Path) -> None:
    """The task of the demo, with real HTTP between the agent and its model."""
    project = sample_project.copy_to(tmp_path / "project")
    assert last_line(project).startswith("1 failed")
    command = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"
    edit = {"path": "greeting.py", "edits": [{"oldText": OLD, "newText": NEW}]}
    turns = [
        Reply(calls=(Call("call_1", "bash", json.dumps({"command": command})),)),
        Reply(calls=(Call("call_2", "read", json.dumps({"path": "greeting.py"})),)),
        Reply(calls=(Call("call_3", "edit", json.dumps(edit)),)),
        Reply(calls=(Call("call_4", "bash", json.dumps({"command": command})),)),
        Reply(text="It passes now."),
    ]
    with served(turns) as server:
        done = agent(project, server, "--print", TASK, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.index("1 failed") < done.stdout.index("1 passed")
    assert last_line(project).startswith("1 passed")


def last_line(project: Path) -> str:
    """The last line of pytest in a project."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, capture_output=True, encoding="utf-8", timeout=60)
    return done.stdout.strip().split("\n")[-1]


def test_without_a_person_nothing_is_changed(folder: Path) -> None:
    with served(READ_AND_EDIT) as server:
        done = agent(folder, server, "--print", "say durable")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello world\n"
    assert "not run: edit" in done.stdout
    assert "start it with --yes" in str(server.requests[-1].body)


def test_json_is_one_event_a_line(folder: Path) -> None:
    with served(READ_AND_EDIT) as server:
        done = agent(folder, server, "--print", "say durable", "--yes", "--json")
    events = [json.loads(line) for line in done.stdout.split("\n") if line]
    kinds = [event["type"] for event in events]
    assert kinds[-1] == "end" and events[-1]["reason"] == "stop"
    assert [kind for kind in kinds if kind.startswith("tool_")] == ["tool_start", "tool_end"] * 2
    said = "".join(event["delta"] for event in events if event["type"] == "text_delta")
    assert said == "I read it first.Done: it says durable now."
    assert sum(kind == "message" for kind in kinds) == 3
    assert next(e for e in events if e["type"] == "tool_end")["result"]["toolCallId"] == "call_1"


def test_a_run_that_fails_ends_with_exit_code_1(folder: Path) -> None:
    with served([Answer(b'{"error": {"message": "no such model"}}', status=404)]) as server:
        done = agent(folder, server, "--print", "hi", "--yes")
    assert done.returncode == 1
    assert "no such model" in done.stdout


def test_control_characters_of_a_repository_do_not_reach_the_terminal(folder: Path) -> None:
    (folder / "notes.txt").write_text("\x1b]0;gone\x07\n", encoding="utf-8", newline="\n")
    with served([Reply(calls=(HELLO,)), Reply(text="a \x1b[2J b")]) as server:
        done = agent(folder, server, "--print", "look")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout
    assert "]0;gone" in done.stdout


def test_lines_at_a_prompt_are_one_conversation(folder: Path) -> None:
    with served([Reply(text="First."), Reply(text="Second.")]) as server:
        done = agent(folder, server, typed="one\n/history\ntwo\n/nonsense\n/quit\n")
    assert done.returncode == 0, done.stderr
    assert "There is no /nonsense" in done.stdout
    assert "assistant   First." in done.stdout
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


@contextmanager
def terminal(folder: Path, server: LoopbackServer) -> Generator[Terminal]:
    made = Terminal([*AGENT, str(folder), *at(server)], folder)
    try:
        made.until("\n> ")
        yield made
    finally:
        made.close()


def test_a_person_sees_the_change_before_saying_yes_and_is_asked_once(folder: Path) -> None:
    again = Call("call_3", "bash", '{"command": "echo once more"}')
    turns = [*READ_AND_EDIT[:2], Reply(calls=(again,)), READ_AND_EDIT[2]]
    with served(turns) as server, terminal(folder, server) as talk:
        talk.press("say durable\r")
        asked = talk.until("[y/N] ")
        assert "It wants to edit\n    notes.txt\n    -world\n    +durable\n" in asked
        assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello world\n"
        talk.press("y\r")
        rest = talk.until("durable now.")
    assert "[y/N]" not in rest
    assert "    once more\n" in rest


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit", {"command": "echo harmless", **json.loads(EDIT.arguments)}),
        ("edit", {"path": "notes.txt", "edits": json.dumps(json.loads(EDIT.arguments)["edits"])}),
    ],
    ids=["with-a-decoy", "as-a-string"],
)
def test_the_question_shows_what_the_tool_will_get(
    folder: Path, name: str, arguments: dict[str, object]
) -> None:
    turns = [Reply(calls=(Call("call_1", name, json.dumps(arguments)),)), Reply(text="Over.")]
    with served(turns) as server, terminal(folder, server) as talk:
        talk.press("go\r")
        asked = talk.until("[y/N] ")
        talk.press("\r")
        talk.until("Over.")
    assert "harmless" not in asked.partition("It wants")[2]
    assert "-world\n    +durable\n" in asked


def test_nothing_in_the_question_is_hidden() -> None:
    lines = "\n".join(f"echo {number}" for number in range(40))
    shown = question("bash", {"command": f"./run\r\n{lines}\nls{' ' * 3000}; rm x"})
    assert all(f"    echo {number}\n" in shown for number in range(40))
    assert "    ./run\ufffd\n" in shown
    assert "ls [3000 blanks] ; rm x" in shown


def test_what_was_typed_before_the_question_is_no_answer(folder: Path) -> None:
    bait = Answer(Reply(text="Shall I? [y/N] ", calls=(EDIT,)), each=250, pause=0.25)
    with served([bait, Reply(text="Over.")]) as server, terminal(folder, server) as talk:
        talk.press("go\r")
        talk.until("Shall I?")
        talk.press("y\r")
        talk.until("May it write")
        talk.press("\r")
        talk.until("Over.")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello world\n"


def test_a_folder_that_only_looks_like_practice_is_not_run(tmp_path: Path) -> None:
    """Its code would run with the key in the environment, and nobody was asked."""
    trap = tmp_path / "trap"
    snapshot.write(snapshot.snapshot_files(8), trap)
    marker = json.dumps({"kit": __version__, "chapter": "08-coding-tools"})
    (trap / ".pi-course.json").write_text(marker, encoding="utf-8")
    with (trap / "pi_course/coding_tools/__init__.py").open("a", encoding="utf-8") as file:
        file.write("open('ran', 'w').close()\n")
    with served([Reply(text="Hello.")]) as server:
        done = subprocess.run(
            [*AGENT, *at(server), "--print", "hello"],
            cwd=trap,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    assert (done.returncode, "Hello." in done.stdout) == (0, True), done.stdout + done.stderr
    assert not (trap / "ran").exists()


def test_a_no_is_told_to_the_model(folder: Path) -> None:
    with served(READ_AND_EDIT) as server, terminal(folder, server) as talk:
        talk.press("say durable\r")
        talk.until("[y/N] ")
        talk.press("\r")
        talk.until("durable now.")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello world\n"
    assert "the user did not allow it" in str(server.requests[-1].body)


def test_ctrl_c_at_the_question_ends_the_run_and_changes_nothing(folder: Path) -> None:
    with served([*READ_AND_EDIT[:2], Reply(text="Here again.")]) as server:
        with terminal(folder, server) as talk:
            talk.press("say durable\r")
            talk.until("[y/N] ")
            talk.press("\x03")
            talk.until("\n> ")
            talk.press("and now?\r")
            talk.until("Here again.")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "hello world\n"


def test_ctrl_c_ends_the_run_and_keeps_the_conversation(folder: Path) -> None:
    stalled = Answer(Reply(text="I begin and then"), stall_after=600)
    with served([stalled, Reply(text="Here again.")]) as server:
        with terminal(folder, server) as talk:
            talk.press("one\r")
            talk.until("I begin")
            talk.press("\x03")
            talk.until("[aborted] Ctrl-C\n")
            talk.until("> ")
            talk.press("two\r")
            talk.until("Here again.")
    said = [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "user"]
    assert said == ["one", "two"]


def test_ctrl_c_stops_a_command_and_leaves_nothing_running(folder: Path) -> None:
    endless = Endless()
    with served([endless.turn, Reply(text="Here again.")]) as server:
        with terminal(folder, server) as talk:
            talk.press("wait\r")
            talk.until("[y/N] ")
            talk.press("y\r")
            talk.until("    begun\n")
            assert endless.is_left()
            talk.press("\x03")
            talk.until("aborted")
            talk.until("\n> ")
            talk.press("two\r")
            talk.until("Here again.")
    assert not endless.is_left()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "Which model?"),
        (["--demo", "--print", "x"], "--demo has its own model"),
        (["--json", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], "--json needs"),
        (["/nowhere/at/all", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"], "folder"),
        (["--model", "m"], "--base-url"),
    ],
)
def test_wrong_use_is_a_sentence(options: list[str], sentence: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*AGENT, *options], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert sentence in done.stderr


def test_the_agent_runs_on_the_learners_own_package(tmp_path: Path) -> None:
    done = subprocess.run(
        [*AGENT, "--demo", "--mine", str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 2
    assert "is not a practice folder" in done.stderr
