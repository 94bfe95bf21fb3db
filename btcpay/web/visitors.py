"""Who asks: the address that a visitor is counted by, and the site that a form was sent from."""

import ipaddress
import re
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

# What one customer of a provider has at least, and changes within at will (RFC 6177).
IPV6_PREFIX = 64
_WITH_PORT = re.compile(r"([0-9.]+):[0-9]+|\[([^]]+)\](?::[0-9]+)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Sec-Fetch-Site (W3C) of what a page of ours sends, and of what a person does by hand.
_OURS = ("same-origin", "none")


def counted_as(address: str | None) -> str:
    """Whose window a request from this address counts in: IPv6 addresses by their network.

    Some proxies hand on the port as well. A text that is no address stands for itself.
    """
    with_port = _WITH_PORT.fullmatch(address or "")
    try:
        ip = ipaddress.ip_address(with_port[1] or with_port[2] if with_port else address or "")
    except ValueError:
        return address or "unknown"
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), IPV6_PREFIX), strict=False))


def is_from_another_site(headers: Headers, base_url: str) -> bool:
    """Whether a browser says that a page of another origin sent this.

    Sec-Fetch-Site is the browser's own word, whatever name it knows us by; without it `Origin` must
    be the base URL's. Whoever sends neither is no browser of today, or has no page to be misled by.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in _OURS
    origin = headers.get("Origin")
    return origin is not None and _origin(origin) != _origin(base_url)


def _origin(text: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port; None when the text is no origin, `null` included."""
    try:
        url = urlsplit(text)
        host, port = (url.hostname or "").encode("idna").decode(), url.port
    except ValueError:
        return None
    return (url.scheme, host, port or _DEFAULT_PORTS.get(url.scheme)) if host else None
