"""How much a tool may give back, take in and wait for."""

from dataclasses import dataclass

from pi_course.errors import PiError

KIB = 1024
SMALLEST_BYTES = 512  # below it not even the note about what is missing would fit


@dataclass(frozen=True, slots=True)
class Limits:
    lines: int = 2000  # of one result; bash counts its notes, read the file's lines only
    bytes: int = 50 * KIB  # of one result, in UTF-8, its notes included
    file_bytes: int = 16 * KIB * KIB  # of a file that edit takes into memory
    output_bytes: int = 4 * KIB * KIB * KIB  # that a command may write before it is ended
    seconds: float = 120.0  # for a command that names no time-out
    max_seconds: float = 3600.0  # the longest time-out that a command may name
    grace_seconds: float = 1.0  # between the request to stop and the end by force
    idle_seconds: float = 0.1  # without output, after which a shell that has exited is done
    drain_seconds: float = 2.0  # for output that still comes after the shell has exited

    def __post_init__(self) -> None:
        if self.bytes < SMALLEST_BYTES or self.lines < 3:
            raise PiError(
                f"limits of {self.bytes} bytes and {self.lines} lines leave no room for a note:"
                f" take at least {SMALLEST_BYTES} bytes and 3 lines"
            )


DEFAULT_LIMITS = Limits()
