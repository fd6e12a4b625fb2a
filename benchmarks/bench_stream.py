"""From bytes to the final message: over real HTTP, through the adapter alone, through SSE alone.

The peers (openai, anthropic, pydantic-ai, httpx-sse) are measured if they are installed: they are
the extra named `peers`. The server is a process of its own, so that it shares no event loop with
what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import importlib.util
import json
import math
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx

from benchmarks.measure import Row, compared, limited
from pi_course.messages import (
    AgentContext,
    Done,
    Error,
    ModelEvent,
    TextDelta,
    ToolCallDelta,
    user_message,
)
from pi_course.providers.chunks import FinishChunk, ProviderChunk, TextChunk, ToolChunk
from pi_course.providers.openai_compatible import (
    create_openai_compatible_model,
    create_openai_compatible_transport,
    fixed_transport,
)
from pi_course.providers.sse import SseDecoder
from pi_course_kit.loopback import Reply, anthropic_body, openai_body

ROOT = Path(__file__).resolve().parents[1]
PIECE = "abcd"
SIZES = (1_000, 10_000, 50_000)
CONTEXT = AgentContext([user_message("hi")])


def rows() -> list[Row]:
    return [*over_http(), *adapter_alone(), *partials_kept(), *decoders()]


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


# Over HTTP, one event in each network chunk


def network_body(path: str, deltas: int) -> bytes:
    """A whole HTTP answer. The number of deltas comes from the name of the model."""
    reply = Reply(PIECE * deltas, piece=len(PIECE))
    body = openai_body(reply) if path.endswith("/chat/completions") else anthropic_body(reply)
    head = b"HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    events = body.split(b"\n\n")[:-1]
    chunks = [b"%x\r\n%b\n\n\r\n" % (len(event) + 2, event) for event in events]
    return b"".join([head, b"connection: close\r\n\r\n", *chunks, b"0\r\n\r\n"])


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    asked = json.loads(await reader.readexactly(length))
    path = head.split(b" ")[1].decode()
    key = (path, int(asked["model"]))
    if key not in BODIES:
        BODIES[key] = network_body(*key)
    writer.write(BODIES[key])
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    writer.close()


BODIES: dict[tuple[str, int], bytes] = {}


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextlib.contextmanager
def served() -> Generator[str]:
    command = [sys.executable, "-m", "benchmarks.bench_stream", "serve"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        assert child.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(child.stdout.readline())}"
        finally:
            child.terminate()


async def bytes_only(url: str, deltas: int) -> int:
    total = 0
    async with httpx.AsyncClient(trust_env=False) as client:
        body = {"model": str(deltas)}
        async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
            async for data in response.aiter_raw():
                total += len(data)
    return deltas if total > deltas else 0


async def ours(url: str, deltas: int) -> int:
    transport = create_openai_compatible_transport(base_url=f"{url}/v1")
    model = create_openai_compatible_model(provider="local", model=str(deltas), transport=transport)
    pieces = 0
    async for event in model.stream(CONTEXT):
        if event.type == "text_delta":
            pieces += 1
    return pieces


async def sse_and_json(url: str, deltas: int) -> int:
    library: Any = importlib.import_module("httpx_sse")
    text: list[str] = []
    async with httpx.AsyncClient(trust_env=False) as client:
        body = {"model": str(deltas)}
        path = f"{url}/v1/chat/completions"
        async with library.aconnect_sse(client, "POST", path, json=body) as source:
            async for event in source.aiter_sse():
                if event.data != "[DONE]":
                    for choice in json.loads(event.data)["choices"]:
                        text.append(choice["delta"].get("content") or "")
    return len("".join(text)) // len(PIECE)


async def openai_chunks(url: str, deltas: int) -> int:
    openai: Any = importlib.import_module("openai")
    text: list[str] = []
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        stream = await client.chat.completions.create(
            model=str(deltas), messages=[{"role": "user", "content": "hi"}], stream=True
        )
        async for chunk in stream:
            for choice in chunk.choices:
                text.append(choice.delta.content or "")
    return len("".join(text)) // len(PIECE)


async def openai_helper(url: str, deltas: int) -> int:
    openai: Any = importlib.import_module("openai")
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        async with client.chat.completions.stream(
            model=str(deltas), messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
    return len(final.choices[0].message.content or "") // len(PIECE)


async def anthropic_helper(url: str, deltas: int) -> int:
    anthropic: Any = importlib.import_module("anthropic")
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        async with client.messages.stream(
            model=str(deltas), max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            async for _ in stream:
                pass
            final: Any = await stream.get_final_message()
    return len(final.content[0].text) // len(PIECE)


async def pydantic_ai(url: str, deltas: int) -> int:
    library: Any = importlib.import_module("pydantic_ai.direct")
    messages: Any = importlib.import_module("pydantic_ai.messages")
    models: Any = importlib.import_module("pydantic_ai.models.openai")
    providers: Any = importlib.import_module("pydantic_ai.providers.openai")
    provider = providers.OpenAIProvider(base_url=f"{url}/v1", api_key="k")
    model = models.OpenAIChatModel(str(deltas), provider=provider)
    asked = [messages.ModelRequest.user_text_prompt("hi")]
    async with library.model_request_stream(model, asked) as stream:
        async for _ in stream:
            pass
        return len(stream.get().parts[0].content) // len(PIECE)


Stack = Callable[[str, int], Awaitable[int]]


def timed(stack: Stack, url: str, deltas: int) -> float:
    """Microseconds a delta, with the client's start and end."""

    async def run() -> float:
        started = time.process_time()
        got = await stack(url, deltas)
        taken = time.process_time() - started
        if got != deltas:
            raise RuntimeError(f"{stack.__name__} read {got} of {deltas} deltas")
        return taken / deltas * 1e6

    gc.collect()
    return asyncio.run(run())


def peers() -> dict[str, tuple[Stack, float | None]]:
    """Each stack that is installed, and how large a part of its time ours may take."""
    known: dict[str, tuple[str, Stack, float | None]] = {
        "httpx-sse and json.loads": ("httpx_sse", sse_and_json, None),
        "openai, raw chunks": ("openai", openai_chunks, None),
        "openai, streaming helper": ("openai", openai_helper, 1 / 10),
        "anthropic, streaming helper": ("anthropic", anthropic_helper, 1 / 4),
        "pydantic-ai": ("pydantic_ai", pydantic_ai, 1 / 10),
    }
    return {name: (stack, goal) for name, (module, stack, goal) in known.items() if has(module)}


def over_http() -> Iterator[Row]:
    with served() as url:
        # A slow peer needs half a minute for 50k deltas: once is enough there.
        for deltas, rounds, of_peers in ((10_000, 5, 3), (50_000, 3, 1)):
            mine: list[float] = []
            floor: list[float] = []
            took: dict[str, list[float]] = {name: [] for name in peers()}
            for number in range(rounds + 1):
                mine.append(timed(ours, url, deltas))
                floor.append(timed(bytes_only, url, deltas))
                for name, (stack, _) in peers().items() if 0 < number <= of_peers else ():
                    took[name].append(timed(stack, url, deltas))
            label = f"HTTP to message, {deltas // 1000}k deltas"
            value = statistics.median(mine[1:])  # the first round only warms up
            against = ("httpx, bytes only", statistics.median(floor[1:]))
            yield compared(label, value, "us/delta", against, at_most=1.8)
            for name, (_, goal) in peers().items():
                against = (name, statistics.median(took[name]))
                yield compared(label, value, "us/delta", against, at_most=goal)


# The adapter alone, with a partial for each delta


def chunks_of(kind: str, deltas: int) -> list[ProviderChunk]:
    if kind == "text":
        return [*(TextChunk(PIECE) for _ in range(deltas)), FinishChunk("stop")]
    pieces = (ToolChunk(0, arguments_delta=PIECE) for _ in range(deltas - 2))
    start = ToolChunk(0, "call-1", "write", '{"text":"')
    return [start, *pieces, ToolChunk(0, arguments_delta='"}'), FinishChunk("tool_calls")]


async def events_of(chunks: Iterable[ProviderChunk], *, keep: bool) -> list[ModelEvent]:
    transport = fixed_transport(chunks)
    model = create_openai_compatible_model(provider="local", model="m", transport=transport)
    kept: list[ModelEvent] = []
    async for event in model.stream(CONTEXT):
        if keep:
            kept.append(event)
    return kept


def microseconds(kind: str, deltas: int) -> float:
    """With the collector off: what it costs grows with all that is alive elsewhere."""
    chunks = chunks_of(kind, deltas)
    gc.collect()
    gc.disable()
    try:
        started = time.process_time()
        asyncio.run(events_of(chunks, keep=False))
        return (time.process_time() - started) / deltas * 1e6
    finally:
        gc.enable()


def adapter_alone() -> Iterator[Row]:
    for kind in ("text", "argument"):
        took: dict[int, list[float]] = {deltas: [] for deltas in SIZES}
        for _ in range(5):
            for deltas in SIZES:
                took[deltas].append(microseconds(kind, deltas))
        median = {deltas: statistics.median(times) for deltas, times in took.items()}
        for deltas in SIZES:
            name = f"adapter, {deltas // 1000}k {kind} deltas"
            # A thousand deltas are a few milliseconds: the start of the loop is seen in them.
            at_most = 4 if deltas > 1_000 else None
            yield limited(name, median[deltas], "us/delta", at_most=at_most)
        growth = median[50_000] * 50_000 / (median[1_000] * 1_000)
        exponent = math.log(growth) / math.log(50)
        yield limited(f"adapter, exponent in {kind} deltas", exponent, "", at_most=1.1)


def partials_kept() -> Iterator[Row]:
    deltas = 50_000
    for kind in ("text", "argument"):
        chunks = chunks_of(kind, deltas)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        events = asyncio.run(events_of(chunks, keep=True))
        megabytes = (tracemalloc.get_traced_memory()[0] - before) / 1e6
        tracemalloc.stop()
        yield limited(f"memory, 50k partials of {kind} kept", megabytes, "MB", at_most=30)
        yield limited(f"kept partials of {kind} changed later", changed(events), "", at_most=0)


def changed(events: list[ModelEvent]) -> int:
    """How many partials, read at the end, do not show their own moment."""
    whole, wrong = "", 0
    for event in events:
        if isinstance(event, Done | Error):
            break
        if isinstance(event, TextDelta | ToolCallDelta):
            whole += event.delta
            block = event.partial.content[0]
            shown = block.text if block.type == "text" else block.raw_arguments
            wrong += shown != whole
    return wrong


# SSE alone


def event_bodies() -> dict[str, list[bytes]]:
    """Bodies of about 4 MB, in reads of 64 KiB."""
    small = b"data: " + b"x" * 32 + b"\n\n"
    usual = b"data: " + b"y" * 182 + b"\n\n"
    large = b"data: " + b"z" * 4086 + b"\n\n"
    line = b"data: " + b"w" * 4_000_000 + b"\n\n"
    whole = {
        "40-byte events": small * 100_000,
        "190-byte events": usual * 21_000,
        "4 KiB events": large * 1_000,
        "one 4 MB line": line,
    }
    return {name: cut(body, 65_536) for name, body in whole.items()} | {
        "one 4 MB line in 1 KiB reads": cut(line, 1_024)
    }


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[i : i + size] for i in range(0, len(body), size)]


Decode = Callable[[list[bytes]], int]


def our_decoder(reads: list[bytes]) -> int:
    decoder = SseDecoder()
    return sum(len(decoder.feed(data)) for data in reads)


def httpx_sse(reads: list[bytes]) -> int:
    library: Any = importlib.import_module("httpx_sse")
    response = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=iter(reads)
    )
    return sum(1 for _ in library.EventSource(response).iter_sse())


def openai_decoder(reads: list[bytes]) -> int:
    streaming: Any = importlib.import_module("openai._streaming")
    return sum(1 for _ in streaming.SSEDecoder().iter_bytes(iter(reads)))


def anthropic_decoder(reads: list[bytes]) -> int:
    streaming: Any = importlib.import_module("anthropic._streaming")
    return sum(1 for _ in streaming.SSEDecoder().iter_bytes(iter(reads)))


def decoders() -> Iterator[Row]:
    peers: dict[str, tuple[Decode, float]] = {}
    if has("httpx_sse"):
        peers["httpx-sse"] = (httpx_sse, 1 / 1.5)
    if has("openai"):
        peers["openai's decoder"] = (openai_decoder, 1 / 4)
    if has("anthropic"):
        peers["anthropic's decoder"] = (anthropic_decoder, 1.0)
    for name, reads in event_bodies().items():
        size = sum(map(len, reads)) / 1e6
        took: dict[str, list[float]] = {"ours": [], **{peer: [] for peer in peers}}
        for _ in range(5):
            took["ours"].append(seconds(our_decoder, reads))
            for peer, (decode, _) in peers.items():
                took[peer].append(seconds(decode, reads))
        mine = statistics.median(took["ours"])
        yield limited(f"SSE, {name}", size / mine, "MB/s")
        for peer, (_, goal) in peers.items():
            against = (peer, statistics.median(took[peer]) * 1000)
            # The goals are for events of the usual size; a huge line is mere copying.
            at_most = goal if name == "190-byte events" else None
            yield compared(f"SSE, {name}", mine * 1000, "ms", against, at_most=at_most)


def seconds(decode: Decode, reads: list[bytes]) -> float:
    gc.collect()
    started = time.process_time()
    decode(reads)
    return time.process_time() - started


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
