"""Connections that bound an answer: all of it within one time-out, and a head of limited size.

That holds through a proxy too: what it says before the server does is a part of the answer.
"""

import http.client
import io
import socket
import time
from typing import Any

import requests
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ProxyError
from urllib3.util import Timeout

from btcpay.http.http_proxy import is_near, left_of, through_socks

CONNECT_TIMEOUT_S = 3
MAX_HEAD_BYTES = 65536  # Python's own limits come to 6.5 MB


class _InTime(io.RawIOBase):
    """Reads a socket until one time-out for the whole answer; then raises TimeoutError.

    A socket's own time-out starts again with each byte: a server that sends one byte at a time
    could hold a run for ever. `head_left` is how long the head may still become; None after it.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock, self._raw = sock, sock.makefile("rb", buffering=0)
        self._deadline_s = time.monotonic() + (sock.gettimeout() or CONNECT_TIMEOUT_S)
        self.head_left: int | None = MAX_HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._sock.settimeout(left_s)
        count = self._raw.readinto(buffer)
        if self.head_left is not None:
            self.head_left -= count or 0
            if self.head_left < 0:
                raise http.client.HTTPException("the head is too long")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self._source = _InTime(sock)
        self.fp = io.BufferedReader(self._source)

    def begin(self) -> None:
        super().begin()
        self._source.head_left = None


class Deadline(Timeout):
    """One time-out for a whole call, of which a connection to a server may take three seconds.

    A proxy may use up all of it before it connects: Tor needs many seconds for a new circuit.
    """

    def __init__(self, timeout_s: float, through_proxy: bool) -> None:
        super().__init__(timeout_s)
        self.at_s = time.monotonic() + timeout_s
        self._connect_s = timeout_s if through_proxy else CONNECT_TIMEOUT_S

    def clone(self) -> Timeout:
        """Itself: what one attempt takes is not given to another."""
        return self

    @property
    def connect_timeout(self) -> float:
        """Seconds."""
        return min(self._connect_s, self.read_timeout)

    @property
    def read_timeout(self) -> float:
        """Seconds that are left; more than none, which would mean never to wait."""
        return left_of(self.at_s)


class _PromptHTTP(HTTPConnection):
    """Reaches a proxy, is let through and shakes hands (TLS) within one time-out for all of it."""

    response_class = _Answer

    def __init__(self, *args: Any, _socks_options: Any = None, **kwargs: Any) -> None:
        self._socks_options = _socks_options  # urllib3's name for them
        super().__init__(*args, **kwargs)

    def _new_conn(self) -> socket.socket:
        until_s = time.monotonic() + (self.timeout or CONNECT_TIMEOUT_S)
        if self._socks_options:
            try:
                return through_socks(self._socks_options, self.host, self.port, until_s)
            except (OSError, ValueError) as error:
                raise ProxyError("did not let us through", error) from error
        sock = super()._new_conn()
        if self.proxy:
            sock.settimeout(left_of(until_s))
        return sock


class _PromptHTTPS(_PromptHTTP, HTTPSConnection):
    pass


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _PromptHTTP


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _PromptHTTPS


_POOLS = {"http": _HTTPPool, "https": _HTTPSPool}


class Adapter(requests.adapters.HTTPAdapter):
    """Makes `requests` use these connections in place of its own, and one proxy for what is far.

    `proxy` is a URL as `setting_parsers.proxy` takes it, "" for none.
    """

    def __init__(self, proxy: str, connections: int) -> None:
        self._proxy = proxy
        super().__init__(pool_connections=8, pool_maxsize=connections)

    def send(self, request: Any, *args: Any, **kwargs: Any) -> requests.Response:
        """A call; `timeout` is in seconds, for all of it."""
        uses_proxy = bool(self._proxy) and not is_near(request.url)
        kwargs["proxies"] = {"all": self._proxy} if uses_proxy else {}
        kwargs["timeout"] = Deadline(kwargs["timeout"], uses_proxy)
        return super().send(request, *args, **kwargs)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager
