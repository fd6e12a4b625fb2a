"""The kit's own server: what it records, refuses, cuts, and that it is gone afterwards."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from pi_course_kit.errors import CourseError
from pi_course_kit.loopback import (
    Answer,
    Call,
    LoopbackServer,
    Reply,
    anthropic_body,
    openai_body,
    parrot,
)
from tests.run import SECRET

KEY = f"sk-{SECRET}"
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def post(url: str, body: Any, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(url, json=body, **options)


def ask(server: LoopbackServer, body: Any = ASK, **options: Any) -> Any:
    return post(server.openai_url + "/chat/completions", body, **options)


def test_server_answers_in_the_format_that_is_asked_for() -> None:
    reply = Reply("hello", (Call("c", "ls", "{}"),))

    async def both() -> tuple[httpx.Response, httpx.Response]:
        async with LoopbackServer([reply, reply]) as server:
            one = await ask(server)
            other = await post(server.anthropic_url + "/v1/messages", {**ASK, "max_tokens": 9})
            return one, other

    one, other = asyncio.run(both())
    assert one.content == openai_body(reply)
    assert other.content == anthropic_body(reply)
    assert one.headers["content-type"].startswith("text/event-stream")


def test_server_records_the_request_and_hides_the_key() -> None:
    async def record() -> LoopbackServer:
        async with LoopbackServer([Reply("a")], api_key=KEY) as server:
            await ask(server, headers={"Authorization": f"Bearer {KEY}"})
        return server

    (asked,) = asyncio.run(record()).requests
    assert (asked.method, asked.path, asked.body) == ("POST", "/v1/chat/completions", ASK)
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(asked)


CALL = {"id": "call-7", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call-7", "content": ""}
USER = {"role": "user", "content": "hi"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "call-7"}]}
USED = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call-7"}]}


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([CALLED, RESULT], 200),
        ([CALLED, RESULT, USER], 200),
        ([CALLED], 400),
        ([CALLED, USER, RESULT], 400),
        ([CALLED, RESULT, RESULT], 400),
        ([USER, RESULT], 400),
    ],
    ids=["paired", "goes-on", "open", "late", "twice", "orphan"],
)
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_server_refuses_a_call_without_its_result(
    format: str, messages: list[Any], status: int
) -> None:
    spelled = {"openai": (CALLED, RESULT), "anthropic": (USE, USED)}[format]
    other = {id(CALLED): spelled[0], id(RESULT): spelled[1]}
    body = {"messages": [other.get(id(message), message) for message in messages], "max_tokens": 9}

    async def refused() -> httpx.Response:
        async with LoopbackServer([Reply("a")]) as server:
            if format == "openai":
                return await ask(server, body)
            return await post(server.anthropic_url + "/v1/messages", body)

    response = asyncio.run(refused())
    assert response.status_code == status
    assert ("call-7" in response.text) is (status == 400)


def test_server_refuses_what_the_providers_refuse() -> None:
    async def statuses() -> list[tuple[int, str]]:
        async with LoopbackServer([], api_key=KEY) as server:
            key = {"x-api-key": KEY}
            responses = [
                await post(server.url + "/nowhere", {}),
                await ask(server),
                await ask(server, headers={"Authorization": "Bearer sk-2"}),
                await post(server.url + "/v1/messages", ASK, headers=key),
                await ask(server, {"messages": [7]}, headers=key),
                await ask(server, headers=key),
            ]
        return [
            (response.status_code, response.json()["error"]["message"]) for response in responses
        ]

    told = asyncio.run(statuses())
    assert [status for status, _ in told] == [404, 401, 401, 400, 400, 500]
    assert told[3][1] == "max_tokens: field required"
    assert "the script ends after 0" in told[5][1]


def test_server_cuts_drops_and_stalls_as_it_is_told() -> None:
    async def cut() -> tuple[list[bytes], bytes, bytes, float]:
        answers = [
            Answer(b"abcdef", cuts=(4, 1, 1, 99)),
            Answer(b"abcdef", drop_after=3),
            Answer(b"abcdef", stall_after=2),
            Answer(silent=True),
        ]
        async with LoopbackServer(answers) as server:
            url = server.openai_url + "/chat/completions"
            got: list[bytes] = []
            async with httpx.AsyncClient(trust_env=False, timeout=0.2) as client:
                async with client.stream("POST", url, json=ASK) as response:
                    cuts = [piece async for piece in response.aiter_raw()]
                for error in (httpx.RemoteProtocolError, httpx.ReadTimeout):
                    body = b""
                    with pytest.raises(error):
                        async with client.stream("POST", url, json=ASK) as response:
                            async for piece in response.aiter_raw():
                                body += piece
                    got.append(body)
                with pytest.raises(httpx.ReadTimeout):
                    await client.post(url, json=ASK)
            for asked in server.requests[2:]:
                await asyncio.wait_for(asked.gone.wait(), 2)
            return cuts, got[0], got[1], server.requests[2].gone_at or 0

    cuts, dropped, stalled, gone_at = asyncio.run(cut())
    assert b"".join(cuts) == b"abcdef"
    assert cuts[0] == b"a"
    assert (dropped, stalled) == (b"abc", b"ab")
    assert gone_at > 0


def test_server_stops_with_connections_open() -> None:
    async def stop() -> set[Any]:
        before = asyncio.all_tasks()
        server = await LoopbackServer(lambda asked: Answer(silent=True)).start()
        waiting = asyncio.create_task(ask(server))
        while not server.requests:
            await asyncio.sleep(0.001)
        await server.stop()
        await server.stop()
        with pytest.raises(httpx.HTTPError):
            await waiting
        await asyncio.sleep(0)
        return asyncio.all_tasks() - before

    assert asyncio.run(stop()) == set()


def test_server_listens_on_this_machine_only_and_says_when_it_does_not_run() -> None:
    server = LoopbackServer([])
    with pytest.raises(CourseError, match="start"):
        _ = server.url

    async def address() -> str:
        async with server:
            return server.url

    assert asyncio.run(address()).startswith("http://127.0.0.1:")


def test_server_survives_what_is_no_request() -> None:
    async def rubbish() -> int:
        async with LoopbackServer([Reply("a")]) as server:
            port = int(server.url.rpartition(":")[2])
            for head in (b"nonsense\r\n\r\n", b"POST / x\r\ncontent-length: 99999999\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head)
                assert await reader.read() == b""
                writer.close()
            return (await ask(server)).status_code

    assert asyncio.run(rubbish()) == 200


def test_parrot_says_it_again_fails_and_stalls_on_request() -> None:
    async def talk() -> list[tuple[int, str]]:
        async with LoopbackServer(parrot) as server:
            texts: list[tuple[int, str]] = []
            for line in ("hello", "please fail"):
                body = {"messages": [{"role": "user", "content": line}]}
                response = await ask(server, body)
                texts.append((response.status_code, response.text))
            return texts

    (status, text), (failed, told) = asyncio.run(talk())
    said = "".join(
        json.loads(line[6:])["choices"][0]["delta"].get("content", "")
        for line in text.split("\n")
        if line.startswith("data: {") and '"choices": [{' in line
    )
    assert (status, said) == (200, "You said: hello\n" * 3)
    assert (failed, "overloaded" in told) == (529, True)
