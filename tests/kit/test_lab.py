"""`pi-course lab` and `pi-course demo`."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner

from pi_course_kit import checkpoint
from pi_course_kit.cli import main
from pi_course_kit.errors import CourseError
from pi_course_kit.notebook import server
from pi_course_kit.workspace import Progress, file_hashes

SECONDS = 60


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """A workspace and a Jupyter of this test's own; no display, so that no browser opens."""
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        monkeypatch.setenv(f"JUPYTER_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path / "settings"))
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path / "work space 我"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "PI_COURSE_SOURCE", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def lab(*arguments: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """The command itself in a process, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pi_course_kit.cli", "lab", "--no-browser", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,  # a Ctrl-C in this test must not reach pytest
    )
    assert process.stdout is not None
    said: list[str] = []
    try:
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                yield process, found[0]
                break
        else:
            raise AssertionError("no address in: " + "".join(said))
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(SECONDS)
        process.stdout.close()


def get(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=20) as answer:
        return answer.read()


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
def test_it_serves_the_notebook_to_whoever_has_the_token(tmp_path: Path) -> None:
    with lab("00") as (_, url):
        assert url.startswith("http://127.0.0.1:")
        assert "/lab/tree/notebooks/00-prologue.ipynb?token=" in url
        base, token = url.split("/lab/tree/")[0], url.split("token=")[1]
        assert b"JupyterLab" in get(url)
        file = json.loads(get(f"{base}/api/contents/notebooks/00-prologue.ipynb?token={token}"))
        assert file["content"]["cells"]
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            get(f"{base}/api/contents")
        refused.value.close()
        settings = get(f"{base}/lab/api/settings?token={token}").decode()
        news = '"@jupyterlab/apputils-extension:notification"'
        assert news in settings
        chosen = next(
            item
            for item in json.loads(settings)["settings"]
            if item["id"] == "@jupyterlab/apputils-extension:notification"
        )
        assert chosen["schema"]["properties"]["fetchNews"]["default"] == "false"
        # A second lab in the workspace writes its log behind that of the first.
        log = tmp_path / "work space 我" / server.LOG
        before = log.read_bytes()
        with lab("01"):
            assert before and log.read_bytes().startswith(before)
    assert (tmp_path / "work space 我" / "notebooks" / "03-message-ir.ipynb").is_file()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C reaches a console differently on Windows")
@pytest.mark.parametrize("whom", ["the group, as a terminal does", "the command alone"])
def test_ctrl_c_stops_the_server_and_its_kernels(whom: str) -> None:
    with lab() as (process, url):
        base, token = url.split("/lab/tree/")[0], url.split("token=")[1]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"{base}/api/kernels?token={token}", data=b"{}")
        with opener.open(request, timeout=20) as answer:
            assert json.loads(answer.read())["id"]
        children = _descendants(process.pid)
        assert len(children) >= 2
        if whom == "the command alone":
            os.kill(process.pid, signal.SIGINT)
        else:
            os.killpg(process.pid, signal.SIGINT)
        assert process.wait(SECONDS) == 0
        assert [pid for pid in children if not has_ended(pid)] == []


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C reaches a console differently on Windows")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", ["at once", "when the server has begun to speak"])
def test_it_can_be_stopped_while_it_starts(
    ending: signal.Signals, when: str, tmp_path: Path
) -> None:
    log = tmp_path / "work space 我" / server.LOG
    process = subprocess.Popen(
        [sys.executable, "-m", "pi_course_kit.cli", "lab", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        children: list[int] = []
        for _ in range(SECONDS * 50):
            children = _descendants(process.pid)
            if children and (when == "at once" or log.stat().st_size):
                break
            Event().wait(0.02)
        assert children, "no server was started"
        os.killpg(process.pid, ending)
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 0
    assert said.split("\n") == [
        f"Workspace: {tmp_path / 'work space 我'}",
        "JupyterLab has stopped; what you saved is in the workspace.",
        "",
    ]
    assert [pid for pid in children if not has_ended(pid)] == []


def test_a_signal_that_comes_too_early_is_put_off() -> None:
    ending = server._Ending()  # pyright: ignore[reportPrivateUsage]
    ending(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        ending.allow()
    with pytest.raises(KeyboardInterrupt):
        ending(signal.SIGINT, None)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there a terminal is PowerShell")
def test_a_new_terminal_knows_pi_course(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `make lab`: the environment is not activated."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("SHELL", "/bin/bash")
    with lab() as (_, url):
        base, token = url.split("/lab/tree/")[0], url.split("token=")[1]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"{base}/api/terminals?token={token}", data=b"{}")
        with opener.open(request, timeout=20) as answer:
            name = json.loads(answer.read())["name"]
        socket_url = f"ws{base.removeprefix('http')}/terminals/websocket/{name}?token={token}"
        said = asyncio.run(asyncio.wait_for(_type_in(socket_url, "pi-course list"), SECONDS))
    assert "The agent's own messages" in said


async def _type_in(url: str, line: str) -> str:
    """What a terminal shows until the shell says that the command has ended."""
    client: Any = importlib.import_module("tornado.websocket")  # its types are partly unknown
    connection = await client.websocket_connect(url)
    # The $ keeps what is typed, and shown, from looking like what is answered.
    await connection.write_message(json.dumps(["stdin", f"{line}; echo ended$((40 + 2))\r"]))
    said = ""
    while "ended42" not in said:
        message = await connection.read_message()
        assert message is not None, f"the terminal was closed after: {said}"
        kind, *parts = json.loads(message)
        said += "".join(parts) if kind == "stdout" else ""
    connection.close()
    return said


def _descendants(pid: int) -> list[int]:
    listed = subprocess.check_output(["ps", "-eo", "pid=,ppid="], encoding="utf-8").split("\n")
    parent = {int(p): int(pp) for p, pp in (line.split() for line in listed if line.strip())}
    found = {pid}
    while more := {p for p, pp in parent.items() if pp in found} - found:
        found |= more
    return sorted(found - {pid})


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = CliRunner().invoke(main, ["lab", "--no-browser", "--port", str(port)])
    assert result.exit_code == 2
    assert f"Port {port} of 127.0.0.1 can't be used" in result.output
    assert len(result.output.strip().split("\n")) <= 2


def test_a_workspace_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8", newline="\n")
    monkeypatch.setenv("PI_COURSE_WORKSPACE", str(tmp_path / "file" / "workspace"))
    result = CliRunner().invoke(main, ["lab", "--no-browser"])
    assert result.exit_code == 2
    assert result.output.startswith("pi-course: ") and "PI_COURSE_WORKSPACE" in result.output


def test_an_unknown_chapter_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["lab", "77"])
    assert result.exit_code == 2 and "There is no chapter '77'" in result.output
    assert not (tmp_path / "work space 我").exists()


def test_a_missing_jupyterlab_is_named() -> None:
    with pytest.raises(CourseError, match="some_missing_package is not installed"):
        server.require("some_missing_package")
    server.require()


def test_it_opens_the_first_chapter_that_is_not_accepted(tmp_path: Path) -> None:
    assert server.lay_out(None).chapter.nn == "00"
    first = checkpoint.find("00")
    progress = Progress(tmp_path / "work space 我")
    (tmp_path / "tested.py").write_text("", encoding="utf-8", newline="\n")
    progress.record_check(first.id, tmp_path, file_hashes(tmp_path, ("tested.py",)), green=True)
    progress.record_accepted(first.id)
    assert server.lay_out(None).chapter.nn == "01"
    assert server.lay_out("03").notebook == "notebooks/03-message-ir.ipynb"


def test_what_jupyterlab_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = server.Place(tmp_path, checkpoint.find("03"))
    told = server.arguments(place, port=None, browser=False)
    assert "--ServerApp.ip=127.0.0.1" in told and "--no-browser" in told
    assert f"--ServerApp.root_dir={tmp_path}" in told
    assert "--no-browser" not in server.arguments(place, port=None, browser=True)
    assert "--ServerApp.port_retries=0" in server.arguments(place, port=9999, browser=True)
    assert not any("token" in option or "password" in option for option in told)
    env = server.environment(place, tmp_path / "settings")
    assert env["JUPYTER_PREFER_ENV_PATH"] == "1" and env["PI_COURSE_WORKSPACE"] == str(tmp_path)
    assert env["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
    # Without a display there is no window, even if a text browser is installed.
    if sys.platform.startswith("linux"):
        assert not server.has_browser()


def test_the_settings_are_those_that_the_wheel_installs() -> None:
    root = Path(__file__).resolve().parents[2]
    shipped = json.loads((root / "jupyter" / "overrides.json").read_text(encoding="utf-8"))
    assert server.overrides() == shipped
    assert shipped["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


def test_demo_prologue_prints_the_trace() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pi_course_kit.cli", "demo", "prologue"],
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0
    assert done.stdout.startswith("01 user_message      user Please read README.md")
    assert done.stdout.endswith("07 assistant_message model tiny-pi\n")


def test_demo_streaming_equals_the_kept_file() -> None:
    kept = checkpoint.find("4").folder / "parent" / "tests" / "04-streaming-demo.txt"
    done = subprocess.run(
        [sys.executable, "-m", "pi_course_kit.cli", "demo", "streaming"], capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == kept.read_bytes()


def test_demo_lists_what_exists() -> None:
    listed = CliRunner().invoke(main, ["demo"])
    assert listed.exit_code == 0 and "prologue" in listed.output
    unknown = CliRunner().invoke(main, ["demo", "juggling"])
    assert unknown.exit_code == 2
    assert "There is no demo 'juggling'" in unknown.output and "prologue" in unknown.output
