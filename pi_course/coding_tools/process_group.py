"""A command with all that it starts: one group of processes, ended together.

A program may leave the group and stay in the session that the shell began: `timeout` does, and so
does each job after `set -m`. Where the system lists its processes in /proc, these are ended too.
Only what makes a session of its own (setsid, a daemon) is out of reach. It can hold nobody up,
since nothing here waits for it, and it lives on. A sandbox with processes of its own ends that.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

# To wait until those who were killed are gone: a moment, even on a busy machine. Who is there after
# that can't be killed: it waits for a disk that does not answer, or belongs to another user.
GONE_SECONDS = 1.0
STEP_SECONDS = 0.005


def exit_handle(pid: int) -> int | None:
    """A handle that can be read when the process has exited, where the system has such handles."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def living_in(session: int) -> list[int] | None:
    """The processes of a session, without the dead; None where there is no /proc to look into.

    Nobody of our own session is ever listed: who is listed may be killed.
    """
    if session == os.getsid(0):
        return []
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    found: list[int] = []
    for name in filter(str.isdigit, names):
        try:
            if os.getsid(int(name)) == session and not _is_dead(name):
                found.append(int(name))
        except OSError:  # gone since it was listed
            continue
    return found


def _is_dead(pid: str) -> bool:
    """Dead, and nobody has cleared it away yet."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")


class ProcessGroup:
    """`exited` is done when the first process, the shell, has exited.

    It is not reaped then: as long as its number is taken, no other process and no other group can
    get it, and a signal can't hit a stranger. `end` must be called in every case.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        output: int,
        handle_of: Callable[[int], int | None] = exit_handle,
        living_in: Callable[[int], list[int] | None] = living_in,
        start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
    ) -> None:
        self._living_in = living_in
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._process = start(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,  # the very same pipe: so the two stay in order
            start_new_session=True,  # a group in it, too, and no terminal to ask for a password
        )
        self._handle = handle_of(self._process.pid)
        if self._handle is None:
            Thread(target=self._wait_in_thread, name="pi-course-bash", daemon=True).start()
        else:
            self._loop.add_reader(self._handle, self._note_exit)

    def _note_exit(self) -> None:
        self._let_go()
        if not self.exited.done():
            self.exited.set_result(None)

    def _let_go(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _wait_in_thread(self) -> None:
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):  # end() was faster
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13: reaped here, so its number is free a moment too early
            self._process.wait()
        with suppress(RuntimeError):  # the loop is closed, so nobody waits there any more
            self._loop.call_soon_threadsafe(self._note_exit)

    def send(self, number: int) -> bool:
        """Signal all who live in the session. False when nobody does who could be signalled."""
        group = self._process.pid
        try:
            os.killpg(group, number)  # in one step: while it is done nobody can start another one
            there = True
        except (ProcessLookupError, PermissionError):
            there = False
        living = self._living_in(group)
        if living is None:
            return there
        for pid in living:
            with suppress(ProcessLookupError, PermissionError):
                # Asked once more, since a wrong number here would end a stranger.
                if group == os.getsid(pid) != os.getpgid(pid):
                    os.kill(pid, number)
        return bool(living)

    async def end(self, at_most: float = GONE_SECONDS) -> int | None:
        """Kill what is left, wait until it is gone, and return the exit code of the shell.

        A shell that a signal ended has 128 and the signal's number, as shells say it. None stands
        for one that could not be killed: nobody waits for that but a thread.
        """
        try:
            for _ in range(int(at_most / STEP_SECONDS)):
                if not self.send(signal.SIGKILL):
                    break
                await asyncio.sleep(STEP_SECONDS)
        finally:  # without an await, so that a second cancellation can't leave a zombie behind
            code = self._reap()
        return code

    def _reap(self) -> int | None:
        self._let_go()
        try:
            code = self._process.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            Thread(target=self._process.wait, name="pi-course-bash", daemon=True).start()
            return None
        return code if code >= 0 else 128 - code
