"""Examines whether this machine reaches its explorers and price sources over IPv6."""

import socket
from collections.abc import Iterator
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from btcpay.health.doctor.shop import Shop
from btcpay.http.connector import Address, connect_first
from btcpay.http.deadline import run_within
from btcpay.values.errors import FetchError
from btcpay.values.finding import YELLOW, Finding
from btcpay.values.hosts import is_near

TIMEOUT_S = 3
DEFAULT_PORTS = {"http": 80, "https": 443}
NAME = "IPv6"
SENTENCE = "IPv6 does not answer, IPv4 does: each new connection to {host} takes a moment longer"
REMEDY = "repair this machine's route for IPv6, or switch IPv6 off"


def ipv6(shop: Shop) -> Iterator[Finding]:
    """Yields a yellow finding if a host responds over IPv4 but not over IPv6.

    Only one host is tested: the first explorer or price source that has both IPv4 and
    IPv6 addresses. Yields nothing if no host has both. Yields nothing either if a proxy
    is set, since the proxy then chooses the address.
    """
    settings = shop.settings
    if settings.proxy:
        return
    urls = [*settings.explorers, *(source.url for source in settings.price_sources)]
    for url in urls:
        host = _look_up(url)
        if host is None or not host.ipv6 or not host.ipv4:
            continue
        if not _answers(host.ipv6) and _answers(host.ipv4):
            yield Finding(NAME, YELLOW, SENTENCE.format(host=host.name), REMEDY)
        return


class Host(NamedTuple):
    """A host, with its IPv6 and its IPv4 addresses."""

    name: str
    ipv6: list[Address]
    ipv4: list[Address]


def _look_up(url: str) -> Host | None:
    """Returns the host of a URL; None if it is this machine or a private IP address."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    if is_near(name):
        return None
    port = parts.port or DEFAULT_PORTS[parts.scheme or "http"]
    host = Host(name, [], [])
    for address in _addresses(name, port):
        family = address[0]
        if family == socket.AF_INET6:
            host.ipv6.append(address)
        elif family == socket.AF_INET:
            host.ipv4.append(address)
    return host


def _addresses(host: str, port: int) -> list[Address]:
    """Returns the host's addresses; [] if its name cannot be resolved in time."""

    def look_up() -> object:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    try:
        return cast(list[Address], run_within(TIMEOUT_S, look_up))
    except (OSError, UnicodeError, FetchError):
        # The finding about this source reports it.
        return []


def _answers(addresses: list[Address]) -> bool:
    """True if an address accepts or refuses a connection.

    A refusal also shows that packets reach the host and come back.
    """
    try:
        connect_first(addresses, TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True
