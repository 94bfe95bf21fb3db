"""Hosts judged by their text alone: no name is looked up."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

MAX_URL_CHARACTERS = 2000  # characters behind the scheme; every browser takes as many
# A name whose last part begins with a digit is a number to browsers and resolvers: 127.1.
_NAME = re.compile(r"([a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]{0,62}|localhost")


def web_parts(url: str) -> SplitResult:
    """The parts of an http or https address of printable ASCII. Raises ValueError.

    Its host is a name with a dot, localhost, or an IP address in its canonical spelling: browsers,
    resolvers and content policies each read other spellings in their own way.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if "[" in parts.netloc and ":" not in host:  # urlsplit lets versions of IP pass that nobody has
        raise ValueError
    is_plain = re.fullmatch(rf"https?://[!-[\]-~]{{1,{MAX_URL_CHARACTERS}}}", url)
    is_one = _NAME.fullmatch(host) or str(ipaddress.ip_address(host)) == host.partition("%")[0]
    if not is_plain or not is_one or parts.port == 0:
        raise ValueError
    return parts


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
