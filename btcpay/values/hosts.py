"""Hosts judged by their text alone: no name is looked up."""

import ipaddress
import re
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

MAX_URL_CHARACTERS = 2000  # behind the scheme; every browser takes as many
# A name whose last part begins with a digit is a number to browsers and resolvers: 127.1.
_NAME = re.compile(r"([a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}|localhost")


def web_parts(url: str) -> SplitResult:
    """The parts of an http or https address of printable ASCII. Raises ValueError.

    Its host is a name with a dot, localhost, or an IP address in its canonical spelling: browsers,
    resolvers and the policies of pages read each other text in their own ways.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_plain = re.fullmatch(rf"https?://[!-[\]-~]{{1,{MAX_URL_CHARACTERS}}}", url)
    if not is_plain or parts.port == 0 or not (_NAME.fullmatch(host) or _is_ip(host)):
        raise ValueError
    return parts


def _is_ip(host: str) -> bool:
    with suppress(ValueError):
        return str(ipaddress.ip_address(host)) == host and "%" not in host
    return False


def is_here(host: str | None) -> bool:
    """True for this machine: a loopback address, or a localhost name (RFC 6761)."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return f".{host}".endswith(".localhost")


def host_and_port(place: str) -> tuple[str, int]:
    """The parts of host:port or [IPv6 address]:port. Raises ValueError."""
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)


def is_near(host: str | None) -> bool:
    """True for this machine, or an address of its own network such as 192.168.1.5."""
    try:
        return not ipaddress.ip_address(host or "").is_global
    except ValueError:
        return is_here(host)
