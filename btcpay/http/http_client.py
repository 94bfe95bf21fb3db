"""HTTP calls with limits on time and size, for explorers, price sources and webhooks."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from btcpay import __version__
from btcpay.http.answer import append_piece, read_pieces, refuse_page
from btcpay.http.deadline import Adapter, run_within
from btcpay.values.errors import FetchError, Unreachable
from btcpay.values.hosts import is_near

OnHeaders = Callable[[Mapping[str, str]], None]
T = TypeVar("T")

# Connecting may take so long, for all addresses of a server together, and this part of the call's
# time. Through a proxy it may take all of the time, since Tor's new circuits are slow.
CONNECT_TIMEOUT_S = 3
CONNECT_PART = 2 / 3
# Answers up to this size are read side by side; longer ones one at a time.
SMALL_BYTES = 65536
# The size of a compressed answer says nothing about what it becomes, so none is asked for.
HEADERS = {
    "User-Agent": f"btcpay/{__version__}",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True)
class Response(Generic[T]):
    """How an answer is parsed, and how many bytes of it are read at most.

    With `max_kept`, values that are too long to be of use (scripts, witnesses and their texts) are
    cut while they arrive, and at most so many bytes may be left.
    """

    parse: Callable[[bytes], T]
    max_bytes: int
    max_kept: int | None = None


class Session:
    """Calls servers, with up to `connections` connections kept open to each. Thread-safe.

    Hosts beyond this machine and its network are called through `proxy` (a URL), if there is one.
    The environment gives the certificates alone: no proxies, no passwords (.netrc). No redirect is
    followed, since a configured URL must answer itself. No cookie is kept.
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
        # `threading.Lock` is a type from Python 3.13 on.
        long_answers: "threading.Lock | None" = None,
        on_piece: Callable[[int], None] = lambda _size: None,
    ) -> T:
        """The parsed body of an answer with status 200 that is complete within `timeout_s`.

        `on_headers` gets the headers of any answer, `on_piece` the size of each piece of its body.
        Calls that share the lock `long_answers` hold one long answer at a time, from its first
        bytes until it is parsed. So memory does not grow with the number of calls. Raises
        BadStatus, Unreachable, Compressed, WebPage, FetchError if the body is too large, and the
        errors of `response.parse`. No message has a part of the URL, which may hold secrets.
        """
        end_s = time.monotonic() + timeout_s

        def fetch() -> T:
            body = bytearray()
            is_locked = False
            with ExitStack() as locks:
                with self._send("GET", url, timeout_s) as answer:
                    on_headers(answer.headers)
                    for piece in read_pieces(answer, response.max_bytes, on_piece):
                        is_long = len(body) + len(piece) > SMALL_BYTES
                        if long_answers and is_long and not is_locked:
                            locks.enter_context(_hold(long_answers, end_s))
                            is_locked = True
                        append_piece(body, piece, response.max_kept)
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
    ) -> tuple[int, bytes]:
        """The status of the answer, and its first bytes, at most `kept_bytes`; no more is read.

        The bytes are empty if they do not come within `timeout_s`. Raises Unreachable if the head
        does not; the message has no part of the URL.
        """
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
        return status[0], start

    @contextmanager
    def _send(
        self,
        method: str,
        url: str,
        timeout_s: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[requests.Response]:
        """The answer, its body not read yet. Raises Unreachable for every failure."""
        proxy = self.proxy
        if is_near(urlsplit(url).hostname):
            proxy = ""
        # `run_within` ends the call sooner; this time-out ends the thread that it leaves behind.
        late_s = timeout_s + 1
        connect_s: float = min(CONNECT_TIMEOUT_S, timeout_s * CONNECT_PART)
        proxies: dict[str, str] = {}
        if proxy:
            connect_s = late_s
            proxies["all"] = proxy
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
            if proxy:
                way = " through the proxy"
            raise Unreachable(f"could not be asked{way}: {_cause(error)}") from error


def _cause(error: BaseException) -> str:
    """The system's words, as "Connection refused"; else a class, as a text may hold the URL."""
    deepest = error
    while cause := deepest.__cause__ or deepest.__context__:
        deepest = cause
    return getattr(deepest, "strerror", None) or type(error).__name__


@contextmanager
def _hold(lock: "threading.Lock", end_s: float) -> Iterator[None]:
    """Holds the lock. Raises Unreachable if it is not free by `end_s`."""
    left_s = end_s - time.monotonic()
    if not lock.acquire(timeout=max(0.0, left_s)):
        raise Unreachable("answered at length while others did the same")
    try:
        yield
    finally:
        lock.release()


def parse_json(body: bytes) -> Any:
    """The JSON value, with exact numbers. Raises FetchError if the body is no JSON."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
