"""TCP connections to whichever address of a host answers first (RFC 8305, "Happy Eyeballs")."""

import errno
import os
import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any, cast

# RFC 8305, section 5: after as long without an answer the next address is tried beside this one.
NEXT_AFTER_S = 0.25
# The family, type and protocol of a socket, a name that is empty here, and the address.
Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
Options = Sequence[tuple[int, int, int | bytes]]


def connect(
    host: str, port: int, timeout_s: float, options: Options = ()
) -> socket.socket:
    """A connection to the host within that time, the looking up of its name not counted.

    A network that swallows what goes to IPv6 costs NEXT_AFTER_S. Raises OSError, such as the error
    of the first address when none accepts, and TimeoutError.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return connect_first(
        interleave_families(cast(list[Address], found)), timeout_s, options
    )


def connect_first(
    addresses: Sequence[Address], timeout_s: float, options: Options = ()
) -> socket.socket:
    """A connection to the first of the addresses that accepts, as `connect` makes it."""
    return _Race(addresses, timeout_s, options).run()


def interleave_families(addresses: Sequence[Address]) -> list[Address]:
    """The addresses of both families in turns, the resolver's first one first."""
    first = [one for one in addresses if one[0] == addresses[0][0]]
    others = [one for one in addresses if one[0] != addresses[0][0]]
    pairs = zip_longest(first, others)
    return [one for one in chain.from_iterable(pairs) if one is not None]


class _Race:
    """Connects to addresses one after another, until one has accepted; closes the others."""

    def __init__(
        self, addresses: Sequence[Address], timeout_s: float, options: Options
    ) -> None:
        self._addresses = deque(addresses)
        self._options = options
        self._until_s = time.monotonic() + timeout_s
        self._next_s = 0.0
        self._under_way = selectors.DefaultSelector()
        self._error: OSError | None = None

    def run(self) -> socket.socket:
        try:
            while self._addresses or self._sockets():
                if time.monotonic() >= self._until_s:
                    raise TimeoutError("timed out")
                if self._addresses and time.monotonic() >= self._next_s:
                    self._begin(self._addresses.popleft())
                elif winner := self._wait():
                    return winner
            raise self._error or OSError("the host has no address")
        finally:
            for loser in self._sockets():
                loser.close()
            self._under_way.close()

    def _sockets(self) -> list[socket.socket]:
        return [
            cast(socket.socket, key.fileobj)
            for key in self._under_way.get_map().values()
        ]

    def _begin(self, address: Address) -> None:
        family, kind, protocol, _, place = address
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError as error:  # a machine without IPv6
            self._fail(error)
            return
        for option in self._options:
            sock.setsockopt(*option)
        sock.setblocking(False)
        try:
            code = sock.connect_ex(place)
        except OSError as error:
            sock.close()
            self._fail(error)
            return
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            self._fail(OSError(code, os.strerror(code)))
            return
        self._under_way.register(sock, selectors.EVENT_WRITE)
        self._next_s = time.monotonic() + NEXT_AFTER_S

    def _fail(self, error: OSError) -> None:
        self._error = self._error or error
        self._next_s = 0.0

    def _wait(self) -> socket.socket | None:
        """The connection that was accepted, if there is one by the time for the next address."""
        end_s = min(self._next_s, self._until_s) if self._addresses else self._until_s
        for key, _ in self._under_way.select(max(0.0, end_s - time.monotonic())):
            sock = cast(socket.socket, key.fileobj)
            self._under_way.unregister(sock)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code == 0:
                sock.settimeout(max(0.001, self._until_s - time.monotonic()))
                return sock
            sock.close()
            self._fail(OSError(code, os.strerror(code)))
        return None
