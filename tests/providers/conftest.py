"""Recorded bodies in both formats, each with the message that it must give.

They hold what real servers send: CJK and emoji (written as escapes), line ends of all kinds,
comments, a BOM, pings, usage in odd places, indexes that start elsewhere or are missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from pi_course_kit.loopback import Call, Reply, anthropic_body, openai_body, sse

SMILE = "\U0001f600"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@dataclass(frozen=True)
class Body:
    """`blocks`: a text, or (name, arguments) of a call, in the order of the message."""

    format: str
    bytes: bytes = field(repr=False)
    blocks: tuple[str | tuple[str, object], ...]
    stop_reason: str
    usage: tuple[int, int]
    ids: tuple[str, ...] = ()


def choice(finish: str | None = None, **delta: object) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(index: int | None, arguments: str | None, **more: object) -> dict[str, Any]:
    function = {"name": more.pop("name", None), "arguments": arguments}
    return choice(tool_calls=[{"index": index, **more, "function": function}])


def escaped(*payloads: object) -> bytes:
    """Payloads as Python's json.dumps writes them: ASCII only, characters as surrogate pairs."""
    return b"".join(sse(json.dumps(payload)) for payload in payloads) + sse("[DONE]")


def interleaved() -> bytes:
    return b"".join(
        [
            sse(piece(4, '{"path":', id="a", name="read")),
            sse(choice(content="先读")),
            sse(piece(2, '{"query":', id="b", name="grep")),
            sse(piece(4, '"README.md"}')),
            sse(choice(content=f"，再查{SMILE}")),
            sse(piece(2, f'"pi {SMILE}"}}')),
            sse(choice("tool_calls")),
            sse("[DONE]"),
        ]
    )


def odd_lines() -> bytes:
    """A BOM, CRLF, comments, ids, retry, a name, data in two lines, U+2028 inside a text."""
    split = '{"choices": [{"delta":\ndata: {"content": "b\u2028c\u0085d"}}]}'
    return (
        (
            "\ufeff: hello\n\nretry: 10\nid: 7\n\nevent: message\n"
            + sse(choice(content=f"{FAMILY} a")).decode()
            + f"data:{split}\n\n"
            + ": ping\n\n"
            + sse(choice("stop")).decode()
            + sse({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6}}).decode()
        )
        .replace("\n", "\r\n")
        .encode()
    )


def no_index() -> bytes:
    """Old line ends, null everywhere, calls without an index, stop in place of tool_calls."""
    body = [
        sse({"choices": None, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
        sse(piece(None, '{"名":', id="x", name="读")),
        sse(piece(None, '"é"}', id="x")),
        sse(piece(None, None, id="y", name="ls")),
        sse({"choices": [{"delta": None, "finish_reason": "stop"}], "usage": None}),
    ]
    return b"".join(body).replace(b"\n", b"\r")


def halves() -> bytes:
    """Characters cut in two by the provider's JSON, and halves that stay alone."""
    high, low = "\ud83d", "\ude00"
    return escaped(
        choice(role="assistant", content="a" + high),
        choice(content=low + "b" + low),
        piece(1, '{"t":"' + high, id="call-9", name="say"),
        piece(1, low + '"}', id="call-9", name="say"),
        choice("tool_calls"),
    )


def cached() -> bytes:
    """Text, a call without arguments, more text, and usage with a cache, in CRLF."""
    usage = {"input_tokens": 1, "cache_read_input_tokens": 8, "output_tokens": 1}
    events = [
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "好"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use"}},
        {"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": SMILE}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    call = events[5]["content_block"]
    assert isinstance(call, dict)
    call |= {"id": "toolu_1", "name": "ls", "input": {}}
    return b"".join(sse(event, str(event["type"])) for event in events).replace(b"\n", b"\r\n")


READ = Call("call-1", "read", '{"path":"README.md"}')
TEXT = f"正在读取 README.md {SMILE} {FAMILY} café\n"
WHOLE = Reply(TEXT, (READ, Call("call-2", "写", f'{{"t":"{SMILE}"}}')), piece=7)
WHOLE_BLOCKS = (TEXT, ("read", {"path": "README.md"}), ("写", {"t": SMILE}))

BODIES = {
    "main-line": Body(
        "openai",
        openai_body(Reply(calls=(READ,), piece=9)),
        (("read", {"path": "README.md"}),),
        "toolUse",
        (9, 2),
        ("call-1",),
    ),
    "text-and-calls": Body(
        "openai", openai_body(WHOLE), WHOLE_BLOCKS, "toolUse", (9, 2), ("call-1", "call-2")
    ),
    "interleaved": Body(
        "openai",
        interleaved(),
        (
            ("read", {"path": "README.md"}),
            f"先读，再查{SMILE}",
            ("grep", {"query": f"pi {SMILE}"}),
        ),
        "toolUse",
        (0, 0),
        ("a", "b"),
    ),
    "odd-lines": Body("openai", odd_lines(), (f"{FAMILY} ab\u2028c\u0085d",), "stop", (5, 6)),
    "no-index": Body(
        "openai", no_index(), (("读", {"名": "é"}), ("ls", {})), "toolUse", (3, 4), ("x", "y")
    ),
    "halves": Body(
        "openai",
        halves(),
        (f"a{SMILE}b\ufffd", ("say", {"t": SMILE})),
        "toolUse",
        (0, 0),
        ("call-9",),
    ),
    "length": Body(
        "openai", openai_body(Reply(TEXT, finish="length", piece=5)), (TEXT,), "length", (9, 2)
    ),
    "anthropic-main-line": Body(
        "anthropic",
        anthropic_body(Reply(calls=(READ,), piece=9)),
        (("read", {"path": "README.md"}),),
        "toolUse",
        (9, 2),
        ("call-1",),
    ),
    "anthropic-text-and-calls": Body(
        "anthropic", anthropic_body(WHOLE), WHOLE_BLOCKS, "toolUse", (9, 2), ("call-1", "call-2")
    ),
    "anthropic-cached": Body(
        "anthropic", cached(), (f"好{SMILE}", ("ls", {})), "toolUse", (9, 7), ("toolu_1",)
    ),
}


@pytest.fixture(scope="session")
def bodies() -> dict[str, Body]:
    return BODIES


@pytest.fixture(scope="session", params=BODIES)
def body(request: pytest.FixtureRequest) -> Body:
    return BODIES[request.param]
