"""What goes wrong between here and a model's server, over real sockets: a sentence for each."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from pi_course.messages import AgentContext, AssistantMessage, text_of, user_message
from pi_course.providers.anthropic_messages import (
    create_anthropic_model,
    create_anthropic_transport,
)
from pi_course.providers.http_failure import Route
from pi_course.providers.http_transport import trusted_certificates
from pi_course.providers.openai_compatible import (
    create_openai_compatible_model,
    create_openai_compatible_transport,
)
from pi_course_kit.loopback import Answer, LoopbackServer, Reply, openai_body
from tests.run import SECRET

KEY = f"sk-{SECRET}"
UNTRUSTED = Path(__file__).with_name("untrusted_127.0.0.1.pem")
PROXIES = [
    case(f"{scheme}_proxy")
    for scheme in ("http", "https", "all", "no")
    for case in (str, str.upper)
]
MAKERS: dict[str, tuple[Any, Any]] = {
    "openai": (create_openai_compatible_model, create_openai_compatible_transport),
    "anthropic": (create_anthropic_model, create_anthropic_transport),
}


async def ask(base_url: str, provider: str = "openai", **options: Any) -> AssistantMessage:
    make_model, make_transport = MAKERS[provider]
    transport = make_transport(base_url=base_url, api_key=KEY, **options)
    model = make_model(provider="local", model="tiny-1", transport=transport)
    async with asyncio.timeout(30):
        return await model.stream(AgentContext([user_message("hi")])).result()


async def told(base_url: str, provider: str = "openai", **options: Any) -> str:
    """The error that a reply from this address ends in."""
    message = await ask(base_url, provider, **options)
    assert message.stop_reason == "error"
    assert message.error_message is not None
    assert KEY not in message.error_message
    return message.error_message


def served(provider: str, answer: Answer, **options: Any) -> str:
    async def inside() -> str:
        async with LoopbackServer([answer]) as server:
            base_url = server.openai_url if provider == "openai" else server.anthropic_url
            return await told(base_url, provider, **options)

    return asyncio.run(inside())


def error(message: str) -> str:
    return json.dumps({"error": {"type": "x", "message": message}})


SENTENCES: dict[str, tuple[Answer, str]] = {
    "too-many-requests": (
        Answer(error("slow down"), 429, {"retry-after": "7"}),
        "HTTP 429 from {url}: slow down (retryable after 7 s)",
    ),
    "until-a-date": (
        Answer(
            error("slow down"),
            429,
            {
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
            },
        ),
        "HTTP 429 from {url}: slow down (retryable after 30 s)",
    ),
    "until-a-date-that-is-over": (
        Answer(error("busy"), 429, {"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}),
        "HTTP 429 from {url}: busy (retryable after 0 s)",
    ),
    "overloaded": (
        Answer(error("overloaded"), 529, {"retry-after": "3"}),
        "HTTP 529 from {url}: overloaded (retryable after 3 s)",
    ),
    "page": (
        Answer("<html>\n<h1>Welcome</h1>", 200, {"content-type": "text/html"}),
        "HTTP 200 from {url} held no event, but <html> <h1>Welcome</h1> (text/html)."
        " Is base_url the address of a model's API?",
    ),
    "page-that-is-not-there": (
        Answer("<html>not here", 404, {"content-type": "text/html"}),
        "HTTP 404 from {url}: <html>not here",
    ),
    "redirect": (
        Answer("", 308, {"location": "http://elsewhere.test/v1"}),
        "HTTP 308 from {url}: it redirects to http://elsewhere.test/v1: put that into base_url",
    ),
    "silence": (Answer(silent=True), "127.0.0.1 sent no byte for 0.2 s (retryable)"),
    "key-echoed": (
        Answer(error(f"no such key: {KEY}"), 401),
        "HTTP 401 from {url}: no such key: [redacted]",
    ),
}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


@pytest.mark.parametrize("provider", MAKERS)
@pytest.mark.parametrize("name", SENTENCES)
def test_each_failure_has_its_sentence(name: str, provider: str) -> None:
    answer, sentence = SENTENCES[name]
    got = served(provider, answer, idle_seconds=0.2 if name == "silence" else 30)
    host, _, _ = got.partition("from ")[2].partition(PATHS[provider])
    assert got == sentence.format(url=host + PATHS[provider])


def test_nobody_listens() -> None:
    async def inside() -> str:
        async with LoopbackServer([]) as server:
            base_url = server.openai_url
        return await told(base_url)

    assert asyncio.run(inside()).startswith("There is no connection to 127.0.0.1: ")


# TLS


@contextlib.asynccontextmanager
async def served_with_tls() -> AsyncIterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(UNTRUSTED)
    body = openai_body(Reply("hi"))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 -\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.fixture
def fresh_certificates() -> Iterator[None]:
    trusted_certificates.cache_clear()
    yield
    trusted_certificates.cache_clear()


def test_certificate_that_nobody_trusts(fresh_certificates: None) -> None:
    async def inside() -> str:
        async with served_with_tls() as base_url:
            return await told(base_url)

    got = asyncio.run(inside())
    assert got.startswith("TLS with 127.0.0.1 failed: [SSL: CERTIFICATE_VERIFY_FAILED]")
    assert got.endswith("The variable SSL_CERT_FILE may name a file of certificates to trust.")


def test_certificate_that_the_environment_trusts(
    fresh_certificates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def inside() -> AssistantMessage:
        async with served_with_tls() as base_url:
            return await ask(base_url)

    monkeypatch.setenv("SSL_CERT_FILE", str(UNTRUSTED))
    assert text_of(asyncio.run(inside())) == "hi"


# Proxies


@dataclass
class Proxy:
    """A proxy that answers every request with the same bytes, or with none at all."""

    port: int = 0
    asked: list[bytes] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def running(self, answer: bytes | None) -> AsyncIterator[Proxy]:
        tasks: list[asyncio.Task[Any]] = []

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.append(asyncio.current_task())  # type: ignore[arg-type]
            try:
                self.asked.append(await reader.readuntil(b"\r\n\r\n"))
                if answer is None:
                    await reader.read()
                else:
                    writer.write(answer)
            finally:
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await asyncio.wait(tasks) if tasks else None
            await asyncio.sleep(0)


LOGIN = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, list[bytes]]]:
    """Ask model.test, which does not exist, through a proxy that the environment names."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)

    def ask(
        answer: bytes | None, *, scheme: str = "https", proxy: str = "http://me:hunter2@127.0.0.1"
    ) -> tuple[str, list[bytes]]:
        async def inside() -> tuple[str, list[bytes]]:
            async with Proxy().running(answer) as running:
                monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"{proxy}:{running.port}")
                got = await told(
                    f"{scheme}://model.test/v1", idle_seconds=0.5 if answer is None else 5
                )
                assert "hunter2" not in got
                return got.replace(f":{running.port}", ":PORT"), running.asked

        return asyncio.run(inside())

    return ask


def test_proxy_of_the_environment_is_asked_and_never_sees_the_key(through: Any) -> None:
    got, asked = through(LOGIN)
    assert got == "The proxy 127.0.0.1:PORT refused to connect: 407 Proxy Authentication Required"
    assert [head.split(b"\r\n")[0] for head in asked] == [b"CONNECT model.test:443 HTTP/1.1"]
    assert KEY.encode() not in b"".join(asked)


def test_proxy_without_tls_asks_for_a_login(through: Any) -> None:
    got, asked = through(LOGIN, scheme="http")
    assert got == (
        "HTTP 407 from http://model.test/v1/chat/completions: the proxy asks for a login,"
        " as in HTTP_PROXY=http://USER:PASSWORD@HOST:PORT"
    )
    assert len(asked) == 1


def test_proxy_that_does_not_answer(through: Any) -> None:
    got, _ = through(None)
    assert got == "model.test by the proxy 127.0.0.1:PORT sent no byte for 0.5 s (retryable)"


def test_proxy_that_hangs_up(through: Any) -> None:
    got, _ = through(b"HTTP/1.1 200 -\r\n\r\n")
    assert got.startswith("There is no connection to model.test by the proxy 127.0.0.1:PORT: ")
    assert not got.endswith(": (retryable)")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1", "nonsense://127.0.0.1"])
def test_proxy_of_a_kind_that_cannot_be_used(through: Any, proxy: str) -> None:
    got, asked = through(b"", proxy=proxy)
    assert got.startswith("The proxy 127.0.0.1:PORT can't be used: ")
    assert asked == []


@pytest.mark.parametrize(
    ("no_proxy", "named"),
    [("", "127.0.0.1:9"), ("other.test", "127.0.0.1:9"), ("model.test", None), ("*", None)],
)
def test_proxy_is_named_only_where_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, no_proxy: str, named: str | None
) -> None:
    """As httpx decides it, too: a text that blames a proxy for nothing sends people astray."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hunter2@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    url = "https://model.test/v1"
    assert Route(url, 1, 1).proxy == named
    with httpx.Client() as client:
        asked = client._transport_for_url(httpx.URL(url)) is not client._transport
    assert asked is (named is not None)


def test_proxy_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, bodies: dict[str, Any]
) -> None:
    async def inside() -> list[bytes]:
        async with Proxy().running(LOGIN) as proxy, LoopbackServer([]) as server:
            for name in ("HTTP_PROXY", "ALL_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            assert "the script ends after 0" in await told(server.openai_url)
            return proxy.asked

    assert asyncio.run(inside()) == []
