"""Calls through a proxy: which go that way, and a SOCKS handshake that ends in time."""

import ipaddress
import socket
import time
from typing import Any
from urllib.parse import urlsplit

try:
    import socks
except ImportError:  # it is the extra [socks]
    socks = None

HAS_SOCKS = socks is not None


def is_near(url: str) -> bool:
    """Whether the URL's host is on this machine or in its own network, by its text alone.

    No name but localhost is: to know where it leads it would have to be resolved.
    """
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost"


def left_of(until_s: float) -> float:
    """Seconds until then, at least a millisecond: 0 would mean a socket that never waits."""
    return max(0.001, until_s - time.monotonic())


def through_socks(options: Any, host: str, port: int | None, until_s: float) -> socket.socket:
    """A connection to a host, which the proxy looks up; its time-out is what is left.

    `options` are urllib3's (`_socks_options`). Raises OSError or ValueError when it is not there by
    `until_s` of `time.monotonic()`.
    """
    place = options["proxy_host"].strip("[]"), options["proxy_port"]
    sock = _SocksSocket(until_s)
    try:
        sock.set_proxy(socks.SOCKS5, *place, True, options["username"], options["password"])
        sock.settimeout(left_of(until_s))
        sock.connect((host, port))
    except (OSError, ValueError):  # pysocks' own are OSErrors
        sock.close()
        raise
    sock.reached()
    return sock


class _SocksSocket(socks.socksocket if socks else socket.socket):  # type: ignore[misc]
    """All that a SOCKS server says comes before `until_s`: pysocks waits for each byte anew."""

    def __init__(self, until_s: float) -> None:
        super().__init__()
        self._until_s: float | None = until_s

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        if self._until_s is not None:
            if time.monotonic() >= self._until_s:
                raise TimeoutError
            socket.socket.settimeout(self, left_of(self._until_s))
        return super().recv_into(*args, **kwargs)

    def reached(self) -> None:
        """What is left is for the handshake with the server."""
        if self._until_s is not None:
            self.settimeout(left_of(self._until_s))
        self._until_s = None
