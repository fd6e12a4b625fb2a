"""A model's server on 127.0.0.1, for notebooks, tests and trying `chat` by hand.

It speaks real HTTP over real sockets and answers from a script, in the format that was asked for:
OpenAI-compatible at /v1/chat/completions, Anthropic Messages at /v1/messages. What a network and
a provider may do to a reply is in the script, too: cuts, pauses, stalls, drops, error statuses.

    async with LoopbackServer([Reply(text="Hello")]) as server:
        transport = create_openai_compatible_transport(base_url=server.openai_url)

It refuses what the providers refuse: a call without its result is a 400 that names the id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pi_course_kit.errors import CourseError

Json: TypeAlias = dict[str, Any]

MAX_CONNECTIONS = 64
MAX_REQUEST_BYTES = 8 * 1024 * 1024
MAX_SECONDS = 60.0  # of one connection, a stall included


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model writes it: the arguments are text and need not be whole."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says, `piece` characters at a time, whatever the format on the wire."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None  # "stop", "length" or "tool_calls"; None: what the calls say
    usage: tuple[int, int] = (9, 2)  # input and output tokens
    piece: int = 8

    @property
    def reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer and what happens to it on its way. Offsets count bytes of the body."""

    body: bytes | str | Reply = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cuts: tuple[int, ...] = ()  # offsets at which a network chunk ends
    each: int | None = None  # bytes in a network chunk, in place of cuts
    pause: float = 0.0  # seconds between two network chunks
    stall_after: int | None = None  # then nothing more comes, until the client leaves
    drop_after: int | None = None  # then the connection is gone, in mid-body
    silent: bool = False  # not even a status comes


@dataclass(slots=True)
class Asked:
    """A request as it came in. Its repr leaves the headers out: one of them holds a key."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)  # names in lower case
    body: Json
    gone: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    gone_at: float | None = None  # time.monotonic() when the client closed the connection


Turn: TypeAlias = Answer | Reply | Callable[[Asked], "Answer | Reply"]


class LoopbackServer:
    """Answers the n-th request with the n-th turn; a function as `turns` answers every request.

    `requests` holds what was asked. With `api_key` a request without that key is a 401.
    """

    def __init__(
        self, turns: Iterable[Turn] | Callable[[Asked], Answer | Reply], *, api_key: str = ""
    ) -> None:
        self._turns = turns if callable(turns) else list(turns)
        self._api_key = api_key
        self._server: asyncio.Server | None = None
        self.tasks: set[asyncio.Task[None]] = set()  # its own: what else is open, others left
        self.requests: list[Asked] = []

    @property
    def url(self) -> str:
        if self._server is None:
            raise CourseError("The loopback server is not running. Await its start() first.")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    async def start(self, port: int = 0) -> LoopbackServer:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        return self

    async def stop(self) -> None:
        """Close all connections, whatever they wait for. May be called twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.sleep(0)  # a socket is closed in the turn of the loop after its writer

    async def __aenter__(self) -> LoopbackServer:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            async with asyncio.timeout(MAX_SECONDS):
                asked = await _read_request(reader)
                self.requests.append(asked)
                async with _watched(reader, asked, self.tasks):
                    await _send(writer, self._answer(asked), asked)
        except (ConnectionError, TimeoutError, EOFError, ValueError, asyncio.CancelledError):
            pass  # the client left, or sent what is no request, or stop() was called
        finally:
            writer.close()
            self.tasks.discard(task)

    def _answer(self, asked: Asked) -> Answer:
        if len(self.tasks) > 2 * MAX_CONNECTIONS:  # each has a second task that watches the client
            return error_answer(asked, 503, f"more than {MAX_CONNECTIONS} connections")
        if asked.method != "POST" or _format(asked.path) is None:
            return error_answer(asked, 404, f"there is no {asked.method} {asked.path}")
        if self._api_key and self._api_key not in (
            asked.headers.get("authorization", "").removeprefix("Bearer "),
            asked.headers.get("x-api-key"),
        ):
            return error_answer(asked, 401, "the key is missing or not the right one")
        try:
            problem = _problem(asked)
        except (AttributeError, KeyError, TypeError) as error:
            problem = f"the request has not the right shape: {error!r}"
        if problem:
            return error_answer(asked, 400, problem)
        turn = self._turn(asked)
        answer = turn(asked) if callable(turn) else turn
        return Answer(answer) if isinstance(answer, Reply) else answer

    def _turn(self, asked: Asked) -> Turn:
        if callable(self._turns):
            return self._turns
        number = len(self.requests)
        if number > len(self._turns):
            told = f"this is request {number}, and the script ends after {len(self._turns)}"
            return error_answer(asked, 500, told)
        return self._turns[number - 1]


# Requests


async def _read_request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    length = int(headers.get("content-length", "0"))
    if length > MAX_REQUEST_BYTES:
        raise ValueError(f"a request of {length} bytes")
    body = await reader.readexactly(length)
    return Asked(method, path, headers, json.loads(body) if body else {})


@contextlib.asynccontextmanager
async def _watched(
    reader: asyncio.StreamReader, asked: Asked, tasks: set[asyncio.Task[None]]
) -> AsyncGenerator[None]:
    """Notice when the client closes its side, also while the answer is under way."""

    async def watch() -> None:
        try:
            await reader.read()
        except ConnectionError:
            pass
        asked.gone_at = time.monotonic()
        asked.gone.set()

    task = asyncio.create_task(watch())
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    try:
        yield
    finally:
        task.cancel()


def _format(path: str) -> str | None:
    return {"/v1/chat/completions": "openai", "/v1/messages": "anthropic"}.get(path)


def _problem(asked: Asked) -> str | None:
    """What the real providers refuse, in the words that say which id is meant."""
    openai = _format(asked.path) == "openai"
    if not openai and not isinstance(asked.body.get("max_tokens"), int):
        return "max_tokens: field required"
    open_calls: list[str] = []
    for role, calls, results in _turns_of(asked.body, openai):
        for result in results:
            if result not in open_calls:
                return f"the result {result!r} answers no call of the message before it"
            open_calls.remove(result)
        if open_calls and role != "tool":
            break
        open_calls += calls
    if open_calls:
        return f"these calls have no result right after them: {', '.join(open_calls)}"
    return None


def _turns_of(body: Json, openai: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    """Role, ids of calls and ids of results of each message."""
    for message in body.get("messages", []):
        role = message.get("role", "")
        if openai:
            tool_calls: list[Json] = message.get("tool_calls") or []
            calls = [call["id"] for call in tool_calls]
            yield role, calls, [message["tool_call_id"]] if role == "tool" else []
        else:
            content: str | list[Json] = message.get("content", [])
            blocks = [] if isinstance(content, str) else content
            calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
            yield role, calls, [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]


# Answers


def error_answer(asked: Asked, status: int, message: str) -> Answer:
    """An error in the shape that the asked format has for it."""
    error: Json = {"message": message, "type": "invalid_request_error"}
    anthropic = _format(asked.path) == "anthropic"
    body = {"type": "error", "error": error} if anthropic else {"error": error}
    return Answer(json.dumps(body), status, {"content-type": "application/json"})


async def _send(writer: asyncio.StreamWriter, answer: Answer, asked: Asked) -> None:
    if answer.silent:
        await asked.gone.wait()
        return
    body = answer.body
    if isinstance(body, Reply):
        body = openai_body(body) if _format(asked.path) == "openai" else anthropic_body(body)
    body = body.encode() if isinstance(body, str) else body
    headers = {
        "content-type": "text/event-stream; charset=utf-8",
        "transfer-encoding": "chunked",
        "connection": "close",
    } | {name.lower(): value for name, value in answer.headers.items()}
    head = [f"HTTP/1.1 {answer.status} -", *(f"{name}: {headers[name]}" for name in headers)]
    writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))
    await writer.drain()
    for chunk in _network_chunks(body, answer):
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()
        if answer.pause:
            await asyncio.sleep(answer.pause)
    if answer.drop_after is not None:
        writer.close()
    elif answer.stall_after is not None:
        await asked.gone.wait()
    else:
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _network_chunks(body: bytes, answer: Answer) -> Iterator[bytes]:
    ends = [end for end in (answer.stall_after, answer.drop_after) if end is not None]
    body = body[: min(ends)] if ends else body
    cuts = range(answer.each, len(body), answer.each) if answer.each else sorted({*answer.cuts})
    offsets = [0, *(cut for cut in cuts if 0 < cut < len(body)), len(body)]
    for start, end in zip(offsets, offsets[1:], strict=False):
        if start < end:
            yield body[start:end]


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def sse(data: Json | str, event: str = "") -> bytes:
    """One event. Text stays as it is, so that the network can cut a character in two."""
    line = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {event}\n" * bool(event) + f"data: {line}\n\n").encode()


def openai_body(reply: Reply) -> bytes:
    """The whole body of a reply in the OpenAI-compatible format."""

    chunk: Json = {"id": "r1", "object": "chat.completion.chunk", "created": 0, "model": "loopback"}

    def choice(finish: str | None = None, **delta: object) -> Json:
        return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def call(index: int, function: Json, **more: object) -> Json:
        return choice(tool_calls=[{"index": index, **more, "function": function}])

    events = [choice(role="assistant", content="")]
    events += [choice(content=piece) for piece in _pieces(reply.text, reply.piece)]
    for index, tool in enumerate(reply.calls):
        function = {"name": tool.name, "arguments": ""}
        events.append(call(index, function, id=tool.id, type="function"))
        events += [call(index, {"arguments": p}) for p in _pieces(tool.arguments, reply.piece)]
    given, taken = reply.usage
    usage = {"prompt_tokens": given, "completion_tokens": taken, "total_tokens": given + taken}
    events += [choice(reply.reason), {**chunk, "choices": [], "usage": usage}]
    return b"".join(map(sse, events)) + sse("[DONE]")


ANTHROPIC_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def anthropic_body(reply: Reply) -> bytes:
    """The whole body of the same reply in the Anthropic Messages format."""
    given, taken = reply.usage
    usage = {"input_tokens": given, "output_tokens": 1}
    blocks: list[tuple[Json, list[Json]]] = []
    if reply.text:
        pieces = _pieces(reply.text, reply.piece)
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for tool in reply.calls:
        pieces = _pieces(tool.arguments, reply.piece)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(({"type": "tool_use", "id": tool.id, "name": tool.name, "input": {}}, deltas))
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "loopback"}
    message |= {"content": [], "stop_reason": None, "usage": usage}
    events: list[Json] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": ANTHROPIC_REASONS[reply.reason], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": taken}})
    events.append({"type": "message_stop"})
    return b"".join(sse(event, event["type"]) for event in events)


# By hand: python -m pi_course_kit.loopback [PORT]


def parrot(asked: Asked) -> Answer:
    """Says the last line again, slowly. A line with `stall` or `fail` in it gets just that."""
    line = str(asked.body["messages"][-1]["content"])
    if "fail" in line:
        return error_answer(asked, 529, "overloaded, as you wished")
    stall = 400 if "stall" in line else None
    return Answer(Reply(text=f"You said: {line}\n" * 3), each=150, pause=0.05, stall_after=stall)


async def serve(port: int = 0) -> None:
    """Answer with `parrot` until the task is cancelled (Ctrl-C)."""
    server = await LoopbackServer(parrot).start(port)
    print(f"OpenAI-compatible:  --base-url {server.openai_url}")
    print(f"Anthropic Messages: --base-url {server.anthropic_url}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]) if sys.argv[1:] else 0))
