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
        if self._after_cr and data:
            # A CR has ended its line at once; this may be the LF that belongs to it.
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop()
        events: list[ServerSentEvent] = []
        if lines and (self._line or self._first_line):
            lines[0] = self._whole_line(lines[0])
        for line in lines:
            if line:
                self._read(line)
            elif self._data:
                events.append(self._whole_event())
            else:
                self._start_event()
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
        if self._line_size + self._data_size > MAX_EVENT_BYTES:
            raise SseError(
                f"One event is longer than {MAX_EVENT_BYTES} bytes and has no end:"
                " is this really a stream of events?"
            )
        return events

    def close(self) -> None:
        """The body is over. What no blank line has ended is no event: it is dropped."""
        self.__init__()

    def _whole_line(self, end: bytes) -> bytes:
        line = b"".join([*self._line, end])
        self._line.clear()
        self._line_size = 0
        if self._first_line:
            line = line.removeprefix(_BOM)
            self._first_line = False
        return line

    def _read(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_size += len(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < MAX_RETRY_DIGITS:
            self._retry = int(value)

    def _whole_event(self) -> ServerSentEvent:
        data = b"\n".join(self._data).decode("utf-8", "replace")
        event = ServerSentEvent(self._event or "message", data, self._id, self._retry)
        self._start_event()
        return event
