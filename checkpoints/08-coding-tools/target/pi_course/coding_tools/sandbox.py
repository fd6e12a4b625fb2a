"""Real isolation for commands, where the system has bubblewrap.

Inside there is no network, only the workspace can be written, and /tmp and /run are empty and
gone afterwards, with every process. What the user may read can still be read.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from pi_course.errors import PiError


class SandboxUnavailable(PiError):
    """There is no sandbox. Nothing is ever run without the one that was asked for."""


def sandboxed(
    folder: Path, *, which: Callable[[str], str | None] = shutil.which
) -> tuple[str, ...]:
    """What stands in front of a command so that it runs in the sandbox. Tried out before."""
    program = which("bwrap")
    if program is None:
        raise SandboxUnavailable(
            "containment='sandbox' needs bubblewrap, and there is no bwrap on PATH:"
            " install bubblewrap, or choose another containment"
        )
    front = (
        *(program, "--ro-bind", "/", "/"),
        *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run"),
        *("--bind", str(folder), str(folder), "--chdir", str(folder)),
        *("--unshare-all", "--new-session", "--die-with-parent", "--"),
    )
    tried = subprocess.run(
        [*front, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
    )
    if tried.returncode:
        said = tried.stderr.decode("utf-8", "replace").strip()
        raise SandboxUnavailable(f"bubblewrap is installed and does not work here: {said}")
    return front
