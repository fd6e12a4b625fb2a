"""The command line: help without imports, exit codes, one sentence for wrong use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pi_course_kit import checkpoint, data, practice, snapshot, workspace
from pi_course_kit.cli import COMMANDS, main


def call(*arguments: str, answers: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=answers)


def test_the_table_of_short_helps_equals_the_commands() -> None:
    group = main
    for name, text in COMMANDS.items():
        command = group.get_command(None, name)  # pyright: ignore[reportArgumentType]
        assert command is not None
        assert command.name == name
        assert (command.help or "").split("\n")[0] == text


def test_help_imports_no_command() -> None:
    program = (
        "import sys\n"
        "from pi_course_kit.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'pytest', 'asyncio', 'httpx', 'rich', 'importlib.metadata'}\n"
        "print(sorted(m for m in sys.modules if m in heavy or '.commands' in m))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8")
    assert done.stdout.split("\n")[-2] == "[]"
    assert all(name in done.stdout for name in COMMANDS)


def test_practice_imports_nothing_heavy(fake_course: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from pi_course_kit.cli import main\n"
        f"try:\n    main(['practice', '01', {str(tmp_path / 'one')!r}])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'pytest', 'asyncio', 'httpx', 'rich', 'importlib.metadata'}\n"
        "print(sorted(m for m in sys.modules if m in heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8")
    assert done.stdout.split("\n")[-2] == "[]"


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)])
def test_every_help_fits_80_columns(arguments: list[str]) -> None:
    result = call(*arguments, "--help")
    assert result.exit_code == 0
    assert max(len(line) for line in result.output.split("\n")) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ["checkpoint", "77"],
        ["practice", "77"],
        ["diff", "x"],
        ["answer", "9.9"],
        ["fault", "77"],
        ["hint", "77.1"],
        ["hint", "1.9"],
        ["accept", "77"],
        ["checkpoint"],
        ["nonsense"],
    ],
)
def test_wrong_use_is_one_sentence_and_exit_2(fake_course: Path, arguments: list[str]) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.strip()


def test_json_of_wrong_use_is_one_object_on_stdout(fake_course: Path) -> None:
    result = call("checkpoint", "77", "--json")
    assert result.exit_code == 2
    assert "There is no chapter '77'" in json.loads(result.stdout)["error"]


def test_checkpoint_shows_both_digests_and_a_reminder(fake_course: Path) -> None:
    text = call("checkpoint", "2").output
    for words in (
        snapshot.parent_digest(2)[:12],
        snapshot.target_digest(2)[:12],
        "pi_course/greet.py",
        "tests/test_02_bye.py",
        "pi-course diff 02",
        "what you expect",
    ):
        assert words in text
    data = json.loads(call("checkpoint", "02-bye", "--json").output)
    assert data["target"] == snapshot.target_digest(2)
    assert data["tests"] == ["test_bye"]


def test_list_and_status_say_the_state_in_words(fake_course: Path) -> None:
    call("practice", "1")
    lines = call("list").output.split("\n")
    assert "started" in lines[0]
    assert "new" in lines[1]
    assert "started" in call("status").output
    states = json.loads(call("status", "--json").output)["chapters"]
    assert [chapter["state"] for chapter in states] == ["started", "new"]


def test_practice_json_names_the_folder(fake_course: Path, tmp_path: Path) -> None:
    data = json.loads(call("practice", "1", str(tmp_path / "one"), "--json").output)
    assert data["folder"] == str(tmp_path / "one")
    assert "LEARNING.md" in data["files"]
    again = call("practice", "1", str(tmp_path / "one"), "--json")
    assert again.exit_code == 2
    assert "exists already" in json.loads(again.stdout)["error"]


def test_hints_open_rung_by_rung(
    fake_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(practice.create(checkpoint.find("1"), tmp_path / "one").folder)
    shown = [call("hint", "1.1").output for _ in range(5)]
    assert "Rung 1 of 4: where" in shown[0]
    assert "pi_course/greet.py" in shown[0]
    assert "return" not in "".join(shown[:3])
    assert "def hello(name: str) -> str:" in shown[1]
    assert "Join the word and the name." in shown[2]
    assert 'return f"hello {name}"' in shown[3]
    assert "Rung 4 of 4" in shown[4]
    assert workspace.progress_for().hint_level("01-hello", "1.1") == 4


def test_a_hint_can_be_asked_for_one_name(
    fake_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(practice.create(checkpoint.find("1"), tmp_path / "one").folder)
    assert "def hello" in call("hint", "1.1", "hello", "--level", "2").output
    unknown = call("hint", "1.1", "hullo")
    assert unknown.exit_code == 2
    assert "Its names are: hello" in unknown.stderr


def test_a_hint_for_a_green_folder_says_so(
    fake_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = practice.create(checkpoint.find("1"), tmp_path / "one").folder
    monkeypatch.chdir(folder)
    assert "Lab 1.1" in call("hint").output
    call("hint", "1.1", "--write", "4")
    (folder / "pi_course/__init__.py").write_text("", encoding="utf-8")
    assert "nothing to hint" in call("hint").output


def test_a_hint_can_be_read_without_a_practice_folder(
    fake_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Rung 1 of 4" in call("hint", "1.1").output
    assert call("hint").exit_code == 2
    assert call("hint", "1.1", "--write", "2").exit_code == 2


def test_hints_are_written_into_ones_own_files_and_replace_nothing(
    fake_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = practice.create(checkpoint.find("1"), tmp_path / "one").folder
    monkeypatch.chdir(folder)
    wrote = call("hint", "1.1", "--write", "2").output
    assert wrote.startswith("wrote pi_course/greet.py: hello\n")
    assert "pi-course check --lab 1.1" in wrote
    file = folder / "pi_course/greet.py"
    assert 'raise NotImplementedError("Lab 1.1: hello()")' in file.read_text(encoding="utf-8")
    call("hint", "1.1", "--write", "4")
    assert 'return f"hello {name}"' in file.read_text(encoding="utf-8")
    file.write_text("def hello(name):\n    return name\n", encoding="utf-8")
    kept = call("hint", "1.1", "--write", "4").output
    assert "kept yours in pi_course/greet.py: hello" in kept
    assert "never replaced" in kept
    file.write_text("def hello(:\n", encoding="utf-8")
    broken = call("hint", "1.1", "--write", "4")
    assert broken.exit_code == 2
    assert "Nothing was written" in broken.stderr
    assert file.read_text(encoding="utf-8") == "def hello(:\n"
    file.unlink()
    file.mkdir()
    assert "is a folder where a file belongs" in " ".join(
        call("hint", "1.1", "--write", "2").stderr.split()
    )


def test_the_answer_stays_closed_until_green_or_given_up(fake_course: Path) -> None:
    closed = call("answer", "1")
    assert closed.exit_code == 1
    assert "return" not in closed.output
    assert "return f" not in call("diff", "1").output
    assert "+5 -0" in call("diff", "1").output
    opened = call("answer", "1", "--give-up")
    assert 'return f"hello {name}"' in opened.output
    assert "gave up" in call("status").output
    assert '+    return f"hello {name}"' in call("diff", "1").output


def test_a_second_practice_folder_names_the_first(fake_course: Path, tmp_path: Path) -> None:
    assert "stays as it is" not in call("practice", "1", str(tmp_path / "one")).output
    second = call("practice", "1", str(tmp_path / "two")).output
    assert f"Your folder of before stays as it is: {tmp_path / 'one'}" in second


def test_the_doctor_looks_at_the_progress_file(fake_course: Path) -> None:
    assert call("doctor").exit_code == 0
    path = workspace.progress_for().path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{", encoding="utf-8")
    found = call("doctor")
    assert found.exit_code == 2
    assert "Move it away to start a new one" in " ".join(found.output.split())


def test_the_doctor_says_when_the_work_lies_in_the_checkout(
    fake_course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = data.checkout()
    assert root is not None
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(root / "mine"))
    found = call("doctor")
    assert found.exit_code == 2
    assert "lies inside the course's checkout" in " ".join(found.output.split())


def be_green(tmp_path: Path) -> Path:
    folder = practice.create(checkpoint.find("1"), tmp_path / "one").folder
    (folder / "pi_course").mkdir(exist_ok=True)
    (folder / "pi_course/greet.py").write_text("", encoding="utf-8")
    hashes = workspace.file_hashes(folder, ("pi_course/greet.py",))
    workspace.progress_for().record_check("01-hello", folder, hashes, green=True)
    return folder


def test_acceptance_asks_first_and_shows_then(fake_course: Path, tmp_path: Path) -> None:
    assert call("accept", "1").exit_code == 1
    folder = be_green(tmp_path)
    done = call("accept", "1", answers="a word\ny\n" * 4)
    assert done.exit_code == 0, done.output
    assert "-> 'hello Ann'" in done.output
    assert "`pi-course lab 02`" in done.output
    assert workspace.progress_for().state("01-hello") == "accepted"
    assert "accepted" in call("list").output
    again = call("accept", "1")
    assert (again.exit_code, "accepted already" in again.output) == (0, True)
    (folder / "pi_course/greet.py").write_text("x = 1\n", encoding="utf-8")
    assert workspace.progress_for().state("01-hello") == "started"


def test_acceptance_keeps_answers_and_asks_the_open_ones_again(
    fake_course: Path, tmp_path: Path
) -> None:
    be_green(tmp_path)
    # The first holds, the second does not, the third is left open, and then the input ends.
    left = call("accept", "1", answers="one\ny\ntwo\nn\n\n")
    assert left.exit_code == 1, left.output
    assert "Still open: questions 2, 3, 4." in left.output
    assert [answer["mine"] for answer in workspace.progress_for().answers("01-hello")] == [
        "one",
        "two",
    ]
    assert workspace.progress_for().state("01-hello") == "green"
    done = call("accept", "1", answers="better\ny\n" * 3)
    assert done.exit_code == 0, done.output
    assert "1 of 4" not in done.output
    kept = workspace.progress_for().chapter("01-hello")["accepted"]["answers"]
    assert [answer["mine"] for answer in kept] == ["one", "better", "better", "better"]


def test_a_snapshot_is_written_to_a_new_folder_only(fake_course: Path, tmp_path: Path) -> None:
    assert call("dev", "snapshot", "2", str(tmp_path / "snap")).exit_code == 0
    assert (tmp_path / "snap/pi_course/greet.py").is_file()
    assert (tmp_path / "snap/tests/test_01_hello.py").is_file()
    assert call("dev", "snapshot", "2", str(tmp_path / "snap")).exit_code == 2


@pytest.mark.parametrize("command", ["list", "checkpoint 02", "check one", "check one --json"])
def test_a_reader_that_left_ends_a_command_without_a_word(tmp_path: Path, command: str) -> None:
    """As behind `| head -1`: there is nobody to tell that there is nobody."""
    practice.create(checkpoint.find("1"), tmp_path / "one")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "pi_course_kit.cli", *command.split()],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
