"""Admits or refuses a request: by its caller, its rate and its size, at the door of its part."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from flask import Response, g, request

from btcpay.web.rate_limits import FAILED_AUTH, VISITS, Bucket, Window
from btcpay.web.service import Service
from btcpay.web.visitors import counted_as

Counted = Iterable[tuple[Bucket, str]]


def door(
    service: Service,
    windows: Callable[[Any], Counted],
    who: Callable[[], Any] = lambda: None,
    upload_bytes: int | None = None,
) -> Callable[[], None]:
    """Makes the function that a part runs before each of its requests.

    It leaves the caller in `g.caller`, and the last window that counted the request in `g.window`.

    `windows`: gives the windows that count a request of this caller, in their order. `who`: finds
    the caller, whose `key_id` and `merchant_id` are logged, or raises an ApiError. `upload_bytes`:
    the bound for a form with a file; other bodies have the usual bound.
    """

    def admit() -> None:
        if upload_bytes and request.mimetype == "multipart/form-data":
            request.max_content_length = upload_bytes
        g.caller = who()
        count(service, windows(g.caller))

    return admit


def of_caller(
    reads: Bucket, writes: Bucket, writing: Collection[str] = ("POST",)
) -> Callable[[Any], Counted]:
    """The caller's own window: that of writes for the methods that are `writing`."""
    return lambda caller: [(writes if request.method in writing else reads, caller.key_id)]


def count(service: Service, windows: Counted) -> None:
    """Counts the request in each. Raises RateLimited when it is one too many."""
    for bucket, key in windows:
        g.window = service.limiter.hit(bucket, key)
        g.window.require_allowed(service.now())


def wrong() -> Counted:
    """The window of an address that presents a wrong key, session or link."""
    return [(FAILED_AUTH, counted_as(request.remote_addr))]


def visitor(service: Service) -> str | None:
    """The key of the visitor's window; None where addresses mean nothing."""
    return counted_as(request.remote_addr) if service.settings.visitor_addresses else None


def visits(service: Service) -> Counted:
    """The window of a visitor of pages, where there is one."""
    if address := visitor(service):
        yield VISITS, address


def show_window(service: Service, response: Response) -> Response:
    """Names the window on an answer to a program; nobody may store such an answer.

    A request that no window counted shows the one of wrong keys.
    """
    window: Window | None = g.get("window")
    if window is None:
        window = service.limiter.look(FAILED_AUTH, counted_as(request.remote_addr))
    shown = {"Limit": window.limit, "Remaining": window.remaining, "Reset": window.reset_s}
    response.headers.extend({f"X-RateLimit-{name}": str(value) for name, value in shown.items()})
    response.headers["Cache-Control"] = "no-store"
    return response
