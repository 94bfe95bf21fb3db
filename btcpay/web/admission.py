"""One way lets a request in: who asks, how often, with how much. Each part has its own door."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from flask import Response, g, request

from btcpay.web.rate_limits import FAILED_AUTH, VISITS, Bucket, Window
from btcpay.web.service import Service
from btcpay.web.visitors import counted_as

Counted = Iterable[tuple[Bucket, str]]


class Caller(Protocol):
    """On whose behalf a request comes: a key's, or a session's, which stands for one."""

    @property
    def key_id(self) -> str: ...
    @property
    def merchant_id(self) -> int: ...


@dataclass(frozen=True)
class Door:
    """How a part lets requests in.

    `who`: finds the caller; raises Unauthorized, Forbidden or RateLimited. None: everybody may ask.
    `windows`: those in which a request of this caller counts, one after the other.
    `upload_bytes`: the most that a form with a file may have; other bodies have the usual bound.
    """

    service: Service
    who: Callable[[], Caller] | None
    windows: Callable[[Any], Counted]
    upload_bytes: int | None = None

    def admit(self) -> None:
        """Puts the caller, and the window that counted it last, into `g`."""
        if self.upload_bytes and request.mimetype == "multipart/form-data":
            request.max_content_length = self.upload_bytes
        g.caller = self.who and self.who()
        count(self.service, self.windows(g.caller))


def of_caller(
    reads: Bucket, writes: Bucket, writing: Collection[str] = ("POST",)
) -> Callable[[Caller], Counted]:
    """The caller's own window, of reads or of writes: what methods are `writing`."""
    return lambda caller: [(writes if request.method in writing else reads, caller.key_id)]


def count(service: Service, windows: Counted) -> None:
    """Counts the request in each. Raises RateLimited when it is one too many."""
    for bucket, key in windows:
        g.window = service.limiter.hit(bucket, key)
        g.window.require_allowed(service.now())


def wrong() -> Counted:
    """A wrong key, session or link counts against the address that presents it."""
    return [(FAILED_AUTH, counted_as(request.remote_addr))]


def visitor(service: Service) -> str | None:
    """In whose window a visit counts; None where addresses mean nothing."""
    return counted_as(request.remote_addr) if service.settings.visitor_addresses else None


def visits(service: Service) -> Counted:
    """The window of a visitor of pages, where there is one."""
    if address := visitor(service):
        yield VISITS, address


def show_window(service: Service, response: Response) -> Response:
    """Names the window on an answer of an interface for programs, which nobody may store.

    A request that no window counted shows the one of wrong keys.
    """
    window: Window | None = g.get("window")
    if window is None:
        window = service.limiter.look(FAILED_AUTH, counted_as(request.remote_addr))
    response.headers["X-RateLimit-Limit"] = str(window.limit)
    response.headers["X-RateLimit-Remaining"] = str(window.remaining)
    response.headers["X-RateLimit-Reset"] = str(window.reset_s)
    response.headers["Cache-Control"] = "no-store"
    return response
