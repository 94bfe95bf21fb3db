"""One HTTP GET with a limit on time, size and belief; shared by explorers and price sources."""

import http.client
import io
import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import requests
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from btcpay import __version__

CONNECT_TIMEOUT_S = 3
USER_AGENT = f"btcpay/{__version__}"
_PIECE_BYTES = 65536
Hear = Callable[[Mapping[str, str]], None]


class FetchError(Exception):
    """The answer could not be had, or is not what was asked for."""


class Unreachable(FetchError):
    """No whole answer came: no connection, a time-out, a body that broke off."""


class BadStatus(FetchError):
    """Another status than 200; `retry_after_s` is what the server asked for, 0 when nothing."""

    def __init__(self, status: int, retry_after: str = "") -> None:
        super().__init__(f"answered HTTP {status}")
        self.status = status
        # RFC 9110 also allows a date here; nobody's clock is believed.
        self.retry_after_s = int(retry_after) if re.fullmatch("[0-9]{1,9}", retry_after) else 0


class _InTime(io.RawIOBase):
    """What comes from a socket, all of it within one time-out; TimeoutError after that.

    A socket's own time-out starts anew with each byte, so that a server that drips its answer
    could hold a run for ever.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock, self._raw = sock, sock.makefile("rb", buffering=0)
        self._deadline_s = time.monotonic() + (sock.gettimeout() or CONNECT_TIMEOUT_S)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._sock.settimeout(left_s)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_InTime(sock))


class _PromptHTTP(HTTPConnection):
    response_class = _Answer


class _PromptHTTPS(HTTPSConnection):
    response_class = _Answer


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _PromptHTTP


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _PromptHTTPS


class _Adapter(requests.adapters.HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}


class _Session(requests.Session):
    """Looks for a host's proxies and certificates in the environment once, not at each call.

    That took a seventh of the processor time of a call; calls of `get` differ in the URL alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[tuple[str, str], Any] = {}

    def merge_environment_settings(self, url: Any, *args: Any) -> Any:
        place = urlsplit(url)[:2]
        if place not in self._found:
            self._found[place] = super().merge_environment_settings(url, *args)
        return self._found[place]


def new_session(connections: int = 1) -> requests.Session:
    """A session for `get` that keeps up to `connections` connections open to each host."""
    session = _Session()
    session.headers["User-Agent"] = USER_AGENT
    session.headers["Accept-Encoding"] = "identity"  # a compressed answer has no honest size
    adapter = _Adapter(pool_connections=8, pool_maxsize=connections)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def get(
    session: requests.Session,
    url: str,
    timeout_s: float,
    max_bytes: int,
    hear: Hear = lambda _headers: None,
) -> bytes:
    """The body of a 200 answer, complete within `timeout_s` of wall time and `max_bytes`.

    `hear` gets the headers of any answer. Raises BadStatus, Unreachable or, for an oversized or
    compressed body, FetchError. The message names the cause, never the query's secrets.
    """
    deadline_s = time.monotonic() + timeout_s
    pieces: list[bytes] = []
    size = 0
    try:
        timeouts = (min(CONNECT_TIMEOUT_S, timeout_s), timeout_s)
        # Redirects are not followed: a configured URL answers itself.
        with session.get(url, timeout=timeouts, stream=True, allow_redirects=False) as response:
            hear(response.headers)
            if response.status_code != 200:
                raise BadStatus(response.status_code, response.headers.get("Retry-After", ""))
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise FetchError("answered compressed")
            # read1 returns what has come, so that size and time are looked at after every packet.
            while piece := response.raw.read1(_PIECE_BYTES, decode_content=False):
                pieces.append(piece)
                size += len(piece)
                if size > max_bytes:
                    raise FetchError(f"answered more than {max_bytes} bytes")
                if time.monotonic() >= deadline_s:
                    break
        if time.monotonic() >= deadline_s:  # also when the connection was shut for that reason
            raise Unreachable(f"took longer than {timeout_s} s")
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        if time.monotonic() >= deadline_s:
            raise Unreachable(f"took longer than {timeout_s} s") from error
        raise Unreachable(f"could not be asked: {type(error).__name__}") from error
    return b"".join(pieces)


def parse_json(body: bytes) -> Any:
    """The JSON value with exact numbers. Raises FetchError when it is none."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
