"""HTTP calls with limits on time and size, for explorers, price sources and webhooks."""

import json
import os
import re
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
from btcpay.http.deadline import Adapter, run_within
from btcpay.values.errors import BadStatus, Compressed, FetchError, Unreachable, WebPage
from btcpay.values.hosts import is_near

OnHeaders = Callable[[Mapping[str, str]], None]
T = TypeVar("T")

# To all addresses of a server, and the part of the whole time that it may take at most. A proxy may
# use all of the time: Tor's new circuits are slow.
CONNECT_TIMEOUT_S = 3
CONNECT_PART = 2 / 3
# Answers up to this size are read at once; longer ones one at a time.
SMALL_BYTES = 65536
# A compressed answer has no honest size.
HEADERS = {
    "User-Agent": f"btcpay/{__version__}",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
}
_PIECE_BYTES = 65536
_LONGEST_RUN = 128  # characters of one JSON value; all that we use are shorter
_PLAIN = rb'[^"\\,:\[\]{}]'
# It matches only at the start of a run, so that no byte is read twice.
_LONG_RUN = re.compile(rb"(?<!%b)(%b{%d})%b+" % (_PLAIN, _PLAIN, _LONGEST_RUN, _PLAIN))


@dataclass(frozen=True)
class Response(Generic[T]):
    """The parser of an answer, and the most bytes that are read of it.

    With `max_kept`, values that are too long to be of use (scripts, witnesses and their texts) are
    cut as they come, and at most that many bytes may be left.
    """

    parse: Callable[[bytes], T]
    max_bytes: int
    max_kept: int | None = None


class Session:
    """Asks hosts, with up to `connections` connections kept open to each. Thread safe.

    Hosts beyond this machine and its network are asked through the `proxy` (a URL), if there is
    one. Of the environment only the certificates are read: no proxies, no passwords (.netrc). No
    redirect is followed, since a configured URL answers itself; no cookie is kept.
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
        turn: "threading.Lock | None" = None,  # a type from Python 3.13 on
        count: Callable[[int], None] = lambda _size: None,
    ) -> T:
        """The parsed body of a 200 answer that is complete within `timeout_s`.

        `on_headers` gets the headers of any answer, `count` the size of each piece of its body.
        Long answers with one `turn` are held one at a time, from their first bytes until they are
        parsed, so that memory does not grow with the number of calls. Raises BadStatus,
        Unreachable, Compressed, WebPage, FetchError for an oversized body, and the errors of
        `response.parse`. No message has a part of the URL, which may hold secrets.
        """
        until_s = time.monotonic() + timeout_s

        def read() -> T:
            nonlocal turn
            body = bytearray()
            with ExitStack() as held:
                with self._send("GET", url, timeout_s) as answer:
                    on_headers(answer.headers)
                    for piece in _pieces(answer, response.max_bytes, count):
                        if turn and len(body) <= SMALL_BYTES < len(body) + len(piece):
                            if not turn.acquire(
                                timeout=max(0.0, until_s - time.monotonic())
                            ):
                                raise Unreachable(
                                    "answered at length while others did the same"
                                )
                            held.callback(turn.release)
                            turn = None
                        _add(body, piece, response.max_kept)
                _refuse_page(answer, body)
                return response.parse(bytes(body))

        return run_within(timeout_s, read)

    def post(
        self,
        url: str,
        timeout_s: float,
        body: bytes,
        headers: Mapping[str, str],
        kept_bytes: int,
    ) -> tuple[int, bytes]:
        """The status of the answer and its first bytes, at most `kept_bytes`; no more is read.

        The bytes are empty when they do not come within `timeout_s`. Raises Unreachable when the
        head does not; its message has no part of the URL.
        """
        status: list[int] = []

        def read() -> bytes:
            with self._send("POST", url, timeout_s, body, headers) as answer:
                status.append(answer.status_code)
                start: bytes = answer.raw.read1(kept_bytes, decode_content=False)
                return start[:kept_bytes]

        try:
            start = run_within(timeout_s, read)
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
        """The answer, its body still unread. Raises Unreachable for every failure."""
        proxy = "" if is_near(urlsplit(url).hostname) else self.proxy
        # The call itself ends sooner; this timeout ends the thread that it leaves behind.
        late_s = timeout_s + 1
        connect_s = (
            late_s if proxy else min(CONNECT_TIMEOUT_S, timeout_s * CONNECT_PART)
        )
        try:
            request = requests.Request(
                method, url, {**HEADERS, **(headers or {})}, data=body
            )
            with self._adapter.send(
                request.prepare(),
                stream=True,
                timeout=(connect_s, late_s),
                verify=self._verify,
                proxies={"all": proxy} if proxy else {},
            ) as answer:
                yield answer
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            way = " through the proxy" if proxy else ""
            raise Unreachable(f"could not be asked{way}: {_cause(error)}") from error


def _cause(error: BaseException) -> str:
    """The system's words, such as "Connection refused", else a class: texts may hold the URL."""
    deepest = error
    while below := deepest.__cause__ or deepest.__context__:
        deepest = below
    return getattr(deepest, "strerror", None) or type(error).__name__


def _pieces(
    answer: requests.Response, max_bytes: int, count: Callable[[int], None]
) -> Iterator[bytes]:
    """The body, piece by piece. Raises BadStatus, and FetchError for a long or compressed one."""
    if answer.status_code != 200:
        raise BadStatus(answer.status_code, answer.headers.get("Retry-After", ""))
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise Compressed
    size = 0
    while piece := answer.raw.read1(_PIECE_BYTES, decode_content=False):
        count(len(piece))
        size += len(piece)
        if size > max_bytes:
            raise FetchError(f"answered more than {max_bytes} bytes")
        yield piece


def _refuse_page(answer: requests.Response, body: bytes | bytearray) -> None:
    """Raises WebPage for HTML. Some servers call JSON so too: it does not begin with a tag."""
    is_named_so = "html" in answer.headers.get("Content-Type", "").lower()
    if is_named_so and body.lstrip().startswith(b"<"):
        raise WebPage


def _add(body: bytearray, piece: bytes, max_kept: int | None) -> None:
    """Adds a piece. With `max_kept` it cuts long values, which may begin in the piece before."""
    if max_kept is None:
        body += piece
        return
    start = max(0, len(body) - _LONGEST_RUN)
    body[start:] = _LONG_RUN.sub(rb"\1", bytes(body[start:]) + piece)
    if len(body) > max_kept:
        raise FetchError(f"answered more than {max_kept} bytes of short values")


def parse_json(body: bytes) -> Any:
    """The JSON value, with exact numbers. Raises FetchError when the body is no JSON."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
