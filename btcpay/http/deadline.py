"""A deadline for a whole call, from the look-up of its name to the last byte; a bounded head."""

import http.client
import io
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from requests.adapters import HTTPAdapter

from btcpay.values.errors import TimedOut

T = TypeVar("T")

MAX_HEAD_BYTES = 65536  # Python's own limits come to 6.5 MB, which takes ten times as much to parse


class _Call:
    """What one call holds while it lasts, so that whoever waits for it can make an end of it."""

    def __init__(self) -> None:
        self.connection: Any = None
        self._sock: socket.socket | None = None
        self._is_over = False

    def hold(self, sock: socket.socket) -> None:
        """Takes note of the socket on which the answer comes."""
        self._sock = sock
        if self._is_over:
            self.end()

    def end(self) -> None:
        """Shuts the connection down: whatever reads from it reads its end."""
        self._is_over = True
        sock = self._sock or (self.connection and self.connection.sock)
        if sock:
            with suppress(OSError):  # it was closed already
                sock.shutdown(socket.SHUT_RDWR)


_running = threading.local()  # `call`: what this thread is making


class _Source:
    """A socket that a response is read from."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.file = _File(sock.makefile("rb", buffering=0))

    def makefile(self, *_: Any) -> "_File":
        """What `http.client` reads from."""
        return self.file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class _File(io.BufferedReader):
    """`head_left`: how long the head may still become; None behind it."""

    head_left: int | None = MAX_HEAD_BYTES

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(size)
        if self.head_left is not None:
            self.head_left -= len(line)
            if self.head_left < 0:
                raise http.client.HTTPException("the head is too long")
        return line


class _Held(http.client.HTTPConnection):
    """A connection that is known to the call that uses it, from the way to a proxy on."""

    def connect(self) -> None:
        _running.call.connection = self
        super().connect()

    def getresponse(self) -> Any:
        sock = self.sock
        _running.call.hold(sock)
        self.sock = source = _Source(sock)
        try:
            return super().getresponse()
        finally:
            source.file.head_left = None
            if self.sock is source:  # not closed, so that it can be used again
                self.sock = sock


class Adapter(HTTPAdapter):
    """Makes `requests` use such connections, whatever kind it chooses."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        if not issubclass(pool.ConnectionCls, _Held):
            pool.ConnectionCls = type("Held", (_Held, pool.ConnectionCls), {})
        return pool


def in_time(timeout_s: float, read: Callable[[], T]) -> T:
    """What `read` answers. Raises TimedOut when it takes longer.

    It runs in a thread of its own, which is left behind then: a time-out of a socket begins again
    with each byte, and nothing else ends the silence of a name server.
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
        del found  # an error's frames would hold it, and it the error, with a whole body


def in_thread(read: Callable[[], T]) -> Future[T]:
    """What `read` will have answered; nobody has to wait for it."""
    found = Future[T]()
    threading.Thread(target=_run, args=(read, found), daemon=True).start()
    return found


def _run(read: Callable[[], T], found: Future[T]) -> None:
    try:
        found.set_result(read())
    except BaseException as error:  # noqa: BLE001  it is raised again where it is waited for
        found.set_exception(error)
    finally:
        del found
