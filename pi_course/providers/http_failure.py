"""What went wrong between us and a server, in one sentence each, and whether to try again."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import cast
from urllib.request import getproxies, proxy_bypass

import httpx

from pi_course.providers.api_key import cut
from pi_course.providers.chunks import ProviderError
from pi_course.providers.payload import JsonObject, is_retryable
from pi_course.providers.sse import SseError

BODY_CHARS = 500  # of a server's answer in an error text
BODY_BYTES = 64 * 1024  # read of an answer that is an error


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes, for the error texts."""

    url: str
    connect_seconds: float
    idle_seconds: float

    @property
    def host(self) -> str:
        return httpx.URL(self.url).host

    @property
    def proxy(self) -> str | None:
        """The proxy of the environment for this URL, without its user and password."""
        url = httpx.URL(self.url)
        proxies = getproxies()
        proxy = proxies.get(url.scheme) or proxies.get("all")
        if proxy is None or is_loopback(url.host) or proxy_bypass(url.host):
            return None
        return proxy.rpartition("@")[2].rpartition("://")[2].rstrip("/")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name, and 127.example.com is one
        return host == "localhost"


def told(error: Exception, route: Route) -> ProviderError:
    """The same failure in the words of this course."""
    match error:
        case ProviderError():
            return error
        case httpx.TimeoutException():
            return _too_late(error, route)
        case httpx.ProxyError():
            return ProviderError(f"The proxy {route.proxy or ''} refused to connect: {error}")
        case httpx.ConnectError() if "SSL" in str(error):
            ask = "Is it really https?"
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                ask = "The variable SSL_CERT_FILE may name a file of certificates to trust."
            return ProviderError(f"TLS with {route.host} failed: {error}. {ask}")
        case httpx.ConnectError():
            why = str(error) or "it was closed at once"
            return _retryable(f"There is no connection to {_via(route)}: {why}")
        case httpx.TransportError():
            problem = f"{type(error).__name__}: {error}"
            return _retryable(f"The connection to {route.host} broke off: {problem}")
        case SseError():
            return ProviderError(str(error))
        case ImportError() | ValueError() if route.proxy:
            return ProviderError(f"The proxy {route.proxy} can't be used: {error}")
        case _:
            return ProviderError(f"{type(error).__name__}: {error}")


def _too_late(error: httpx.TimeoutException, route: Route) -> ProviderError:
    match error:
        case httpx.ConnectTimeout():
            seconds = f"{route.connect_seconds:g} s"
            return _retryable(f"There was no connection to {_via(route)} within {seconds}")
        case httpx.WriteTimeout():
            return _retryable(f"{_via(route)} took no byte for {route.idle_seconds:g} s")
        case httpx.PoolTimeout():
            return _retryable("There was no free connection: the client's pool is in use")
        case _:
            return _retryable(f"{_via(route)} sent no byte for {route.idle_seconds:g} s")


def _retryable(problem: str) -> ProviderError:
    return ProviderError(problem, retryable=True)


def _via(route: Route) -> str:
    return f"{route.host} by the proxy {route.proxy}" if route.proxy else route.host


async def status_error(response: httpx.Response, body: AsyncIterator[bytes]) -> ProviderError:
    """An answer that is no reply: its status, and as much of its body as helps."""
    status, url = response.status_code, response.url
    said = _said(await _beginning(body))
    if location := response.headers.get("location"):
        said = f"it redirects to {location}: put that into base_url"
    if status == 407:
        said = "the proxy asks for a login, as in HTTP_PROXY=http://USER:PASSWORD@HOST:PORT"
    return ProviderError(
        f"HTTP {status} from {url}: {said or 'the body is empty'}",
        status=status,
        retryable=is_retryable(status),
        retry_after=_wait(response.headers),
    )


async def _beginning(body: AsyncIterator[bytes]) -> bytes:
    read = b""
    try:
        async for data in body:
            read += data
            if len(read) >= BODY_BYTES:
                break
    except httpx.HTTPError:
        pass  # the status says more than the rest of the body would
    return read


def _said(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    try:
        error = cast("JsonObject", json.loads(text))["error"]
        message = cast("JsonObject", error)["message"] if isinstance(error, dict) else error
        text = message if isinstance(message, str) else text
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return cut(" ".join(text.split()), BODY_CHARS)


def _wait(headers: httpx.Headers) -> float | None:
    """The wait that the server asks for, in seconds: it sends a number, or the date of its end."""
    asked = headers.get("retry-after", "").strip()
    if asked.replace(".", "", 1).isdecimal() and asked.isascii():
        return float(asked)
    until = _moment(asked)
    if until is None:
        return None
    # By the server's clock, which may be another than ours.
    now = _moment(headers.get("date", ""))
    return max(0.0, until - (time.time() if now is None else now))


def _moment(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def no_event(response: httpx.Response, head: bytes) -> ProviderError:
    kind = response.headers.get("content-type", "no content type")
    said = cut(" ".join(head.decode("utf-8", "replace").split()), BODY_CHARS) or "an empty body"
    return ProviderError(
        f"HTTP {response.status_code} from {response.url} held no event, but {said} ({kind})."
        " Is base_url the address of a model's API?"
    )
