"""What makes the calls of `http_client.Session`: requests, bounded in time and size."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from btcpay import __version__
from btcpay.http.http_client import BadStatus, Count, FetchError, Hear, T, Turn, Unreachable, Wanted
from btcpay.http.http_deadline import Adapter

USER_AGENT = f"btcpay/{__version__}"
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")  # variables, as requests names them
_PIECE_BYTES = 65536
# Answers up to this size are read as they come; longer ones one at a time.
SMALL_BYTES = 65536
_LONGEST_RUN = 128  # characters of one JSON value; nothing that is looked for is longer
_PLAIN = rb'[^"\\,:\[\]{}]'
# It matches only where a run begins, so that no byte is read twice.
_LONG_RUN = re.compile(rb"(?<!%b)(%b{%d})%b+" % (_PLAIN, _PLAIN, _LONGEST_RUN, _PLAIN))


class Caller:
    """Calls with a session of `requests`; the parameters are `http_client.Session`'s.

    The environment's proxies and passwords (.netrc) are not read, its certificates are.
    """

    def __init__(self, connections: int, proxy: str, takes_cookies: bool) -> None:
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = next(filter(None, map(os.environ.get, CERTIFICATES)), True)
        self._session.headers["User-Agent"] = USER_AGENT
        # A compressed answer has no honest size.
        self._session.headers["Accept-Encoding"] = "identity"
        if not takes_cookies:
            self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = Adapter(proxy, connections)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def get(
        self,
        url: str,
        timeout_s: float,
        wanted: Wanted[T],
        hear: Hear,
        turn: Turn | None,
        count: Count,
    ) -> T:
        """As `http_client.Session.get` says."""
        deadline_s = time.monotonic() + timeout_s
        with ExitStack() as held:
            body = bytearray()
            with self._asked("GET", url, timeout_s, deadline_s) as response:
                hear(response.headers)
                _require_plain(response)
                for piece in _pieces(response, deadline_s, wanted.max_bytes, count):
                    if turn and len(body) <= SMALL_BYTES < len(body) + len(piece):
                        held.enter_context(turn.taken(deadline_s))
                        turn = None
                    _add(body, piece, wanted)
            if time.monotonic() >= deadline_s:  # also when that is why the connection was shut
                raise _too_long(timeout_s)
            return wanted.make(bytes(body))

    def post(
        self, url: str, timeout_s: float, body: bytes, headers: Mapping[str, str], kept_bytes: int
    ) -> tuple[int, bytes]:
        """As `http_client.Session.post` says."""
        deadline_s = time.monotonic() + timeout_s
        with self._asked(
            "POST", url, timeout_s, deadline_s, data=body, headers=dict(headers)
        ) as response:
            return response.status_code, _start_of(response, kept_bytes)

    @contextmanager
    def _asked(
        self, method: str, url: str, timeout_s: float, deadline_s: float, **more: Any
    ) -> Iterator[requests.Response]:
        """The answer, of which no body was read yet; what fails with it is Unreachable.

        Redirects are not followed: a configured URL answers itself.
        """
        try:
            with self._session.request(
                method, url, timeout=timeout_s, stream=True, allow_redirects=False, **more
            ) as response:
                yield response
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            if time.monotonic() >= deadline_s:
                raise _too_long(timeout_s) from error
            raise Unreachable(f"could not be asked: {type(error).__name__}") from error


def _too_long(timeout_s: float) -> Unreachable:
    return Unreachable(f"took longer than {timeout_s} s")


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
