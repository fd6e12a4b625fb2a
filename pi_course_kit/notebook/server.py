"""JupyterLab on the learner's workspace: what it is started with, and how it is stopped."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

from pi_course_kit import checkpoint
from pi_course_kit.checkpoint import Checkpoint
from pi_course_kit.data import checkout, data_dir
from pi_course_kit.errors import CourseError
from pi_course_kit.workspace import Progress, lay_out_notebooks, workspace

STARTS_IN = 60.0  # seconds until a server that does not answer is given up
STOPS_IN = 15.0  # seconds that its kernels get to end
GIVES_UP_IN = 3.0  # seconds for a server that has no kernels yet
LOG = "jupyterlab.log"


@dataclass(frozen=True, slots=True)
class Place:
    """Where JupyterLab is rooted and what it opens first."""

    workspace: Path
    chapter: Checkpoint

    @property
    def notebook(self) -> str:
        return f"notebooks/{self.chapter.id}.ipynb"


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        self.process.wait()


def require(*needed: str) -> None:
    """Refuse to start without the packages (by default those that Jupyter needs)."""
    wanted = needed or ("jupyterlab", "ipykernel")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise CourseError(
            f"{missing[0]} is not installed for {sys.executable}. "
            "Install pi-course again into this environment: it brings JupyterLab with it."
        )


def lay_out(name: str | None) -> Place:
    """Copy the notebooks and choose the chapter: the one named, else the first not accepted."""
    folder = workspace(Path.cwd())
    chosen = checkpoint.find(name) if name else None  # before anything is written
    lay_out_notebooks(folder)
    chapter = chosen or _first_open(Progress(folder))
    place = Place(folder, chapter)
    if not (folder / place.notebook).is_file():
        raise CourseError(
            f"Chapter {chapter.nn} has no notebook {folder / place.notebook}. "
            "Was it removed? Start with another chapter, or move the notebooks folder away."
        )
    return place


def _first_open(progress: Progress) -> Checkpoint:
    written = sorted(data_dir("notebooks").glob("*.ipynb"))
    chapters = [checkpoint.find(file.stem) for file in written]
    for chapter in chapters:
        if progress.state(chapter.id) != "accepted":
            return chapter
    return chapters[-1]


@contextmanager
def started(place: Place, *, port: int | None, browser: bool) -> Generator[Running]:
    """A server that answers; it and its kernels are gone when the block is left.

    Ctrl-C and the signals that end a command leave it as KeyboardInterrupt, from the first line on.
    """
    _require_free(port)
    log = place.workspace / LOG
    process: subprocess.Popen[bytes] | None = None
    stops_in = GIVES_UP_IN
    ending = _Ending()
    before = {number: signal.signal(number, ending) for number in _endings()}
    settings = Path(tempfile.mkdtemp(prefix="pi-course-lab-"))
    try:
        _override_settings(settings)
        known = set(_runtime_folder().glob("jpserver-*.json"))
        with open(log, "ab") as file:  # another lab in this workspace may be writing there
            begin = file.tell()
            process = subprocess.Popen(
                arguments(place, port=port, browser=browser and has_browser()),
                env=environment(place, settings),
                cwd=place.workspace,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                # The terminal's Ctrl-C comes to us, and the server gets one signal, ours. After
                # two it would leave before its kernels have ended.
                process_group=0 if os.name == "posix" else None,
            )
        ending.allow()
        url = _address(place, process, known, log, begin)
        stops_in = STOPS_IN
        yield Running(url, process)
    except OSError as error:
        raise CourseError(
            f"JupyterLab can't start on {place.workspace}: {error.strerror or error}. "
            "Free the folder, or set PI_COURSE_WORKSPACE to one that can be written."
        ) from error
    finally:
        ending.held = True
        if process is not None:
            _stop(process, stops_in)
        for number, handler in before.items():
            signal.signal(number, handler)
        shutil.rmtree(settings, ignore_errors=True)


def arguments(place: Place, *, port: int | None, browser: bool) -> list[str]:
    """Loopback only, with a token; no news, no update checks, no extension manager."""
    options = [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={place.workspace}",
        f"--LabApp.default_url=/lab/tree/{urllib.parse.quote(place.notebook)}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--MappingKernelManager.transport_encryption=auto",
        "--ServerApp.answer_yes=True",  # where it gets the Ctrl-C itself, it need not ask
    ]
    if os.name == "posix":
        # By default it is a login shell, whose /etc/profile replaces the PATH of environment().
        shell = os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"
        options.append(f"--ServerApp.terminado_settings={json.dumps({'shell_command': [shell]})}")
    if port is not None:
        options += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        options.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    return [sys.executable, "-P", "-m", "jupyterlab", *options]


def environment(place: Place, settings: Path) -> dict[str, str]:
    """The commands and kernels of this interpreter come first, and know the workspace."""
    path = os.environ.get("JUPYTER_CONFIG_PATH")
    scripts = str(Path(sys.executable).parent)  # pi-course, for the terminals of JupyterLab
    return {
        **os.environ,
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH") or os.defpath]),
        "PI_COURSE_WORKSPACE": str(place.workspace),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_CONFIG_PATH": os.pathsep.join([str(settings), path] if path else [str(settings)]),
        # Tabs of other projects are not restored here, nor ours there.
        "JUPYTERLAB_WORKSPACES_DIR": str(place.workspace / ".jupyter" / "workspaces"),
    }


def overrides() -> dict[str, Any]:
    """The JupyterLab settings that the course needs: from the checkout, else where a wheel puts
    them. A wheel's are read by JupyterLab anyway; an editable install's may be stale or absent.
    """
    root = checkout()
    file = (
        root / "jupyter" / "overrides.json"
        if root
        else Path(sys.prefix) / "share/jupyter/lab/settings/overrides.d/pi-course.json"
    )
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _override_settings(folder: Path) -> None:
    file = folder / "labconfig" / "default_setting_overrides.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(overrides()), encoding="utf-8", newline="\n")


def has_browser() -> bool:
    """Whether a window can open; text browsers in a terminal do not count."""
    import webbrowser

    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _require_free(port: int | None) -> None:
    if port is None:
        return
    with socket.socket() as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CourseError(
                f"Port {port} of 127.0.0.1 can't be used: {error.strerror or error}. "
                "Name another one, or leave --port out to get a free one."
            ) from error


def _runtime_folder() -> Path:
    from jupyter_core.paths import jupyter_runtime_dir

    return Path(jupyter_runtime_dir())


def _address(
    place: Place, process: subprocess.Popen[bytes], known: set[Path], log: Path, begin: int
) -> str:
    """Wait until the server has written down where it listens, and answers there."""
    pause = Event()
    for _ in range(int(STARTS_IN / 0.1)):
        if process.poll() is not None:
            break
        for file in set(_runtime_folder().glob("jpserver-*.json")) - known:
            info = _server_info(file)
            if info.get("root_dir") == str(place.workspace) and _answers(info["url"]):
                page = urllib.parse.quote(f"lab/tree/{place.notebook}")
                return f"{info['url']}{page}?token={info['token']}"
        pause.wait(0.1)
    lines = log.read_bytes()[begin:].decode("utf-8", errors="replace").strip().split("\n")
    raise CourseError(
        f"JupyterLab did not start. Its last words: {lines[-1].strip() or 'none'}\n"
        f"All of them are in {log}."
    )


def _server_info(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # not written to its end yet


def _answers(url: str) -> bool:
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url + "api", timeout=5)
    except urllib.error.HTTPError:
        return True  # it refuses, so it is there
    except OSError:
        return False
    return True


def _stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """End the server and, through it, its kernels; only then by force."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _endings() -> list[signal.Signals]:
    """What may end the command: Ctrl-C, kill, and a terminal that is closed."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [signal.Signals[name] for name in names if hasattr(signal, name)]


class _Ending:
    """Handles those signals. Held while the server is made and while it is stopped, so that a
    signal in between leaves no process behind; the first one is only put off.
    """

    def __init__(self) -> None:
        self.held = True
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if not self.held:
            raise KeyboardInterrupt

    def allow(self) -> None:
        self.held = False
        if self.came:
            raise KeyboardInterrupt
