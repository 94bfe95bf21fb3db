"""An HTTP client with limits on time and size.

Explorers, price sources and webhooks use it.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from btcpay import __version__
from btcpay.http.answer import read_body, refuse_page
from btcpay.http.deadline import Adapter, run_within
from btcpay.values.errors import FetchError, Unreachable
from btcpay.values.hosts import is_near

OnHeaders = Callable[[Mapping[str, str]], None]
T = TypeVar("T")

# A connection attempt to all addresses of a server may take CONNECT_TIMEOUT_S seconds, and at most
# CONNECT_PART of the request's time-out. Through a proxy it may take the full time-out, since new
# Tor circuits are slow.
CONNECT_TIMEOUT_S = 3
CONNECT_PART = 2 / 3
# Requests uncompressed bodies, since a small compressed body may expand to any size.
HEADERS = {
    "User-Agent": f"blocktill/{__version__}",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
}


class PostAnswer(NamedTuple):
    """The status of a response, and the first bytes of its body."""

    status: int
    start: bytes


@dataclass(frozen=True)
class Response(Generic[T]):
    """The rules for a response body: how to parse it, and how many bytes to read.

    `max_bytes`: the maximum size of the body.
    `max_kept`: if not None, long JSON values (scripts, witnesses and their texts) are
    truncated while the body arrives, and this is the maximum size of the truncated
    body.
    """

    parse: Callable[[bytes], T]
    max_bytes: int
    max_kept: int | None = None


class Session:
    """An HTTP client. Keeps up to `connections` connections to each server.

    Hosts outside this machine and its network are called through `proxy` (a URL),
    unless it is "". The client takes only the CA bundle from the environment, no
    proxies and no passwords (.netrc). It follows no redirects, and stores no cookies.
    Thread-safe.
    """

    def __init__(self, connections: int = 1, proxy: str = "") -> None:
        self.proxy = proxy
        self._adapter = Adapter(pool_connections=8, pool_maxsize=connections)
        self._verify = os.environ.get("REQUESTS_CA_BUNDLE") or True

    def get(
        self,
        url: str,
        timeout_s: float,
        response: Response[T],
        on_headers: OnHeaders = lambda _headers: None,
        # Quoted, since `threading.Lock` is a type only from Python 3.13 on.
        long_answers: "threading.Lock | None" = None,
        on_piece: Callable[[int], None] = lambda _size: None,
    ) -> T:
        """Sends a GET request, and returns the parsed response body.

        The response must have status 200 and be complete within `timeout_s`.
        `on_headers` gets the headers of any response, `on_piece` the size of each piece
        of its body. Requests that share the lock `long_answers` receive only one body
        above 64 kB at a time, which limits memory.

        Raises BadStatus, Unreachable, Compressed or WebPage, or another FetchError if
        the body is too large. Also raises the errors of `response.parse`. Messages do
        not contain the URL, since it may contain secrets.
        """
        end_s = time.monotonic() + timeout_s

        def fetch() -> T:
            turn: AbstractContextManager[None] = nullcontext()
            if long_answers:
                turn = _hold(long_answers, end_s)
            # For a long body, `read_body` waits for `turn`, which is then held until the
            # body is parsed.
            with ExitStack() as held:
                wait_for_turn = partial(held.enter_context, turn)
                with self._send("GET", url, timeout_s) as answer:
                    on_headers(answer.headers)
                    body = read_body(
                        answer,
                        max_bytes=response.max_bytes,
                        max_kept=response.max_kept,
                        on_piece=on_piece,
                        before_long=wait_for_turn,
                    )
                refuse_page(answer, body)
                return response.parse(bytes(body))

        return run_within(timeout_s, fetch)

    def post(
        self,
        url: str,
        timeout_s: float,
        body: bytes,
        headers: Mapping[str, str],
        kept_bytes: int,
    ) -> PostAnswer:
        """Sends a POST request. Returns the status and the first `kept_bytes` of the body.

        The body is b"" if none of it arrives within `timeout_s`. Raises Unreachable if
        the response headers do not arrive in time. Its message does not contain the
        URL.
        """
        # Has the status even if the body does not arrive in time, and `fetch` fails.
        status: list[int] = []

        def fetch() -> bytes:
            with self._send("POST", url, timeout_s, body, headers) as answer:
                status.append(answer.status_code)
                start: bytes = answer.raw.read1(kept_bytes, decode_content=False)
                return start[:kept_bytes]

        try:
            start = run_within(timeout_s, fetch)
        except Unreachable:
            if not status:
                raise
            start = b""
        return PostAnswer(status[0], start)

    @contextmanager
    def _send(
        self,
        method: str,
        url: str,
        timeout_s: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[requests.Response]:
        """Sends a request, and yields the response before its body is read.

        Raises Unreachable if the request fails, or if reading the body fails.
        """
        proxies = self._proxies_for(url)
        # `run_within` raises earlier. This time-out ends its thread, which continues.
        late_s = timeout_s + 1
        connect_s: float = min(CONNECT_TIMEOUT_S, timeout_s * CONNECT_PART)
        if proxies:
            connect_s = late_s
        all_headers = {**HEADERS, **(headers or {})}
        try:
            request = requests.Request(method, url, all_headers, data=body)
            with self._adapter.send(
                request.prepare(),
                stream=True,
                timeout=(connect_s, late_s),
                verify=self._verify,
                proxies=proxies,
            ) as answer:
                yield answer
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            way = ""
            if proxies:
                way = " through the proxy"
            raise Unreachable(f"could not be asked{way}: {_cause(error)}") from error

    def _proxies_for(self, url: str) -> dict[str, str]:
        """Returns the `proxies` argument of `requests`; empty if none is used."""
        if is_near(urlsplit(url).hostname) or not self.proxy:
            return {}
        return {"all": self.proxy}


def _cause(error: BaseException) -> str:
    """Returns the system's message for the original error, e.g. "Connection refused".

    Returns the name of its class if there is none. Other messages could contain the
    URL.
    """
    deepest = error
    while cause := deepest.__cause__ or deepest.__context__:
        deepest = cause
    return getattr(deepest, "strerror", None) or type(error).__name__


@contextmanager
def _hold(lock: "threading.Lock", end_s: float) -> Iterator[None]:
    """Holds the lock. Raises Unreachable if it is not free by `end_s` (monotonic)."""
    left_s = end_s - time.monotonic()
    if not lock.acquire(timeout=max(0.0, left_s)):
        raise Unreachable("answered at length while others did the same")
    try:
        yield
    finally:
        lock.release()


def parse_json(body: bytes) -> Any:
    """Parses JSON. Numbers with a fraction or an exponent become Decimal.

    Raises FetchError if the body is not JSON.
    """
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
