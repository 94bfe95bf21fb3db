"""Admits or refuses a request by its caller, its rate and its size, before its part sees it."""

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any
from urllib.parse import urlsplit

from flask import Response, g, request
from werkzeug.datastructures import Headers

from btcpay.values.errors import Forbidden, RateLimited
from btcpay.values.hosts import MAX_URL_CHARACTERS, ascii_host
from btcpay.web.rate_limits import FAILED_AUTH, VISITS, Bucket, Window
from btcpay.web.service import Service

WindowKeys = Iterable[tuple[Bucket, str]]
# A provider gives each customer at least this much, to use any address in it (RFC 6177).
IPV6_PREFIX = 64
_WITH_PORT = re.compile(r"([0-9.]+):[0-9]+|\[([^]]+)\](?::[0-9]+)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Sec-Fetch-Site (W3C) when one of our pages sends, and when a person types the address.
_OURS = ("same-origin", "none")


def guard(
    service: Service,
    windows: Callable[[Any], WindowKeys],
    who: Callable[[], Any] = lambda: None,
    upload_bytes: int | None = None,
) -> Callable[[], None]:
    """Makes the function that a part runs before each of its requests.

    It leaves the caller in `g.caller`, and the last window that counted the request in `g.window`.

    `windows` gives the windows that count a request of this caller, in order. `who`: finds
    the caller, whose `key_id` and `merchant_id` are logged, or raises an ApiError. `upload_bytes`:
    the bound for a form with a file; other bodies have the usual bound.
    """

    def admit() -> None:
        if upload_bytes and request.mimetype == "multipart/form-data":
            request.max_content_length = upload_bytes
        g.caller = caller = who()
        count_request(service, windows(caller))

    return admit


def caller_windows(
    reads: Bucket, writes: Bucket, writing: Collection[str] = ("POST",)
) -> Callable[[Any], WindowKeys]:
    """The caller's own window: that of writes for the methods that are `writing`."""
    return lambda caller: [
        (writes if request.method in writing else reads, caller.key_id)
    ]


def count_request(service: Service, windows: WindowKeys) -> None:
    """Counts the request in each window. Raises RateLimited when it is one too many."""
    for bucket, key in windows:
        g.window = window = service.limiter.hit(bucket, key)
        if not window.allowed:
            raise RateLimited(window.retry_after_s(service.now().timestamp()))


def failed_auth_windows() -> WindowKeys:
    """The window of an address that presents a wrong key, session or link."""
    return [(FAILED_AUTH, address_key(request.remote_addr))]


def visitor_key(service: Service) -> str | None:
    """The key of the visitor's window; None where an address tells no visitors apart."""
    if service.settings.visitor_addresses:
        return address_key(request.remote_addr)
    return None


def visit_windows(service: Service) -> WindowKeys:
    """The window of a visitor of pages, where there is one."""
    if address := visitor_key(service):
        yield VISITS, address


def add_window_headers(service: Service, response: Response) -> Response:
    """Names the window on an answer to a program; nobody may store such an answer.

    A request that no window counted shows the one of wrong keys.
    """
    window: Window | None = g.get("window")
    if window is None:
        window = service.limiter.look(FAILED_AUTH, address_key(request.remote_addr))
    headers = response.headers
    headers.add("X-RateLimit-Limit", window.limit)
    headers.add("X-RateLimit-Remaining", window.remaining)
    headers.add("X-RateLimit-Reset", window.reset_s)
    headers.add("Cache-Control", "no-store")
    return response


def address_key(address: str | None) -> str:
    """The key of the window of this address: for IPv6 its network.

    Some proxies add the port. Any other text stands for itself.
    """
    with_port = _WITH_PORT.fullmatch(address or "")
    try:
        ip = ipaddress.ip_address(
            with_port[1] or with_port[2] if with_port else address or ""
        )
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
    must be the base URL's. If both are missing, no current browser was led here by a page.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in _OURS
    origin = headers.get("Origin")
    return origin is not None and _origin(origin) != _origin(base_url)


def refuse_other_sites(service: Service) -> None:
    """Raises Forbidden when a browser says that another site's page sent this."""
    if is_from_another_site(request.headers, service.settings.base_url):
        raise Forbidden("another site sent this form")


def _origin(text: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port; None when the text is no origin, `null` included."""
    if len(text) > MAX_URL_CHARACTERS:
        return None
    try:
        url = urlsplit(text)
        host = ascii_host(url.hostname or "")
        port = url.port or _DEFAULT_PORTS.get(url.scheme)
    except ValueError:
        return None
    return url.scheme, host, port
