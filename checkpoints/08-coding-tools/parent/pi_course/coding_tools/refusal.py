"""What a tool refuses, and what the system refuses it, in words that a model can act on."""

import errno
from collections.abc import Generator
from contextlib import contextmanager

from pi_course.abort import Aborted
from pi_course.errors import PiError
from pi_course.messages import Signal

_SAID = {
    errno.ENOENT: "there is no such file. Paths start at the workspace folder",
    errno.EACCES: "the system gives no permission for it",
    errno.EPERM: "the system gives no permission for it",
    errno.EROFS: "it lies on a disk that can only be read",
    errno.EISDIR: "it is a folder. List it with bash: ls",
    errno.ENOTDIR: "a part of the path is a file, and no folder",
    errno.EEXIST: "a part of the path is a file, and no folder",
    errno.ENXIO: "it is a link, a pipe, a socket or a device, and no file",
    errno.ELOOP: "its links lead in a circle",
    errno.ENAMETOOLONG: "the name is too long for the system",
    errno.ENOSPC: "the disk is full. The file is as it was",
    errno.EFBIG: "it would be larger than the system allows. The file is as it was",
    errno.E2BIG: "it is too long for the system. Write it into a file and run that",
}


class ToolRefused(PiError):
    """The reason why a tool did not do what the call asked for."""


@contextmanager
def told_as(name: str) -> Generator[None]:
    """Turn what the system refuses into a ToolRefused that names `name`.

    That is what the model wrote. The full path of this machine, which an OSError carries, stays
    out of the transcript.
    """
    try:
        yield
    except OSError as error:
        said = _SAID.get(error.errno or 0) or error.strerror or type(error).__name__
        raise ToolRefused(f"{name}: {said}") from None


def stop_if_aborted(signal: Signal) -> None:
    """Looked at before each side effect."""
    if signal.aborted:
        raise Aborted(signal.reason)
