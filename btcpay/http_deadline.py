"""Connections that bound an answer: all of it within one time-out, and a head of limited size."""

import http.client
import io
import socket
import time
from typing import Any

import requests
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

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


class _PromptHTTP(HTTPConnection):
    response_class = _Answer


class _PromptHTTPS(HTTPSConnection):
    response_class = _Answer


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _PromptHTTP


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _PromptHTTPS


class Adapter(requests.adapters.HTTPAdapter):
    """Makes `requests` use these connections in place of its own."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
