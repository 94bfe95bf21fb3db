"""A time limit for a complete HTTP request, and a size limit for response headers.

The time limit includes the DNS look-up and the last byte of the body. The two classes
below replace the response class of http.client and the connection class of urllib3, by
attributes that their documentation names (`response_class`, `ConnectionCls`). Without
them:

- Python limits response headers to 100 lines of 64 kB. Sixteen such responses in
  parallel took 700 MB to 1 GB of memory and up to 16 s of CPU time; four took 170 MB.
  With these classes sixteen take 3 MB.
- A time-out starts again with each byte. A server that sends one byte every ten seconds
  could block a thread and a socket for years.
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

MAX_HEAD_BYTES = 65536  # usual response headers have a few kB


class _Stream(io.RawIOBase):
    """The bytes of a response, read within one time limit.

    The limit is the time-out of the socket when the stream is created. After it, reads
    raise TimeoutError. After `bytes_left` bytes, they raise HTTPException.
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
    """A response with limits on the size of its headers and on its total time.

    The size of its body is not limited here.
    """

    fp: Any  # None after the response is closed

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_Stream(sock, self.fp.detach()))

    def begin(self) -> None:
        """Reads the headers. Afterwards the number of bytes is not limited any more."""
        super().begin()
        self.fp.raw.bytes_left = sys.maxsize


class Adapter(HTTPAdapter):
    """An adapter of `requests` with this module's limits: total time, size of headers."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the pool of connections for a request, which have the limits."""
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        usual_class = pool.ConnectionCls
        if usual_class.response_class is _Response:  # changed for an earlier request
            return pool
        attributes: dict[str, Any] = {"response_class": _Response}
        # PySocks replaces `_new_conn` to connect to a proxy. That replacement is kept.
        if usual_class._new_conn is HTTPConnection._new_conn:
            attributes["_new_conn"] = _new_connection
        pool.ConnectionCls = type("Bounded", (usual_class,), attributes)
        return pool


def _new_connection(connection: Any) -> socket.socket:
    """Connects by `connector.connect`. Replaces urllib3's `_new_conn`.

    urllib3 would spend the complete time-out on the first address of a host. Raises
    urllib3's errors.
    """
    host = connection._dns_host
    timeout_s = connection.timeout
    try:
        return connect(
            host,
            connection.port,
            timeout_s,
            connection.socket_options or (),
        )
    except socket.gaierror as error:
        raise NameResolutionError(connection.host, connection, error) from error
    except TimeoutError as error:
        raise ConnectTimeoutError(connection, "timed out") from error
    except OSError as error:
        raise NewConnectionError(connection, "no connection") from error


def run_within(timeout_s: float, read: Callable[[], T]) -> T:
    """Runs `read` in a new thread, and returns its result.

    Raises TimedOut if it takes longer than `timeout_s`. The thread then continues,
    since a DNS look-up cannot be interrupted.
    """
    future = run_in_thread(read)
    try:
        return future.result(timeout_s)
    except TimeoutError:
        raise TimedOut(f"took longer than {timeout_s:.3g} s") from None
    finally:
        # Breaks the reference cycle of the future and the traceback, which would keep the body
        # in memory.
        del future


def run_in_thread(read: Callable[[], T]) -> Future[T]:
    """Starts `read` in a new daemon thread, and returns the future of its result.

    The thread has the caller's context, so that its log lines have the request id.
    """
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
    except BaseException as error:  # noqa: BLE001  `Future.result` raises it again
        future.set_exception(error)
    finally:
        del future
