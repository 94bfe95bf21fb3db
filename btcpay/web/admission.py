"""Admits or refuses a request by its caller, its rate and its size, before its view runs."""

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

# The windows that count a request: each is a bucket and a key in it.
WindowKeys = Iterable[tuple[Bucket, str]]
# A provider gives each customer at least this much, to use any address in it (RFC 6177).
IPV6_PREFIX = 64
_WITH_PORT = re.compile(r"([0-9.]+):[0-9]+|\[([^]]+)\](?::[0-9]+)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Sec-Fetch-Site (W3C) if one of our pages sends, and if a person types the address.
_OUR_SITE = ("same-origin", "none")


def guard(
    service: Service,
    windows: Callable[[Any], WindowKeys],
    find_caller: Callable[[], Any] = lambda: None,
    upload_bytes: int | None = None,
) -> Callable[[], None]:
    """The function that a blueprint runs before each of its requests.

    It leaves the caller in `g.caller`, and the last window that counted the request in `g.window`.

    `windows`: gives the windows that count a request of this caller, in order. `find_caller`: its
    result's `key_id` and `merchant_id` are logged; it may raise an ApiError. `upload_bytes`: the
    limit of a form with a file; other bodies have the usual limit.
    """

    def admit() -> None:
        if upload_bytes and request.mimetype == "multipart/form-data":
            request.max_content_length = upload_bytes
        caller = find_caller()
        g.caller = caller
        count_request(service, windows(caller))

    return admit


def caller_windows(
    reads: Bucket, writes: Bucket, write_methods: Collection[str] = ("POST",)
) -> Callable[[Any], WindowKeys]:
    """Gives the caller's own window: in `writes` for `write_methods`, else in `reads`."""

    def windows(caller: Any) -> WindowKeys:
        if request.method in write_methods:
            return [(writes, caller.key_id)]
        return [(reads, caller.key_id)]

    return windows


def count_request(service: Service, windows: WindowKeys) -> None:
    """Counts the request in each window. Raises RateLimited if it is one too many."""
    for bucket, key in windows:
        window = service.limiter.hit(bucket, key)
        g.window = window
        if not window.allowed:
            raise RateLimited(window.retry_after_s(service.now().timestamp()))


def failed_auth_windows() -> WindowKeys:
    """The window of an address that presents a wrong key, session or link."""
    return [(FAILED_AUTH, address_key(request.remote_addr))]


def visitor_key(service: Service) -> str | None:
    """The key of the visitor's window; None if addresses do not tell visitors apart."""
    if service.settings.visitor_addresses:
        return address_key(request.remote_addr)
    return None


def visit_windows(service: Service) -> WindowKeys:
    """The window of a visitor of pages; none if addresses do not tell visitors apart."""
    key = visitor_key(service)
    if key:
        yield VISITS, key


def add_window_headers(service: Service, response: Response) -> Response:
    """Tells a program its window, and forbids everybody to store the answer.

    The window is that of failed logins if no other counted the request.
    """
    window: Window | None = g.get("window")
    if window is None:
        window = service.limiter.peek(FAILED_AUTH, address_key(request.remote_addr))
    headers = response.headers
    headers.add("X-RateLimit-Limit", window.limit)
    headers.add("X-RateLimit-Remaining", window.remaining)
    headers.add("X-RateLimit-Reset", window.reset_s)
    headers.add("Cache-Control", "no-store")
    return response


def address_key(address: str | None) -> str:
    """The key of this address's window: the network of an IPv6 address.

    Some proxies add the port, which is left out. Any text that is no address is its own key.
    """
    text = address or ""
    with_port = _WITH_PORT.fullmatch(text)
    if with_port:
        text = with_port[1] or with_port[2]
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return address or "unknown"
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), IPV6_PREFIX), strict=False))


def is_from_another_site(headers: Headers, base_url: str) -> bool:
    """True if a browser says that a page of another origin sent this.

    Sec-Fetch-Site is what the browser itself says, under whatever name it reached us. Without it
    `Origin` must be the origin of the base URL. Every current browser sends one of the two for a
    form of another site.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in _OUR_SITE
    origin = headers.get("Origin")
    return origin is not None and _origin(origin) != _origin(base_url)


def refuse_other_sites(service: Service) -> None:
    """Raises Forbidden if a browser says that another site's page sent this."""
    if is_from_another_site(request.headers, service.settings.base_url):
        raise Forbidden("another site sent this form")


def _origin(text: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port; None if the text is no origin, such as `null`."""
    if len(text) > MAX_URL_CHARACTERS:
        return None
    try:
        url = urlsplit(text)
        host = ascii_host(url.hostname or "")
        port = url.port or _DEFAULT_PORTS.get(url.scheme)
    except ValueError:
        return None
    return url.scheme, host, port
