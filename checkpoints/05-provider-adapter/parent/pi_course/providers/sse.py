"""From bytes to server-sent events. Where the network cuts the bytes has no meaning.

Lines end with LF, CR or CRLF and with nothing else: str.splitlines would also cut at U+2028 and
others, which are ordinary characters inside JSON text. So lines are cut as bytes, and an event is
decoded when it is whole. A connection is not made again here: `id` and `retry` are only told.
"""

from typing import NamedTuple

from pi_course.errors import PiError

MAX_EVENT_BYTES = 16 * 1024 * 1024
MAX_RETRY_DIGITS = 18

_BOM = b"\xef\xbb\xbf"


class SseError(PiError):
    """The body can't be read as events."""


class ServerSentEvent(NamedTuple):
    """A tuple, since one is made for every piece of a reply: a frozen dataclass costs thrice."""

    event: str = "message"
    data: str = ""
    id: str = ""  # the last one that the stream gave, also with an earlier event
    retry: int | None = None  # milliseconds


class SseDecoder:
    """Feed it bytes as they come; each call gives the events that are now whole.

    Example:
        >>> decoder = SseDecoder()
        >>> decoder.feed(b"data: one\\n\\nda")
        [ServerSentEvent(event='message', data='one', id='', retry=None)]
        >>> [event.data for event in decoder.feed(b"ta: two\\r\\n\\r\\n")]
        ['two']
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of the line that has no end yet
        self._line_size = 0
        self._after_cr = False
        self._first_line = True
        self._id = ""
        self._start_event()

    def _start_event(self) -> None:
        self._event = ""
        self._data: list[bytes] = []
        self._data_size = 0
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """May raise SseError: an event that never ends must not fill the memory."""
        raise NotImplementedError("Lab 5.3: SseDecoder.feed()")

    def close(self) -> None:
        """The body is over. What no blank line has ended is no event: it is dropped."""
        raise NotImplementedError("Lab 5.3: SseDecoder.close()")

    def _whole_line(self, end: bytes) -> bytes:
        raise NotImplementedError("Lab 5.3: SseDecoder._whole_line()")

    def _read(self, line: bytes) -> None:
        raise NotImplementedError("Lab 5.3: SseDecoder._read()")

    def _whole_event(self) -> ServerSentEvent:
        raise NotImplementedError("Lab 5.3: SseDecoder._whole_event()")
