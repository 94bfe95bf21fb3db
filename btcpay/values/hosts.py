"""Hosts judged by their text alone: no name is looked up."""

import ipaddress


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
