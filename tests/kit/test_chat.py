"""`pi-course chat`, used as people use it: in a terminal (a pty), and at the end of a pipe."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pi_course_kit import checkpoint, cli, practice, snapshot
from pi_course_kit.loopback import Answer, Reply
from tests.kit.talking import PATIENCE, Terminal, at, served
from tests.run import SECRET

CHAT = [sys.executable, "-m", "pi_course_kit.cli", "chat"]


@contextlib.contextmanager
def terminal(folder: Path, *options: str) -> Generator[Terminal]:
    made = Terminal([*CHAT, *options], folder)
    try:
        made.until("> ")
        yield made
    finally:
        made.close()


def piped(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CHAT, "--delay-ms", "0", *options],
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        cwd=folder,
    )


def test_banner_and_prompt_fit_80_columns(tmp_path: Path) -> None:
    with terminal(tmp_path) as chat:
        banner = chat.screen.split("\n")
    assert banner[0].startswith("pi-course chat")
    assert max(len(line) for line in banner) < 80
    assert banner[-1] == "> "


def test_the_demos_lines_give_the_demos_text(tmp_path: Path) -> None:
    kept = checkpoint.find("4").folder / "parent" / "tests" / "04-streaming-demo.txt"
    talk = kept.read_text(encoding="utf-8").partition("\n\n")[2]
    with terminal(tmp_path, "--delay-ms", "0") as chat:
        for line in ["hello", "what is streaming?", "make an error"]:
            chat.press(f"{line}\r")
            chat.until("\n\n> ")
        chat.press("/exit\r")
        assert chat.wait() == 0
        screen = chat.screen
    assert screen[screen.index("> ") :] == talk


def test_ctrl_c_stops_the_answer_and_keeps_the_conversation(tmp_path: Path) -> None:
    with terminal(tmp_path, "--delay-ms", "300") as chat:
        chat.press("hello\r")
        # The answer has over thirty pieces, 300 ms apart: here it has begun and is not over.
        chat.until("assistant> He")
        assert "pieces." not in chat.screen
        chat.press("\x03")
        assert "pieces." not in chat.until("[error] aborted: Ctrl-C\n\n> ")
        chat.press("/history\r")
        assert "  0  user       hello\n\n> " in chat.until("hello\n\n> ")
        chat.press("/quit\r")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n1 message\n")


def test_ctrl_c_leaves_a_model_that_does_not_look_at_its_signal(tmp_path: Path) -> None:
    with terminal(tmp_path, "--delay-ms", "3600000") as chat:
        chat.press("hello\r")
        chat.until("assistant> ")
        chat.press("\x03")
        chat.until("\n[error] aborted: Ctrl-C\n\n> ")
        chat.press("/quit\r")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n1 message\n")


def test_second_ctrl_c_leaves_at_the_prompt(tmp_path: Path) -> None:
    with terminal(tmp_path, "--delay-ms", "300") as chat:
        chat.press("hello\r")
        chat.until("assistant> He")
        chat.press("\x03")
        chat.until("[error] aborted: Ctrl-C\n\n> ")
        chat.press("\x03")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n1 message\n")


def test_ctrl_c_again_and_again_leaves_a_model_that_does_not_look_at_its_signal(
    tmp_path: Path,
) -> None:
    with terminal(tmp_path, "--delay-ms", "3600000") as chat:
        chat.press("hello\r")
        chat.until("assistant> ")
        chat.press("\x03")
        # It waits two seconds for the model now. Two that come at once are one signal, so the
        # second one comes a little later; whichever is heard as the second one leaves.
        chat.running(0.5)
        chat.press("\x03")
        while chat.running(3.0):
            chat.press("\x03")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n1 message\n")


def test_ctrl_c_at_the_prompt_says_how_to_leave_and_leaves_the_second_time(tmp_path: Path) -> None:
    with terminal(tmp_path, "--delay-ms", "0") as chat:
        chat.press("hal")
        chat.until("hal")
        chat.press("\x03")
        chat.until("(Ctrl-C again ends, as Ctrl-D and /quit do)\n> ")
        chat.press("hello\r")
        chat.until("pieces.\n\n> ")
        chat.press("\x03")
        chat.until("(Ctrl-C again ends, as Ctrl-D and /quit do)\n> ")
        chat.press("\x03")
        chat.until("\n2 messages\n")
        assert chat.wait() == 0


def test_ctrl_d_leaves(tmp_path: Path) -> None:
    with terminal(tmp_path) as chat:
        chat.press("\x04")
        assert chat.wait() == 0
        assert chat.screen.endswith("> \n0 messages\n")


TYPED = ["", "   ", "/history", "/halp me", "/help"]
SAID = ["the second point?", "types", "the second point?"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """One talk at the end of a pipe: what stands there before the first prompt, and after each."""
    lines = "\n".join([*TYPED, *SAID, "", ""])
    done = piped(tmp_path_factory.mktemp("talk"), lines)
    assert (done.returncode, done.stderr) == (0, "")
    return re.split(r"(?<![^\n ])> ", done.stdout)


def test_blank_lines_are_skipped_and_the_end_of_input_ends(shown: list[str]) -> None:
    assert len(shown) == 1 + len([*TYPED, *SAID, "", "the end"])
    assert shown[1:3] == ["", ""]
    assert shown[-2:] == ["", "\n6 messages\n"]


def test_history_of_nothing(shown: list[str]) -> None:
    assert shown[1 + TYPED.index("/history")] == "No messages yet.\n\n"


def test_an_unknown_command_is_no_message(shown: list[str]) -> None:
    assert shown[1 + TYPED.index("/halp me")].startswith("There is no /halp: /help shows")
    assert shown[-1] == "\n6 messages\n"


def test_help_names_all_that_can_be_typed(shown: list[str]) -> None:
    told = shown[1 + TYPED.index("/help")].split("\n")
    assert {line.partition(" ")[0] for line in told} >= {"/history", "/help", "/quit", "Ctrl-C"}
    assert max(map(len, told)) < 80


def test_the_model_sees_what_was_said_before(shown: list[str]) -> None:
    first, _, third = shown[1 + len(TYPED) :][: len(SAID)]
    assert first.startswith("assistant> Which second point?")
    assert third.startswith("assistant> The second point is int.")


def test_history_is_numbered_and_wrapped(tmp_path: Path) -> None:
    done = piped(tmp_path, f"/history\n{'word ' * 20}\n/history\n/quit\n", "--system", "A\nB")
    assert "  0  system     A\n                B\n\n" in done.stdout
    assert max(len(line) for line in done.stdout.split("\n")) <= 80
    assert "\n                word word" in done.stdout
    assert done.stdout.endswith("3 messages\n")


def test_bytes_that_are_no_text_end_no_talk(tmp_path: Path) -> None:
    done = subprocess.run(
        CHAT, input=b"\xff\xfe\n/history\n", capture_output=True, timeout=PATIENCE, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"\n2 messages\n")


def test_mine_talks_through_the_learners_folder(tmp_path: Path) -> None:
    chapter = checkpoint.find("4")
    folder = practice.create(chapter, tmp_path / "mine").folder
    snapshot.write(snapshot.snapshot_files(4), folder)
    demo = folder / "pi_course" / "streaming_demo.py"
    text = demo.read_text(encoding="utf-8").replace('"Hello! ', '"Ahoy! ')
    demo.write_text(text, encoding="utf-8", newline="\n")
    assert "assistant> Ahoy! " in piped(tmp_path, "hello\n", "--mine", str(folder)).stdout
    inside = piped(folder / "tests", "hello\n").stdout
    assert "assistant> Ahoy! " in inside
    assert f"It runs on your own files, in {folder.resolve()}" in inside


def test_a_folder_that_is_not_that_far_is_not_taken(tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("4"), tmp_path / "mine").folder
    done = piped(folder, "hello\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "assistant> Hello! " in done.stdout
    assert "your own files" not in done.stdout


def test_an_exception_of_the_learners_is_shown_with_its_place(tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("5"), tmp_path / "mine").folder
    file = folder / "pi_course" / "chat.py"
    text = file.read_text(encoding="utf-8").replace(
        "stream = self._model.stream(", "stream = self.model.stream("
    )
    file.write_text(text, encoding="utf-8", newline="\n")
    done = piped(folder, "hello\n/history\n")
    assert "[error] AttributeError: 'Conversation' object has no attribute 'model'" in done.stdout
    assert " (pi_course/chat.py:" in done.stdout
    assert "  0  user       hello\n" in done.stdout
    assert (done.returncode, done.stderr) == (2, "")


def test_mine_says_what_a_folder_lacks(tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("4"), tmp_path / "mine").folder
    done = piped(tmp_path, "hello\n", "--mine", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert "pi_course.chat is not in your folder" in done.stderr


def test_files_that_are_not_python_are_named(tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("5"), tmp_path / "mine").folder
    (folder / "pi_course" / "chat.py").write_text("def\n", encoding="utf-8", newline="\n")
    done = piped(folder, "hello\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "can't hold a conversation yet: invalid syntax (chat.py, line 1). Make" in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--delay-ms", "-1"], "-1"),
        (["--mine", "."], "not a practice folder"),
        (["--mine", "nowhere"], "does not exist"),
        (["--model", "m"], "--model needs --base-url as well"),
        (["--base-url", "http://127.0.0.1:9", "--model", "m"], "--delay-ms is for the offline"),
    ],
)
def test_wrong_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.main, ["chat", "--delay-ms", "0", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr


# A model over HTTP


KEY = f"sk-{SECRET}"


def asked_over_http(
    folder: Path, text: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [*CHAT, *options],
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        cwd=folder,
        env=kept | {"PYTHONUTF8": "1"} | environment,
    )


@pytest.mark.parametrize(
    ("provider", "variable", "header", "value"),
    [
        ("openai", "OPENAI_API_KEY", "authorization", f"Bearer {KEY}"),
        ("anthropic", "ANTHROPIC_API_KEY", "x-api-key", KEY),
    ],
    ids=["openai", "anthropic"],
)
def test_http_conversation_goes_to_the_server_whole(
    tmp_path: Path, provider: str, variable: str, header: str, value: str
) -> None:
    with served([Reply("One."), Reply("Two \U0001f600.")], api_key=KEY) as server:
        options = [*at(server, provider), "--system", "Be short."]
        done = asked_over_http(tmp_path, "first\nsecond\n", *options, **{variable: KEY})
        first, second = server.requests
    assert (done.returncode, done.stderr) == (0, "")
    assert "> assistant> One.\n\n> assistant> Two \U0001f600.\n\n> \n5 messages\n" in done.stdout
    assert f"with the key in {variable}, at " in done.stdout
    assert KEY not in done.stdout
    assert first.headers[header] == value
    roles = [message["role"] for message in second.body["messages"]]
    assert roles[-3:] == ["user", "assistant", "user"]
    assert second.body["model"] == "tiny-1"
    assert "Be short." in str(second.body)


def test_http_server_on_this_machine_may_need_no_key(tmp_path: Path) -> None:
    with served([Reply("Hi.")]) as server:
        done = asked_over_http(tmp_path, "hello\n", *at(server))
        assert "authorization" not in server.requests[0].headers
    assert "without a key, at http://127.0.0.1:" in done.stdout
    assert done.returncode == 0


def test_http_key_may_be_in_another_variable_or_be_left_out(tmp_path: Path) -> None:
    environment = {"OPENAI_API_KEY": "sk-usual-1234", "TINY_KEY": KEY}
    with served([Reply("Hi."), Reply("Hi.")]) as server:
        for name in ("TINY_KEY", ""):
            asked_over_http(tmp_path, "hi\n", *at(server), "--key-env", name, **environment)
        sent = [asked.headers.get("authorization") for asked in server.requests]
    assert sent == [f"Bearer {KEY}", None]


def test_http_failure_is_shown_and_the_talk_goes_on(tmp_path: Path) -> None:
    busy = Answer('{"error": {"message": "slow down"}}', 429, {"retry-after": "7"})
    with served([busy, Reply("Now.")]) as server:
        done = asked_over_http(tmp_path, "first\nsecond\n", *at(server))
    assert "[error] HTTP 429 from " in done.stdout
    assert ": slow down (retryable after 7 s)\n\n> assistant> Now.\n" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer("<html>Hi", 200, {"content-type": "text/html"}), "Is base_url the address of a"),
        (Answer("", 401), "HTTP 401 from http://127.0.0.1:"),
    ],
    ids=["page", "refused"],
)
def test_http_talk_without_any_answer_exits_2(
    tmp_path: Path, answer: Answer, sentence: str
) -> None:
    with served([answer]) as server:
        done = asked_over_http(tmp_path, "hello\n", *at(server))
    assert "assistant> [error] HTTP " in done.stdout and sentence in done.stdout
    assert (done.returncode, done.stderr) == (2, "")


def test_http_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    with served([Reply("a\x1b[31mb\x07\r\nc\td\x9be")]) as server:
        done = asked_over_http(tmp_path, "hello\n/history\n", *at(server))
    assert "assistant> a\ufffd[31mb\ufffd\nc\td\ufffde\n" in done.stdout
    assert "\x1b" not in done.stdout


def test_http_ctrl_c_leaves_a_stalled_server_and_the_talk_goes_on(tmp_path: Path) -> None:
    stalled = Answer(Reply("Half an answer, and then"), stall_after=400)
    with served([stalled, Reply("I am here.")]) as server:
        with terminal(tmp_path, *at(server)) as chat:
            chat.press("are you there?\r")
            chat.until("assistant> Half")
            chat.press("\x03")
            chat.until("\n[error] aborted: Ctrl-C\n\n> ")
            chat.press("/history\r")
            assert "  0  user       are you there?\n\n> " in chat.until("there?\n\n> ")
            chat.press("once more\r")
            chat.until("assistant> I am here.\n\n> ")
            chat.press("/quit\r")
            assert chat.wait() == 0
            assert chat.screen.endswith("\n3 messages\n")
        left, again = server.requests
    assert left.gone.is_set()
    said = [message["content"] for message in again.body["messages"]]
    assert said == ["are you there?", "once more"]


def test_http_second_ctrl_c_leaves_a_server_that_never_answers(tmp_path: Path) -> None:
    with served([Answer(silent=True)]) as server, terminal(tmp_path, *at(server)) as chat:
        chat.press("are you there?\r")
        chat.until("assistant> ")
        chat.press("\x03")
        chat.until("[error] aborted: Ctrl-C\n\n> ")
        chat.press("\x03")
        assert chat.wait() == 0
        assert chat.screen.endswith("\n1 message\n")


def test_http_talk_through_the_learners_own_chapter_05(tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("5"), tmp_path / "mine").folder
    with served([Reply("One."), Reply("Two.")]) as server:
        early = asked_over_http(folder, "hi\n", *at(server))
        snapshot.write(snapshot.snapshot_files(5), folder)
        mine = asked_over_http(folder, "hi\n", *at(server))
    assert "assistant> One." in early.stdout and "your own files" not in early.stdout
    assert "assistant> Two." in mine.stdout and "your own files" in mine.stdout


def test_http_starters_cannot_be_talked_through(tmp_path: Path) -> None:
    folder = practice.create(checkpoint.find("5"), tmp_path / "mine").folder
    there = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--mine", str(folder)]
    done = asked_over_http(tmp_path, "hi\n", *there)
    assert (done.returncode, done.stdout) == (2, "")
    assert "These files can't reach a model yet: Lab 5.4: " in done.stderr
