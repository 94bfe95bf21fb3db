"""Examines whether this machine reaches its explorers and price sources over IPv6."""

import socket
from collections.abc import Iterator
from typing import cast
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
    IPv6 addresses. Yields nothing if no host has both, or if a proxy is set, since the
    proxy chooses the address.
    """
    settings = shop.settings
    if settings.proxy:
        return
    urls = [*settings.explorers, *(source.url for source in settings.price_sources)]
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if is_near(host):
            continue
        port = parts.port or DEFAULT_PORTS[parts.scheme or "http"]
        addresses = _addresses(host, port)
        ipv6_addresses = _of_family(addresses, socket.AF_INET6)
        ipv4_addresses = _of_family(addresses, socket.AF_INET)
        if ipv6_addresses and ipv4_addresses:
            if not _answers(ipv6_addresses) and _answers(ipv4_addresses):
                yield Finding(NAME, YELLOW, SENTENCE.format(host=host), REMEDY)
            return


def _of_family(addresses: list[Address], family: int) -> list[Address]:
    """Returns the addresses of this family, IPv4 or IPv6."""
    return [address for address in addresses if address[0] == family]


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
