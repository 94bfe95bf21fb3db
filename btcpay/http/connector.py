"""Opens TCP connections to hosts with several addresses (RFC 8305, "Happy Eyeballs")."""

import errno
import os
import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any, cast

# RFC 8305, section 5: if an address has not accepted by then, the next is tried in parallel.
NEXT_AFTER_S = 0.25
# An entry of `socket.getaddrinfo`: family, type, protocol, canonical name (empty here), and socket
# address.
Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
Options = Sequence[tuple[int, int, int | bytes]]


def connect(
    host: str,
    port: int,
    timeout_s: float,
    options: Options = (),
) -> socket.socket:
    """Connects to a host, and returns the socket of the address that accepts first.

    Raises TimeoutError after `timeout_s`, which does not include the DNS look-up. If
    all addresses fail earlier, raises the OSError of the first failure. Also raises the
    OSError of a failed look-up. If a network drops IPv6 packets, the connection takes
    NEXT_AFTER_S longer.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    ordered = interleave_families(cast(list[Address], addresses))
    return connect_first(ordered, timeout_s, options)


def connect_first(
    addresses: Sequence[Address],
    timeout_s: float,
    options: Options = (),
) -> socket.socket:
    """Tries the addresses in turn, and returns the first connection that succeeds.

    Each attempt starts when the attempt before it has failed, or NEXT_AFTER_S after
    that attempt's start. Raises TimeoutError after `timeout_s`. If all attempts fail
    earlier, raises the OSError of the first failure.
    """
    return _Race(addresses, timeout_s, options).run()


def interleave_families(addresses: Sequence[Address]) -> list[Address]:
    """Returns the addresses with IPv6 and IPv4 alternating.

    The family of the first address stays first.
    """
    if not addresses:
        return []
    first_family = _family(addresses[0])
    first = [address for address in addresses if _family(address) == first_family]
    others = [address for address in addresses if _family(address) != first_family]
    pairs = zip_longest(first, others)  # fills the shorter list with None
    interleaved = chain.from_iterable(pairs)
    return [address for address in interleaved if address is not None]


def _family(address: Address) -> socket.AddressFamily:
    family, *_ = address
    return family


class _Race:
    """A race of connection attempts. The first success wins; the others are closed."""

    def __init__(
        self,
        addresses: Sequence[Address],
        timeout_s: float,
        options: Options,
    ) -> None:
        self._addresses = deque(addresses)
        self._options = options
        self._end_s = time.monotonic() + timeout_s
        self._next_s = 0.0  # when the next attempt may start; 0 for at once
        self._pending = selectors.DefaultSelector()
        self._error: OSError | None = None  # of the attempt that failed first

    def run(self) -> socket.socket:
        """Starts the attempts, and returns the first connection that succeeds."""
        try:
            while self._addresses or self._pending_sockets():
                now_s = time.monotonic()
                if now_s >= self._end_s:
                    raise TimeoutError("timed out")
                if self._addresses and now_s >= self._next_s:
                    self._start(self._addresses.popleft())
                    continue
                winner = self._wait()
                if winner:
                    return winner
            raise self._error or OSError("the host has no address")
        finally:
            for loser in self._pending_sockets():
                loser.close()
            self._pending.close()

    def _pending_sockets(self) -> list[socket.socket]:
        keys = self._pending.get_map().values()
        return [cast(socket.socket, key.fileobj) for key in keys]

    def _start(self, address: Address) -> None:
        """Starts to connect to the address, without waiting for the result."""
        family, kind, protocol, _, peer = address
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:  # a machine without IPv6
            self._fail(error)
            return
        for option in self._options:
            sock.setsockopt(*option)
        sock.setblocking(False)
        try:
            error_code = sock.connect_ex(peer)
        except OSError as error:
            sock.close()
            self._fail(error)
            return
        if error_code not in (0, errno.EINPROGRESS):
            sock.close()
            self._fail(OSError(error_code, os.strerror(error_code)))
            return
        self._pending.register(sock, selectors.EVENT_WRITE)
        self._next_s = time.monotonic() + NEXT_AFTER_S

    def _fail(self, error: OSError) -> None:
        """Keeps the first error, and lets the next address be tried at once."""
        self._error = self._error or error
        self._next_s = 0.0

    def _wait(self) -> socket.socket | None:
        """Waits, and returns a connection that succeeded.

        Returns None if the next address must be tried, if a connection failed, or at
        the time-out.
        """
        wake_s = self._end_s
        if self._addresses:
            wake_s = min(self._next_s, self._end_s)
        timeout_s = max(0.0, wake_s - time.monotonic())
        for key, _ in self._pending.select(timeout_s):
            sock = cast(socket.socket, key.fileobj)
            self._pending.unregister(sock)
            error_code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error_code == 0:
                left_s = self._end_s - time.monotonic()
                sock.settimeout(max(0.001, left_s))
                return sock
            sock.close()
            self._fail(OSError(error_code, os.strerror(error_code)))
        return None
