"""What must hold for any cutting, any interleaving, and an abort at any event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_course.abort import AbortController
from pi_course.messages import (
    AgentContext,
    AssistantMessage,
    Done,
    Error,
    ModelEvent,
    TextContent,
    ToolCall,
    user_message,
)
from pi_course.providers.anthropic_messages import AnthropicPayloadReader
from pi_course.providers.chunks import FinishChunk, ProviderChunk, TextChunk, ToolChunk
from pi_course.providers.openai_compatible import (
    create_openai_compatible_model,
    create_openai_compatible_transport,
    fixed_transport,
)
from pi_course.providers.openai_payload import OpenAIPayloadReader
from pi_course.providers.sse import SseDecoder
from pi_course_kit.loopback import Answer, Call, LoopbackServer, Reply, openai_body

READERS = {"openai": OpenAIPayloadReader, "anthropic": AnthropicPayloadReader}
CONTEXT = AgentContext([user_message("hi")])

settings.register_profile(
    "providers",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
PROPERTY = settings.get_profile("providers")


# Any cutting


def chunks_of(format: str, body: bytes, cuts: list[int]) -> list[ProviderChunk]:
    decoder, reader = SseDecoder(), READERS[format]()
    chunks: list[ProviderChunk] = []
    offsets = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for start, end in zip(offsets, offsets[1:], strict=False):
        for event in decoder.feed(body[start:end]):
            if not reader.done:
                chunks += reader.read(event)
    return chunks + reader.close()


@PROPERTY
@given(data=st.data())
def test_any_cutting_gives_the_same_chunks(bodies: dict[str, Any], data: st.DataObject) -> None:
    body = bodies[data.draw(st.sampled_from(sorted(bodies)))]
    cuts = data.draw(st.lists(st.integers(0, len(body.bytes)), max_size=12))
    assert chunks_of(body.format, body.bytes, cuts) == chunks_of(body.format, body.bytes, [])


@PROPERTY
@given(
    lines=st.lists(
        st.sampled_from(
            ["data: a", "data:", "data", "event: x", "id: 1", "id", ": c", "", "", "retry: 1", "x"]
        )
    ),
    ends=st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=1),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
def test_any_stream_of_lines_cut_anywhere(
    lines: list[str], ends: list[str], cuts: list[int]
) -> None:
    """The decoder against one that has all lines at once and no state for the bytes."""
    body = "".join(line + ends[i % len(ends)] for i, line in enumerate(lines)).encode()
    offsets = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    decoder = SseDecoder()
    events = [
        event
        for start, end in zip(offsets, offsets[1:], strict=False)
        for event in decoder.feed(body[start:end])
    ]
    got = [(event.event, event.data, event.id, event.retry) for event in events]
    assert got == list(plain_events(body.decode()))


def plain_events(text: str) -> Iterator[tuple[str, str, str, int | None]]:
    *lines, _ = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    last_id = ""
    fields: dict[str, str] = {}
    data: list[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if line == "":
            if data:
                retry = int(fields["retry"]) if "retry" in fields else None
                yield fields.get("event") or "message", "\n".join(data), last_id, retry
            fields, data = {}, []
        elif name == "data":
            data.append(value)
        elif name == "id":
            last_id = value
        else:
            fields[name] = value


# Any interleaving

CHARACTERS = 'aZ0 "\\{}:,é读\u2028\x85\n\U0001f600\U0001f468\u200d'


@st.composite
def replies(draw: st.DrawFn) -> tuple[str, list[tuple[int, str, dict[str, Any]]], list[Any]]:
    """A text, up to four calls (provider's index, id, arguments), and their pieces mixed."""
    text = draw(st.text(CHARACTERS, max_size=12))
    short = st.text(CHARACTERS, max_size=6)
    values = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), short)
    arguments = st.dictionaries(short, values, max_size=3)
    indexes = draw(st.lists(st.integers(0, 9), unique=True, max_size=4))
    calls = [(index, f"id-{index}", draw(arguments)) for index in indexes]
    queues: list[list[Any]] = [[("text", piece) for piece in draw(cut_up(text))]]
    for index, call_id, value in calls:
        raw = json.dumps(value, ensure_ascii=draw(st.booleans()))
        pieces = draw(cut_up(raw)) or [""]
        repeat = draw(st.booleans())
        queues.append(
            [
                ("call", index, call_id if first or repeat else None, piece)
                for first, piece in zip([True, *[False] * len(pieces)], pieces, strict=False)
            ]
        )
    mixed: list[Any] = []
    queues = [queue for queue in queues if queue]
    while queues:
        queue = queues[draw(st.integers(0, len(queues) - 1))]
        mixed.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    return text, calls, mixed


@st.composite
def cut_up(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces. A character above U+FFFF may be cut between its surrogates."""
    units = text.encode("utf-16-le")
    size = len(units) // 2
    cuts = draw(st.lists(st.integers(0, size), max_size=6))
    offsets = [0, *sorted(cuts), size]
    pieces = [units[2 * a : 2 * b] for a, b in zip(offsets, offsets[1:], strict=False) if a < b]
    return [piece.decode("utf-16-le", "surrogatepass") for piece in pieces]


def as_chunks(mixed: list[Any]) -> list[ProviderChunk]:
    chunks: list[ProviderChunk] = []
    for kind, *rest in mixed:
        if kind == "text":
            chunks.append(TextChunk(rest[0]))
        else:
            index, call_id, piece = rest
            chunks.append(ToolChunk(index, call_id, "tool" if call_id else None, piece))
    calls = any(kind == "call" for kind, *_ in mixed)
    return [*chunks, FinishChunk("tool_calls" if calls else "stop")]


def as_body(mixed: list[Any], *, escaped: bool) -> bytes:
    """The same as bytes of the OpenAI-compatible format. Halves can only be written escaped."""
    lines: list[str] = []
    for chunk in as_chunks(mixed):
        delta: dict[str, Any] = {}
        finish = None
        match chunk:
            case TextChunk():
                delta["content"] = chunk.delta
            case ToolChunk():
                function = {"name": chunk.name, "arguments": chunk.arguments_delta}
                delta["tool_calls"] = [{"index": chunk.index, "id": chunk.id, "function": function}]
            case FinishChunk():
                finish = chunk.reason
        payload = {"choices": [{"delta": delta, "finish_reason": finish}]}
        text = json.dumps(payload, ensure_ascii=False)
        if escaped or not encodable(text):
            text = json.dumps(payload)
        lines.append(f"data: {text}\n\n")
    return "".join(lines).encode()


def encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


async def watched(transport: Any, **options: Any) -> tuple[list[ModelEvent], list[Any]]:
    """All events, and the partial of each as it was read when the event came."""
    model = create_openai_compatible_model(provider="p", model="m", transport=transport)
    events: list[ModelEvent] = []
    partials: list[Any] = []
    async for event in model.stream(CONTEXT, **options):
        events.append(event)
        partials.append(None if isinstance(event, Done | Error) else event.partial)
    return events, partials


def check_stream(events: list[ModelEvent], partials: list[Any]) -> AssistantMessage:
    """One terminal event, the last; partials that only grow and never change."""
    last = events[-1]
    assert isinstance(last, Done | Error)
    assert not any(isinstance(event, Done | Error) for event in events[:-1])
    for event, then in zip(events[:-1], partials, strict=False):
        assert not isinstance(event, Done | Error)
        assert event.partial == then
    for earlier, later in zip(partials[:-2], partials[1:-1], strict=False):
        check_grown(earlier, later)
    message = last.message if isinstance(last, Done) else last.error
    if len(partials) > 1:
        check_grown(partials[-2], message)
    return message


def check_grown(earlier: AssistantMessage, later: AssistantMessage) -> None:
    assert len(earlier.content) <= len(later.content)
    for before, after in zip(earlier.content, later.content, strict=False):
        if isinstance(before, TextContent):
            assert isinstance(after, TextContent) and after.text.startswith(before.text)
        else:
            assert isinstance(after, ToolCall) and (before.id, before.name) == (
                after.id,
                after.name,
            )
            assert (after.raw_arguments or "").startswith(before.raw_arguments or "")


@PROPERTY
@given(reply=replies())
def test_any_interleaving_gives_each_block_whole(reply: Any) -> None:
    text, calls, mixed = reply
    events, partials = asyncio.run(watched(fixed_transport(as_chunks(mixed))))
    message = check_stream(events, partials)

    order = list(dict.fromkeys("text" if k == "text" else rest[0] for k, *rest in mixed))
    by_index = {index: (call_id, value) for index, call_id, value in calls}
    assert message.stop_reason == ("toolUse" if calls else "stop")
    for place, block in zip(order, message.content, strict=True):
        if isinstance(block, TextContent):
            assert (place, block.text) == ("text", text)
        else:
            call_id, value = by_index[place]
            assert (block.id, json.loads(block.raw_arguments or "{}")) == (call_id, value)
            assert dict(block.arguments) == value
    deltas: dict[int, str] = {}
    for event in events:
        if event.type in ("text_delta", "toolcall_delta"):
            deltas[event.content_index] = deltas.get(event.content_index, "") + event.delta
    for place, block in enumerate(message.content):
        whole = block.text if isinstance(block, TextContent) else block.raw_arguments
        assert deltas[place] == whole


@PROPERTY
@given(reply=replies(), escaped=st.booleans(), cuts=st.lists(st.integers(0, 5000), max_size=8))
def test_any_interleaving_as_bytes_gives_the_same_message(
    reply: Any, escaped: bool, cuts: list[int]
) -> None:
    mixed = reply[2]
    chunks = chunks_of("openai", as_body(mixed, escaped=escaped), cuts)
    events, partials = asyncio.run(watched(fixed_transport(chunks)))
    uncut = check_stream(*asyncio.run(watched(fixed_transport(as_chunks(mixed)))))
    assert check_stream(events, partials).content == uncut.content


# Abort at any event


@PROPERTY
@given(reply=replies(), after=st.integers(0, 12))
def test_abort_at_any_event_settles_once_and_leaves_nothing(reply: Any, after: int) -> None:
    chunks = as_chunks(reply[2])

    async def abort_after() -> tuple[list[ModelEvent], list[Any], set[Any]]:
        before = asyncio.all_tasks()
        controller = AbortController()
        transport = fixed_transport(chunks, pause=lambda: asyncio.sleep(0))
        model = create_openai_compatible_model(provider="p", model="m", transport=transport)
        events: list[ModelEvent] = []
        partials: list[Any] = []
        async for event in model.stream(CONTEXT, signal=controller.signal):
            events.append(event)
            partials.append(None if isinstance(event, Done | Error) else event.partial)
            if len(events) == after + 1:
                controller.abort("enough")
        return events, partials, asyncio.all_tasks() - before

    events, partials, left = asyncio.run(abort_after())
    message = check_stream(events, partials)
    assert left == set()
    if message.stop_reason == "aborted":
        assert events[-1].type == "error"
        if len(partials) > 1:
            assert message.content == partials[-2].content
    else:
        assert (
            message.content == asyncio.run(watched(fixed_transport(chunks)))[0][-1].message.content
        )


REPLY = Reply(text="one two three", calls=(Call("c", "ls", '{"a":1}'),), piece=4)
END = openai_body(REPLY).index(b'"finish_reason": "tool_calls"')


@settings(PROPERTY, max_examples=12)
@given(after=st.integers(0, 8))
def test_abort_at_any_event_closes_the_connection(after: int) -> None:
    async def abort_after() -> tuple[list[ModelEvent], float, set[Any]]:
        controller = AbortController()
        async with LoopbackServer(
            [Answer(REPLY, each=150, pause=0.002, stall_after=END)]
        ) as server:
            before = asyncio.all_tasks()
            transport = create_openai_compatible_transport(base_url=server.openai_url)
            model = create_openai_compatible_model(provider="p", model="m", transport=transport)
            events: list[ModelEvent] = []
            clock = asyncio.get_running_loop().time
            aborted = 0.0
            async for event in model.stream(CONTEXT, signal=controller.signal):
                events.append(event)
                if len(events) == min(after, 6) + 1:
                    aborted = clock()
                    controller.abort()
            left = asyncio.all_tasks() - before - server.tasks
            for asked in server.requests:
                await asyncio.wait_for(asked.gone.wait(), 1)
            return events, clock() - aborted, left

    events, seconds, left = asyncio.run(abort_after())
    assert [event.type for event in events].count("error") == 1
    assert events[-1].type == "error"
    assert left == set()
    assert seconds < 0.5
