"""A deadline for a whole call, from the look-up of its name to its last byte, and a bounded head.

Both need the three classes below, through attributes that urllib3 and http.client document
(`ConnectionCls`, `response_class`), since measured without them:

- Python bounds a head by 100 lines of 64 kB. Sixteen such heads at once took 700 MB to 1 GB of
  memory and up to 16 s of processor time, four took 170 MB; by these classes sixteen take 3 MB.
- A time-out begins again with each byte. A server that sends one every ten seconds would hold a
  thread and a socket of every call for years, so the call shuts its socket down at its deadline.
"""

import http.client
import io
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from requests.adapters import HTTPAdapter

from btcpay.values.errors import TimedOut

T = TypeVar("T")

MAX_HEAD_BYTES = 65536  # honest servers send a few kB


class _Call:
    """The connection of one call, which the thread that waits for the call can end."""

    def __init__(self) -> None:
        self.connection: Any = None
        self._sock: socket.socket | None = None
        self._is_over = False

    def hold(self, sock: socket.socket) -> None:
        self._sock = sock
        if self._is_over:
            self.end()

    def end(self) -> None:
        """Shuts the connection down: its reader reads the end."""
        self._is_over = True
        sock = self._sock or (self.connection and self.connection.sock)
        if sock:
            with suppress(OSError):  # it was closed already
                sock.shutdown(socket.SHUT_RDWR)


_running = threading.local()  # `call`: the call of this thread


class _File(io.BufferedReader):
    """The file of an answer. `head_left`: bytes that its head may still have, None after the head.

    Raises HTTPException for a longer head.
    """

    head_left: int | None = MAX_HEAD_BYTES

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(size)
        if self.head_left is not None:
            self.head_left -= len(line)
            if self.head_left < 0:
                raise http.client.HTTPException("the head is too long")
        return line


class _Response(http.client.HTTPResponse):
    """An answer that is known to its call, with a bounded head."""

    fp: Any  # None once it is closed

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = _File(self.fp.detach())
        _running.call.hold(sock)

    def begin(self) -> None:
        super().begin()
        self.fp.head_left = None


class _Held(http.client.HTTPConnection):
    """A connection that is known to the call that uses it, from the way to a proxy on."""

    response_class = _Response

    def connect(self) -> None:
        _running.call.connection = self
        super().connect()


class Adapter(HTTPAdapter):
    """Makes `requests` use such connections, whatever kind it chooses."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        if not issubclass(pool.ConnectionCls, _Held):
            pool.ConnectionCls = type("Held", (_Held, pool.ConnectionCls), {})
        return pool


def in_time(timeout_s: float, read: Callable[[], T]) -> T:
    """The result of `read`. Raises TimedOut when it takes longer.

    It runs in a thread of its own, which is then left behind, since nothing can interrupt a
    look-up.
    """
    call = _Call()

    def held() -> T:
        _running.call = call
        return read()

    found = in_thread(held)
    try:
        return found.result(timeout_s)
    except TimeoutError:
        call.end()
        raise TimedOut(f"took longer than {timeout_s:.3g} s") from None
    finally:
        del found  # else it and the error's frames hold each other, and a whole body


def in_thread(read: Callable[[], T]) -> Future[T]:
    """The coming result of `read`, for which nobody has to wait; its log has the request's id."""
    found = Future[T]()
    threading.Thread(target=copy_context().run, args=(_run, read, found), daemon=True).start()
    return found


def _run(read: Callable[[], T], found: Future[T]) -> None:
    try:
        found.set_result(read())
    except BaseException as error:  # noqa: BLE001  it is raised again where it is waited for
        found.set_exception(error)
    finally:
        del found
