"""Admits or refuses requests before their view runs, by API key, session and rate.

A window counts the requests of one key, such as an API key or a client's address, in a
period. A bucket is a limit with all its windows, one for each key.
"""

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any
from urllib.parse import urlsplit

from flask import Response, g, request
from werkzeug.datastructures import Headers

from btcpay.values.errors import Forbidden, RateLimited
from btcpay.values.hosts import MAX_URL_CHARACTERS, ascii_host
from btcpay.web.rate_limits import FAILED_AUTH, VISITS
from btcpay.web.rate_windows import Bucket, Window
from btcpay.web.service import Service

# The rate-limit windows that count a request. Each is a pair: a bucket and a key in this bucket.
WindowKeys = Iterable[tuple[Bucket, str]]
# An internet provider assigns at least a network of this size to each customer, who can
# use every address in it (RFC 6177).
IPV6_PREFIX = 64
_WITH_PORT = re.compile(
    r"(?P<ipv4>[0-9.]+):[0-9]+|\[(?P<ipv6>[^]]+)\](?::[0-9]+)?",
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# The values of Sec-Fetch-Site (W3C) if a page of this site sends the request, and if a
# person types the address.
_OUR_SITE = ("same-origin", "none")


def guard(
    service: Service,
    windows: Callable[[Any], WindowKeys],
    find_caller: Callable[[], Any] = lambda: None,
    upload_bytes: int | None = None,
) -> Callable[[], None]:
    """Returns a function for Flask's `before_request` that admits or refuses a request.

    The function finds the caller (an API key or a session) and counts the request. It
    stores the caller in `g.caller`, and the last rate-limit window that counted the
    request in `g.window`. It raises RateLimited if a window is full.

    - `windows` returns the windows that count a request of the caller, in order.
    - `find_caller` returns the caller, or None for a page that anybody may visit. It may
      raise an ApiError. A caller has a `key_id` and a `merchant_id`, for the request log.
    - `upload_bytes` is the maximum size of a multipart form. The settings limit all other
      bodies.
    """

    def admit() -> None:
        if upload_bytes and request.mimetype == "multipart/form-data":
            request.max_content_length = upload_bytes
        caller = find_caller()
        g.caller = caller
        count_request(service, windows(caller))

    return admit


def caller_windows(
    reads: Bucket,
    writes: Bucket,
    write_methods: Collection[str] = ("POST",),
) -> Callable[[Any], WindowKeys]:
    """Returns the argument `windows` of `guard` for callers with an API key or a session.

    A request counts in the bucket `writes` if its method is in `write_methods`, else in
    the bucket `reads`.
    """

    def windows(caller: Any) -> WindowKeys:
        if request.method in write_methods:
            return [(writes, caller.key_id)]
        return [(reads, caller.key_id)]

    return windows


def count_request(service: Service, windows: WindowKeys) -> None:
    """Counts the request in each window, and stores the last of them in `g.window`.

    Raises RateLimited at the first window that is full. That window and the windows
    after it do not count the request.
    """
    for bucket, key in windows:
        window = service.limiter.hit(bucket, key)
        g.window = window
        if not window.allowed:
            raise RateLimited(window.retry_after_s(service.now().timestamp()))


def failed_auth_windows() -> WindowKeys:
    """Returns the window that counts failed logins of the client's address.

    These are wrong API keys, wrong sessions and wrong login links.
    """
    return [(FAILED_AUTH, address_key(request.remote_addr))]


def visitor_key(service: Service) -> str | None:
    """Returns the key of the visitor's rate-limit window: the client's IP address.

    Returns None if visitors may share an address (the setting `visitor_addresses` is
    off). Then visitors have no window.
    """
    if service.settings.visitor_addresses:
        return address_key(request.remote_addr)
    return None


def visit_windows(service: Service) -> WindowKeys:
    """Yields the rate-limit window of the visitor, if visitors have windows.

    `visitor_key` says when they have none.
    """
    key = visitor_key(service)
    if key:
        yield VISITS, key


def add_window_headers(service: Service, response: Response) -> Response:
    """Adds the X-RateLimit headers of the request's window, and forbids caching.

    If no window counted the request, the headers show the window that counts failed
    logins of the client's address.
    """
    window: Window | None = g.get("window")  # of `count_request`
    if window is None:
        window = service.limiter.peek(FAILED_AUTH, address_key(request.remote_addr))
    headers = response.headers
    headers.add("X-RateLimit-Limit", window.limit)
    headers.add("X-RateLimit-Remaining", window.remaining)
    headers.add("X-RateLimit-Reset", window.reset_s)
    headers.add("Cache-Control", "no-store")
    return response


def address_key(address: str | None) -> str:
    """Returns the rate-limit key of a client's IP address.

    The key is the address without its port, which some proxies append. For IPv6 it is
    the /64 network of the address, or the IPv4 address in an address such as
    ::ffff:192.0.2.1. A text that is no IP address is its own key. If the text is empty
    or None, the key is `unknown`.
    """
    if not address:
        return "unknown"
    try:
        ip = ipaddress.ip_address(_without_port(address))
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(ip), IPV6_PREFIX), strict=False))


def _without_port(address: str) -> str:
    match = _WITH_PORT.fullmatch(address)
    if match is None:
        return address
    return match["ipv4"] or match["ipv6"]


def is_from_another_site(headers: Headers, base_url: str) -> bool:
    """True if the browser says that a page of another origin sent the request.

    If the header Sec-Fetch-Site is present, only this header decides: the browser
    computes it, so it does not depend on the host name in `base_url`. Otherwise a
    header `Origin` that differs from the origin of `base_url` means another origin. If
    another site sends a form, every current browser adds one of these two headers.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in _OUR_SITE
    origin = headers.get("Origin")
    return origin is not None and _origin(origin) != _origin(base_url)


def refuse_other_sites(service: Service) -> None:
    """Raises Forbidden if a page of another site sent the request."""
    if is_from_another_site(request.headers, service.settings.base_url):
        raise Forbidden("another site sent this form")


def _origin(text: str) -> tuple[str, str, int | None] | None:
    """Returns scheme, host and port of a URL; None if it has no valid host or port."""
    if len(text) > MAX_URL_CHARACTERS:
        return None
    try:
        url = urlsplit(text)
        host = ascii_host(url.hostname or "")
        port = url.port or _DEFAULT_PORTS.get(url.scheme)
    except ValueError:
        return None
    return url.scheme, host, port
