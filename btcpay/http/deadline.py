"""A deadline for a whole call, from the look-up of its name to its last byte; a bounded head.

Both need the two classes below. They are set by attributes that urllib3 and http.client document
(`ConnectionCls`, `response_class`). Measured without them:

- Python bounds a head by 100 lines of 64 kB. Sixteen such heads at once took 700 MB to 1 GB of
  memory and up to 16 s of processor time, four took 170 MB. With these classes sixteen take 3 MB.
- A time-out begins again with each byte. A server that sends one every ten seconds could hold a
  thread and a socket of every call for years.
"""

import http.client
import io
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    NameResolutionError,
    NewConnectionError,
)

from btcpay.http.connector import connect
from btcpay.values.errors import TimedOut

T = TypeVar("T")

MAX_HEAD_BYTES = 65536  # honest servers send a few kB


class _Stream(io.RawIOBase):
    """The bytes of an answer, all of them within the time-out that its socket has at first.

    `bytes_left` may still come; after them it raises HTTPException.
    """

    bytes_left = MAX_HEAD_BYTES

    def __init__(self, sock: socket.socket, raw: Any) -> None:
        self._sock = sock
        self._raw = raw
        self._end_s = time.monotonic() + (sock.gettimeout() or 0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        if self.bytes_left <= 0:
            raise http.client.HTTPException("the head is too long")
        self._sock.settimeout(left_s)
        size: int = self._raw.readinto(buffer)
        self.bytes_left -= size
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer whose head is bounded in bytes, and which is bounded in time."""

    fp: Any  # None once the answer is closed

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Stream(sock, self.fp.detach()))

    def begin(self) -> None:
        super().begin()
        self.fp.raw.bytes_left = sys.maxsize


class Adapter(HTTPAdapter):
    """Lets `requests` read such answers, whatever kind of connection it chooses."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        kind = pool.ConnectionCls
        if kind.response_class is _Response:
            return pool
        attributes: dict[str, Any] = {"response_class": _Response}
        # PySocks has a way of its own to connect to a proxy, which stays.
        if kind._new_conn is HTTPConnection._new_conn:
            attributes["_new_conn"] = _new_connection
        pool.ConnectionCls = type("Bounded", (kind,), attributes)
        return pool


def _new_connection(connection: Any) -> socket.socket:
    """Replaces urllib3's function, which spends the whole time on a host's first address."""
    host = connection._dns_host
    timeout_s = connection.timeout
    try:
        return connect(
            host, connection.port, timeout_s, connection.socket_options or ()
        )
    except socket.gaierror as error:
        raise NameResolutionError(connection.host, connection, error) from error
    except TimeoutError as error:
        raise ConnectTimeoutError(connection, "timed out") from error
    except OSError as error:
        raise NewConnectionError(connection, "no connection") from error


def run_within(timeout_s: float, read: Callable[[], T]) -> T:
    """The result of `read`. Raises TimedOut if it takes longer.

    It runs in a thread of its own. After a time-out the thread is left to itself, since nothing can
    interrupt a look-up.
    """
    future = run_in_thread(read)
    try:
        return future.result(timeout_s)
    except TimeoutError:
        raise TimedOut(f"took longer than {timeout_s:.3g} s") from None
    finally:
        # Else it and the error's frames would hold each other, and a whole body.
        del future


def run_in_thread(read: Callable[[], T]) -> Future[T]:
    """The future result of `read`, for which nobody has to wait; its log has the request's id."""
    future = Future[T]()
    context = copy_context()
    thread = threading.Thread(
        target=context.run, args=(_run, read, future), daemon=True
    )
    thread.start()
    return future


def _run(read: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(read())
    except BaseException as error:  # noqa: BLE001  it is raised again where it is waited for
        future.set_exception(error)
    finally:
        del future
