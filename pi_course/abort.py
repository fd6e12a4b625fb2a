"""One signal that travels from the caller to the model and the tools: please stop.

Nobody is stopped by force. Who holds the signal looks at it before each step that costs
something, and gives back what it has.
"""

import asyncio
from contextlib import suppress

from pi_course.errors import PiError


class Aborted(PiError):
    """Raised by `raise_if_aborted`, for code that has no result of its own to give back."""

    def __init__(self, reason: object) -> None:
        super().__init__("aborted" if reason is None else f"aborted: {reason}")


class AbortSignal:
    """The side that can only look. One object serves every holder, on any thread and loop."""

    def __init__(self, reasons: list[object], waiting: "set[asyncio.Future[None]]") -> None:
        self._reasons = reasons
        self._waiting = waiting

    @property
    def aborted(self) -> bool:
        return bool(self._reasons)

    @property
    def reason(self) -> object:
        """What the first abort() gave; None before it."""
        return self._reasons[0] if self._reasons else None

    def raise_if_aborted(self) -> None:
        if self.aborted:
            raise Aborted(self.reason)

    async def wait(self) -> None:
        """Return as soon as the signal is aborted."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(woken)
        try:
            # Looked at after the add, or an abort between the two would wake nobody.
            if not self.aborted:
                await woken
        finally:
            self._waiting.discard(woken)


class AbortController:
    """The side that can stop. Keep it; hand out its `signal`.

    Example:
        >>> controller = AbortController()
        >>> controller.abort("stop button")
        >>> controller.abort("window closed")
        >>> controller.signal.aborted, controller.signal.reason
        (True, 'stop button')
    """

    def __init__(self) -> None:
        # Appending is one step for all threads: whoever comes first has place 0, without a lock.
        self._reasons: list[object] = []
        self._waiting: set[asyncio.Future[None]] = set()
        self.signal = AbortSignal(self._reasons, self._waiting)

    def abort(self, reason: object = None) -> None:
        """May be called from any thread, any number of times; the first reason stays."""
        self._reasons.append(reason)
        for future in self._waiting.copy():
            with suppress(RuntimeError):  # its loop is closed, so nobody waits there any more
                future.get_loop().call_soon_threadsafe(_wake, future)


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
