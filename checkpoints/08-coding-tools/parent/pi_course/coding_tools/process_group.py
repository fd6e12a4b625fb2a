"""A command with all that it starts: one group of processes, ended together.

What leaves the group on purpose (setsid, a daemon) is out of reach. It can hold nobody up, since
nothing here waits for it, and it lives on. Only a sandbox with processes of its own ends that too.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

# To wait until a group that was killed is gone. Longer would bring nothing: in some containers
# nobody clears dead processes away, and then it looks as if they were still there.
GONE_SECONDS = 0.1
STEP_SECONDS = 0.005


def exit_handle(pid: int) -> int | None:
    """A handle that can be read when the process has exited, where the system has such handles."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


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
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,  # the very same pipe: so the two stay in order
            start_new_session=True,  # a group of its own, and no terminal to ask for a password
        )
        self._handle = handle_of(self._process.pid)
        if self._handle is None:
            Thread(target=self._wait_in_thread, name="pi-course-bash", daemon=True).start()
        else:
            self._loop.add_reader(self._handle, self._note_exit)

    def _note_exit(self) -> None:
        raise NotImplementedError("Lab 8.5: ProcessGroup._note_exit()")

    def _let_go(self) -> None:
        raise NotImplementedError("Lab 8.5: ProcessGroup._let_go()")

    def _wait_in_thread(self) -> None:
        raise NotImplementedError("Lab 8.5: ProcessGroup._wait_in_thread()")

    def send(self, number: int) -> bool:
        """Signal the whole group. False when nobody is there who could be signalled."""
        raise NotImplementedError("Lab 8.5: ProcessGroup.send()")

    async def end(self) -> int:
        """Kill what is left, reap the shell, and return its exit code once the group is gone.

        A shell that a signal ended has 128 and the signal's number, as shells say it.
        """
        raise NotImplementedError("Lab 8.5: ProcessGroup.end()")
