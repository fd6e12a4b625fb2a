"""HTTP to chunks: owns the request, the key, the time-outs, and that the connection is closed."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import cache
from typing import Protocol

import httpx

from pi_course.abort import Aborted
from pi_course.messages import Signal
from pi_course.providers.adapter import check
from pi_course.providers.api_key import ApiKey
from pi_course.providers.chunks import ProviderChunk, ProviderError, ProviderRequest
from pi_course.providers.http_failure import Route, is_loopback, no_event, status_error, told
from pi_course.providers.read_ahead import ReadAhead
from pi_course.providers.sse import ServerSentEvent, SseDecoder

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 300.0  # without a byte; a reply as a whole may take as long as it likes
DRAIN_SECONDS = 0.05  # for the end of a body after its last event


class PayloadReader(Protocol):
    """Reads the events of one body. Nothing is read once it is `done`."""

    done: bool

    def read(self, event: ServerSentEvent) -> list[ProviderChunk]: ...

    def close(self) -> list[ProviderChunk]: ...


class HttpTransport:
    """A ProviderTransport. What is particular to a provider comes in with the constructor."""

    def __init__(
        self,
        *,
        url: str,
        api_key: ApiKey,
        key_header: str,
        key_prefix: str = "",
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, object],
        reader: Callable[[], PayloadReader],
        client: httpx.AsyncClient | None,
        connect_seconds: float,
        idle_seconds: float,
    ) -> None:
        self._route = Route(url, connect_seconds, idle_seconds)
        self._api_key = api_key
        self._key_header = key_header
        self._key_prefix = key_prefix
        self._headers = {"Accept": "text/event-stream", **(headers or {})}
        self._body = body
        self._reader = reader
        self._client = client

    async def stream(
        self, request: ProviderRequest, *, signal: Signal | None = None
    ) -> AsyncGenerator[ProviderChunk]:
        raise NotImplementedError("Lab 5.4: HttpTransport.stream()")

    async def _chunks(
        self, request: ProviderRequest, signal: Signal | None
    ) -> AsyncGenerator[ProviderChunk]:
        raise NotImplementedError("Lab 5.4: HttpTransport._chunks()")

    def _open(self) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        raise NotImplementedError("Lab 5.4: HttpTransport._open()")

    def _post(
        self, client: httpx.AsyncClient, request: ProviderRequest
    ) -> AbstractAsyncContextManager[httpx.Response]:
        raise NotImplementedError("Lab 5.4: HttpTransport._post()")

    def _key(self) -> dict[str, str]:
        raise NotImplementedError("Lab 5.4: HttpTransport._key()")

    def _without_key(self, error: ProviderError) -> ProviderError:
        raise NotImplementedError("Lab 5.4: HttpTransport._without_key()")


async def _read(
    response: httpx.Response,
    body: AsyncIterator[bytes],
    reader: PayloadReader,
    signal: Signal | None,
) -> AsyncGenerator[ProviderChunk]:
    raise NotImplementedError("Lab 5.4: _read()")


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Read once: it takes 20 ms, in which no other task can run."""
    return httpx.create_ssl_context()


def checked_base_url(base_url: str) -> str:
    """Without its trailing slashes. Raises ProviderError for what can't be the base of a URL."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ProviderError(f"base_url is not a URL: {error}") from None
    problem = (
        ("must not hold a user or password: give the key as api_key" if url.userinfo else "")
        or ("must begin with http:// or https://" if url.scheme not in ("http", "https") else "")
        or ("has no host" if not url.host else "")
        or ("has a query: the path is appended to it" if "?" in base_url else "")
        or ("has a fragment: the path is appended to it" if "#" in base_url else "")
    )
    if problem:
        raise ProviderError(f"base_url {problem}, as in http://127.0.0.1:11434/v1")
    return base_url.rstrip("/")
