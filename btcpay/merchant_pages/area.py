"""The way into the merchant's pages: session, rate limit, form token; and the cookie."""

from collections.abc import Callable

from flask import Blueprint, Response, g, request

from btcpay.merchant_pages.visit import MAX_UPLOAD_BYTES, ROOT, Visit
from btcpay.merchants.sessions import LIFE, session_of
from btcpay.values.errors import Forbidden, Unauthorized
from btcpay.web.admission import count, door, is_from_another_site, of_caller, visits, wrong
from btcpay.web.pages.render import Pages
from btcpay.web.paths import add_path
from btcpay.web.rate_limits import READS, WRITES
from btcpay.web.service import Service
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
        self._open = Blueprint("open", __name__)
        self._open.before_request(door(service, lambda _: visits(service)))
        self._inside = Blueprint("inside", __name__)
        windows = of_caller(READS, WRITES)
        self._inside.before_request(door(service, windows, self._session, MAX_UPLOAD_BYTES))
        self.blueprint.register_blueprint(self._open)
        self.blueprint.register_blueprint(self._inside)
        self._is_https = service.settings.base_url.startswith("https://")
        # Browsers take a __Host- cookie only where it is Secure: over HTTPS.
        self.cookie = "__Host-merchant" if self._is_https else "merchant"

    def open(self, method: str, path: str, view: View) -> None:
        """Serves a page to whoever asks."""
        add_path(self._open, ROOT + path, view, f"{method} {ROOT}{path}", method)

    def get(self, path: str, view: View, root: str = ROOT) -> None:
        """Serves a page below /merchant to whoever is logged in: `view(visit, **path values)`."""
        self._add("GET", root + path, view)

    def post(self, path: str, view: View, root: str = ROOT) -> None:
        """Takes a form below /merchant: of this session and this site, within the rate limit."""
        self._add("POST", root + path, view)

    def _add(self, method: str, path: str, view: View) -> None:
        def answered(**values: str) -> Response:
            visit = Visit(self.service, self.pages, g.caller, self.presented(), self.service.now())
            if method == "POST" and not visit.is_own_form():
                raise Forbidden("this form is not of this session")
            response = view(visit, **values)
            if method == "GET":
                self.keep(response, visit.secret)
            return response

        add_path(self._inside, path, answered, f"{method} {path}", method)

    def presented(self) -> str:
        """The secret of the cookie, "" without one."""
        return request.cookies.get(self.cookie, "")

    def _session(self) -> sessions.Session:
        """The session of the browser; a form must come from this site. Raises Unauthorized."""
        if request.method == "POST":
            self.refuse_other_sites()
        service, secret, now = self.service, self.presented(), self.service.now()
        if session := session_of(service.db, secret, now) if secret else None:
            service.notes.note(sessions.USED, session.id, now)
            return session
        count(service, wrong() if secret else visits(service))
        raise Unauthorized("log in with a new link")

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
