"""How a request gets into the merchant's pages: session, rate limit, token; and its cookie."""

from collections.abc import Callable

from flask import Blueprint, Response, g, request

from btcpay.merchant_pages.visit import ROOT, Visit
from btcpay.merchants.keys import Caller
from btcpay.merchants.sessions import LIFE, session_of
from btcpay.values.errors import Forbidden, Unauthorized
from btcpay.web import rate_limits
from btcpay.web.application import add_path
from btcpay.web.pages.render import Pages
from btcpay.web.rate_limits_memory import Bucket
from btcpay.web.service import Service
from btcpay.web.visitors import counted_as, is_from_another_site
from storage.queries import sessions

View = Callable[..., Response]


def _kept_apart(response: Response) -> Response:
    """No page of a neighbouring host (`shop.example.com`) embeds a file or holds a window."""
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return response


class Area:
    """The blueprint, and who may see its pages."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pages = Pages(service, (), "merchant/message.html", "merchant.css")
        self.blueprint = Blueprint("merchant", __name__, template_folder="templates")
        self.blueprint.register_error_handler(Exception, self.pages.failed)
        self.blueprint.after_request(self.pages.guard)
        self.blueprint.after_request(_kept_apart)
        self._is_https = service.settings.base_url.startswith("https://")
        # Browsers take a __Host- cookie only where it is Secure: over HTTPS.
        self.cookie = "__Host-merchant" if self._is_https else "merchant"

    def get(self, path: str, view: View, root: str = ROOT) -> None:
        """Serves a page below /merchant to whoever is logged in: `view(visit, **path values)`."""

        def answered(**values: str) -> Response:
            visit = self._reader()
            response = view(visit, **values)
            self.keep(response, visit.secret)
            return response

        self.open("GET", path, answered, root)

    def post(self, path: str, view: View, root: str = ROOT) -> None:
        """Takes a form below /merchant: of this session and this site, within the rate limit."""
        self.open("POST", path, lambda **values: view(self._writer(), **values), root)

    def open(self, method: str, path: str, view: View, root: str = ROOT) -> None:
        """Serves a page to whoever asks."""
        add_path(self.blueprint, root + path, view, f"{method} {root}{path}", method)

    def presented(self) -> str:
        """The secret of the cookie, "" without one."""
        return request.cookies.get(self.cookie, "")

    def count_stranger(self, presents: str) -> None:
        """Counts a visitor; a wrong secret counts as a wrong key. Raises RateLimited."""
        if presents:
            self._count(rate_limits.FAILED_AUTH, counted_as(request.remote_addr))
        elif visitor := self.pages.visitor():
            self._count(rate_limits.VISITS, visitor)

    def _count(self, bucket: Bucket, key: str) -> None:
        self.service.limiter.hit(bucket, key).require_allowed(self.service.now())

    def _reader(self, counted: Bucket = rate_limits.READS) -> Visit:
        service, secret, now = self.service, self.presented(), self.service.now()
        session = session_of(service.db, secret, now) if secret else None
        if session is None:
            self.count_stranger(secret)
            raise Unauthorized("log in with a new link")
        g.caller = Caller(session.id, session.merchant_id, True)  # a session stands for a key
        self._count(counted, session.id)
        service.notes.note(sessions.USED, session.id, now)
        return Visit(service, self.pages, session, secret, now)

    def _writer(self) -> Visit:
        self.refuse_other_sites()
        visit = self._reader(rate_limits.WRITES)
        if not visit.is_own_form():
            raise Forbidden("this form is not of this session")
        return visit

    def refuse_other_sites(self) -> None:
        """Raises Forbidden when a browser says that another site's page sent this."""
        if is_from_another_site(request.headers, self.service.settings.base_url):
            raise Forbidden("another site sent this form")

    def keep(self, response: Response, secret: str) -> None:
        """Sends the cookie of a session; it lives on with each page that is looked at."""
        self._set(response, secret, LIFE.days * 86_400)

    def forget(self, response: Response) -> None:
        """Takes the cookie back, and what the browser has kept of the pages."""
        self._set(response, "", 0)
        response.headers["Clear-Site-Data"] = '"cache"'

    def _set(self, response: Response, secret: str, max_age_s: int) -> None:
        response.set_cookie(
            self.cookie,
            secret,
            max_age=max_age_s,
            path="/",
            secure=self._is_https,
            httponly=True,
            samesite="Strict",
        )
