"""One request through the whole loop, written down as a trace.

The model is a script and the only file is in memory. What is left is what every agent has: the
order of the events, an owner for each, and the id that pairs a tool result with its call.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pi_course.errors import PiError

Owner = Literal["user", "model", "loop", "tool"]
TraceKind = Literal["user_message", "model_start", "assistant_message", "tool_start", "tool_result"]

# The other two kinds tell that something begins; nobody sends or stores them.
_TRANSCRIPT_KINDS: Final = ("user_message", "assistant_message", "tool_result")
_FILES: Final = {"README.md": "# tiny-pi\nA small agent runtime."}


class TraceError(PiError):
    """A trace breaks the order of its steps or the pairing of calls and results."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing that happened, and who did it.

    `tool_call_id` stands on an assistant_message that requests a call, and on the tool_start and
    the tool_result of that call. Everywhere else it is None.
    """

    step: int
    owner: Owner
    kind: TraceKind
    detail: str
    tool_call_id: str | None = None


def run_prologue() -> tuple[TraceEvent, ...]:
    """Ask for the name of the project: two requests to the model, one tool call between them."""
    events: list[TraceEvent] = []

    def record(owner: Owner, kind: TraceKind, detail: str, call_id: str | None = None) -> None:
        events.append(TraceEvent(len(events) + 1, owner, kind, detail, call_id))

    def ask_model() -> None:
        facts = sum(event.kind in _TRANSCRIPT_KINDS for event in events)
        record("model", "model_start", f"messages: {facts}")

    call = 'read({"path": "README.md"})'
    record("user", "user_message", "Please read README.md and tell me the project name.")
    ask_model()
    record("model", "assistant_message", f"I will read README.md first. {call}", "call_1")
    record("loop", "tool_start", call, "call_1")
    record("tool", "tool_result", _read("README.md"), "call_1")
    ask_model()
    record("model", "assistant_message", "tiny-pi")
    return tuple(events)


def check_trace(events: Iterable[TraceEvent]) -> None:
    """Raise TraceError unless steps count from 1 and each call has one result after it.

    Only the trace is evidence. The final text is not read: it can be right without a result.
    """
    called_at: dict[str, int] = {}
    answered: set[str] = set()
    for step, event in enumerate(events, start=1):
        if event.step != step:
            raise TraceError(
                f"step {event.step} stands where step {step} belongs: "
                "number the events 1, 2, 3 without a gap"
            )
        call_id = event.tool_call_id
        if event.kind == "assistant_message" and call_id is not None:
            if call_id in called_at:
                raise TraceError(
                    f"step {step}: call id {call_id!r} is used twice: give each call its own id"
                )
            called_at[call_id] = step
        elif event.kind == "tool_result":
            _pair_result(step, call_id, called_at, answered)
    for call_id, step in called_at.items():
        if call_id not in answered:
            raise TraceError(
                f"step {step}: call {call_id!r} has no result: "
                "add a tool_result with this id after the call"
            )


def format_trace(events: Iterable[TraceEvent]) -> str:
    """One line an event; a line break inside a detail is printed as \\n.

    Example:
        >>> format_trace([TraceEvent(1, "user", "user_message", "Hello")])
        '01 user_message      user Hello'
    """
    return "\n".join(
        f"{event.step:02} {event.kind:<17} {event.owner} " + event.detail.replace("\n", "\\n")
        for event in events
    )


def _pair_result(
    step: int, call_id: str | None, called_at: dict[str, int], answered: set[str]
) -> None:
    if call_id is None or call_id not in called_at:
        raise TraceError(
            f"step {step}: the result for {call_id!r} has no call before it: "
            "put it after the assistant_message that carries this id"
        )
    if call_id in answered:
        raise TraceError(
            f"step {step}: a second result for {call_id!r}: keep one result for each call"
        )
    answered.add(call_id)


def _read(path: str) -> str:
    """The tool. It fails as tools do, by raising: KeyError for a path that is not there."""
    return _FILES[path]
