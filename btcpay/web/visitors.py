"""The visitor of a request: the address to count, and the site that sent a form."""

import ipaddress
import re
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

# A provider gives each customer at least this much, to use any address in it (RFC 6177).
IPV6_PREFIX = 64
_WITH_PORT = re.compile(r"([0-9.]+):[0-9]+|\[([^]]+)\](?::[0-9]+)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Sec-Fetch-Site (W3C) when one of our pages sends, and when a person types the address.
_OURS = ("same-origin", "none")


def counted_as(address: str | None) -> str:
    """The key of the window of this address: for IPv6 its network.

    Some proxies add the port. A text that is no address stands for itself.
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
    """True where a browser says that a page of another origin sent this.

    Sec-Fetch-Site is the browser's own word, under whatever name it knows us. Without it `Origin`
    must be the base URL's. Without either it is no browser of today, or no page misleads it.
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
