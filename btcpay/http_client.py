"""One HTTP GET with limits on time and size, for explorers and price sources."""

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

import requests
from urllib3.exceptions import HTTPError

from btcpay import __version__
from btcpay.http_deadline import Adapter

USER_AGENT = f"btcpay/{__version__}"
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # variables, as requests names them
_PIECE_BYTES = 65536
# Answers up to this size are read as they come; longer ones one at a time.
SMALL_BYTES = 65536
_LONGEST_RUN = 128  # characters of one JSON value; nothing that is looked for is longer
_PLAIN = rb'[^"\\,:\[\]{}]'
# It matches only where a run begins, so that no byte is read twice.
_LONG_RUN = re.compile(rb"(?<!%b)(%b{%d})%b+" % (_PLAIN, _PLAIN, _LONGEST_RUN, _PLAIN))
Hear = Callable[[Mapping[str, str]], None]
Count = Callable[[int], None]
T = TypeVar("T")


class FetchError(Exception):
    """There was no answer, or it is not what was asked for."""


class Unreachable(FetchError):
    """No complete answer came: no connection, a time-out, or a body that broke off."""


class BadStatus(FetchError):
    """A status other than 200; `retry_after_s` is what the server asked for, 0 if nothing."""

    def __init__(self, status: int, retry_after: str = "") -> None:
        super().__init__(f"answered HTTP {status}")
        self.status = status
        # RFC 9110 also allows a date here, but no server's clock is believed.
        self.retry_after_s = int(retry_after) if re.fullmatch("[0-9]{1,9}", retry_after) else 0


@dataclass(frozen=True)
class Wanted(Generic[T]):
    """How much of an answer is taken in, and what is made of it.

    `max_bytes` may come. With `max_kept`, values that are longer than any that is looked for
    (scripts, witnesses and their texts) are cut as they come, and so many bytes may be left.
    """

    make: Callable[[bytes], T]
    max_bytes: int
    max_kept: int | None = None


class Turn:
    """Lets long answers be held one at a time, from their first bytes until they are parsed.

    So the memory of a run does not grow with the number of calls that it makes at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, until_s: float) -> Iterator[None]:
        """Raises Unreachable when the turn has not come by `until_s` of `time.monotonic()`."""
        if not self._lock.acquire(timeout=max(0.0, until_s - time.monotonic())):
            raise Unreachable("answered at length while others did the same")
        try:
            yield
        finally:
            self._lock.release()


def new_session(connections: int = 1, proxy: str = "") -> requests.Session:
    """A session for `get` that keeps up to `connections` connections open to each host.

    What is not on this machine or in its network is asked through the `proxy`, if there is one; the
    environment's proxies and passwords (.netrc) are not read, its certificates are.
    """
    session = requests.Session()
    session.trust_env = False
    session.verify = next(filter(None, map(os.environ.get, CERTIFICATES)), True)
    session.headers["User-Agent"] = USER_AGENT
    session.headers["Accept-Encoding"] = "identity"  # a compressed answer has no honest size
    adapter = Adapter(proxy, connections)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def get(
    session: requests.Session,
    url: str,
    timeout_s: float,
    wanted: Wanted[T],
    hear: Hear = lambda _headers: None,
    turn: Turn | None = None,
    count: Count = lambda _size: None,
) -> T:
    """What `wanted` makes of the body of a 200 answer that is complete within `timeout_s`.

    `hear` gets the headers of any answer, `count` the size of each piece of its body. A long answer
    waits for its `turn`. Raises BadStatus, Unreachable, FetchError for an oversized or compressed
    body, and whatever `wanted.make` raises. The message names the cause, but no part of the URL,
    which may hold secrets.
    """
    deadline_s = time.monotonic() + timeout_s
    with ExitStack() as held:
        body = bytearray()
        try:
            # Redirects are not followed: a configured URL answers itself.
            with session.get(
                url, timeout=timeout_s, stream=True, allow_redirects=False
            ) as response:
                hear(response.headers)
                _require_plain(response)
                for piece in _pieces(response, deadline_s, wanted.max_bytes, count):
                    if turn and len(body) <= SMALL_BYTES < len(body) + len(piece):
                        held.enter_context(turn.taken(deadline_s))
                        turn = None
                    _add(body, piece, wanted)
            if time.monotonic() >= deadline_s:  # also when that is why the connection was shut
                raise Unreachable(f"took longer than {timeout_s} s")
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            if time.monotonic() >= deadline_s:
                raise Unreachable(f"took longer than {timeout_s} s") from error
            raise Unreachable(f"could not be asked: {type(error).__name__}") from error
        return wanted.make(bytes(body))


def post(
    session: requests.Session,
    url: str,
    timeout_s: float,
    body: bytes,
    headers: Mapping[str, str],
    kept_bytes: int,
) -> tuple[int, bytes]:
    """The status of the answer and its first bytes, at most `kept_bytes`; the rest is not read.

    The head is complete within `timeout_s`. Redirects are not followed. Raises Unreachable, whose
    message names no part of the URL.
    """
    deadline_s = time.monotonic() + timeout_s
    try:
        with session.post(
            url,
            data=body,
            headers=dict(headers),
            timeout=timeout_s,
            stream=True,
            allow_redirects=False,
        ) as response:
            return response.status_code, _start_of(response, kept_bytes)
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        if time.monotonic() >= deadline_s:
            raise Unreachable(f"took longer than {timeout_s} s") from error
        raise Unreachable(f"could not be asked: {type(error).__name__}") from error


def _start_of(response: requests.Response, kept_bytes: int) -> bytes:
    """What comes first of the body, which may never end; nothing when it breaks off."""
    try:
        return response.raw.read1(kept_bytes, decode_content=False)[:kept_bytes]
    except (HTTPError, OSError, ValueError):
        return b""


def _require_plain(response: requests.Response) -> None:
    if response.status_code != 200:
        raise BadStatus(response.status_code, response.headers.get("Retry-After", ""))
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise FetchError("answered compressed")


def _pieces(
    response: requests.Response, deadline_s: float, max_bytes: int, count: Count
) -> Iterator[bytes]:
    """The body as it comes, until its end or the deadline. Raises FetchError when it is too long.

    read1 returns what has come so far, so that size and time are checked after every packet.
    """
    size = 0
    while piece := response.raw.read1(_PIECE_BYTES, decode_content=False):
        count(len(piece))
        size += len(piece)
        if size > max_bytes:
            raise FetchError(f"answered more than {max_bytes} bytes")
        yield piece
        if time.monotonic() >= deadline_s:
            return


def _add(body: bytearray, piece: bytes, wanted: Wanted[Any]) -> None:
    """Adds a piece, and cuts long values if wanted; a value may begin in the piece before."""
    if wanted.max_kept is None:
        body += piece
        return
    start = max(0, len(body) - _LONGEST_RUN)
    body[start:] = _LONG_RUN.sub(rb"\1", bytes(body[start:]) + piece)
    if len(body) > wanted.max_kept:
        raise FetchError(f"answered more than {wanted.max_kept} bytes of short values")


def parse_json(body: bytes) -> Any:
    """The JSON value, with exact numbers. Raises FetchError when the body is no JSON."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
