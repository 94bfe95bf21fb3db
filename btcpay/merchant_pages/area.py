"""The way into the merchant's pages, and out: session, rate limit, form token, cookie."""

from collections.abc import Callable
from contextlib import suppress

from flask import Blueprint, Response, g, request

from btcpay.merchant_pages.visit import MAX_UPLOAD_BYTES, ROOT, Visit, address
from btcpay.merchants import sessions
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError, Forbidden, NotFound, Unauthorized
from btcpay.values.ids import sha256_of
from btcpay.values.times import to_ms
from btcpay.web.admission import count, door, is_from_another_site, of_caller, visits, wrong
from btcpay.web.pages.qr import qr_svg
from btcpay.web.pages.render import Pages
from btcpay.web.paths import add_path, refuse_others
from btcpay.web.rate_limits import READS, WRITES
from btcpay.web.service import Service
from storage.queries import sessions as stored
from storage.queries.deliveries import ASK_LOGIN

GONE = 410
TILL = f"{ROOT}/till"  # what is served at this path, and below it, a till-only session may use
View = Callable[..., Response]


def _kept_apart(response: Response) -> Response:
    """No page of a neighbouring host (`shop.example.com`) may embed a file or hold a window."""
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return response


def _keep_to_till() -> None:
    """Raises Forbidden when a till-only session asks for anything but the till and its sales."""
    rule = str(request.url_rule)
    if g.caller.till_only and rule != TILL and not rule.startswith(f"{TILL}/"):
        raise Forbidden("this device opens the till alone")


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
        self._inside.before_request(_keep_to_till)
        self._paths = {self._open: set[str](), self._inside: {f"{ROOT}/<rest:rest>"}}
        self.blueprint.register_blueprint(self._open)
        self.blueprint.register_blueprint(self._inside)
        self._is_https = service.settings.base_url.startswith("https://")
        # Browsers take a __Host- cookie only where it is Secure: over HTTPS.
        self.cookie = "__Host-merchant" if self._is_https else "merchant"

    def whole(self) -> Blueprint:
        """The blueprint; every other request to its paths, and to any below ROOT, gets a page."""
        for part, paths in self._paths.items():
            refuse_others(part, *paths)
        return self.blueprint

    def open(self, method: str, path: str, view: View) -> None:
        """Serves a page to anybody; its path need not lie below /merchant."""
        add_path(self._open, path, view, f"{method} {path}", method)
        self._paths[self._open].add(path)

    def get(self, path: str, view: View) -> None:
        """Serves a page below /merchant to a logged-in merchant: `view(visit, **path values)`."""
        self.add("GET", ROOT + path, view)

    def post(self, path: str, view: View) -> None:
        """Takes a form below /merchant: of this session and this site, within the rate limit."""
        self.add("POST", ROOT + path, view)

    def add(self, method: str, path: str, view: View) -> None:
        def answered(**values: str) -> Response:
            visit = Visit(self.service, self.pages, g.caller, self.presented(), self.service.now())
            if method == "POST" and not visit.is_own_form():
                raise Forbidden("this form is not of this session")
            response = view(visit, **values)
            if method == "GET":
                self.keep(response, visit.secret)
            return response

        add_path(self._inside, path, answered, f"{method} {path}", method)
        self._paths[self._inside].add(path)

    def presented(self) -> str:
        """The secret of the cookie, "" without one."""
        return request.cookies.get(self.cookie, "")

    def _session(self) -> stored.Session:
        """The session of the browser; a form must come from this site. Raises Unauthorized."""
        if request.method == "POST":
            self.refuse_other_sites()
        service, secret, now = self.service, self.presented(), self.service.now()
        if session := sessions.session_of(service.db, secret, now) if secret else None:
            service.notes.note(stored.USED, session.id, now)
            return session
        count(service, wrong() if secret else visits(service))
        raise Unauthorized("log in with a new link")

    def refuse_other_sites(self) -> None:
        """Raises Forbidden when a browser says that another site's page sent this."""
        if is_from_another_site(request.headers, self.service.settings.base_url):
            raise Forbidden("another site sent this form")

    def keep(self, response: Response, secret: str) -> None:
        """Sends the session's cookie, whose life begins again with each page."""
        self._set(response, secret, sessions.LIFE.days * 86_400)

    def forget(self, response: Response) -> None:
        """Takes back the cookie, and has the browser drop the pages that it has kept."""
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

    def show_login(self, secret: str) -> Response:
        """Shows a button: a link that a scanner has opened must still work for a person."""
        return self._login_page(self._whose(secret))

    def log_in(self, secret: str) -> Response:
        """Uses up the link; a browser that was logged in before gets a new session."""
        self.refuse_other_sites()
        if (login := self._whose(secret)) is None:  # before the database is asked to write
            return self._login_page(None)
        service, former = self.service, self.presented()
        browser = request.headers.get("User-Agent", "")
        opened = sessions.log_in(self.service.db, secret, former, browser, service.now())
        if opened is None:  # another browser was faster
            return self._login_page(None)
        leads_to = address("/till" if login.till_only else "")
        response = Response(status=303, headers={"Location": leads_to})
        self.keep(response, opened)
        return response

    def mail_link(self) -> Response:
        """Has a link mailed to the merchant of this address; any address gets the same answer.

        It does not wait for the database, so that its speed does not reveal who has a shop here.
        """
        self.refuse_other_sites()
        with suppress(ValueError):
            address = checked_address(request.form.get("address", "").strip()).lower()
            self.service.notes.note(ASK_LOGIN, address, self.service.now())
        return self.pages.page("merchant/link_mailed.html")

    def _whose(self, secret: str) -> stored.Login | None:
        """The login that a link offers, not used up; a wrong one is counted. Raises RateLimited."""
        now_ms = to_ms(self.service.now())
        login = self.service.db.row(stored.LOGIN, secret_sha256=sha256_of(secret), now=now_ms)
        if login is None:
            count(self.service, wrong())
        return login

    def _login_page(self, login: stored.Login | None) -> Response:
        status = GONE if login is None else 200
        page = self.pages.page("merchant/login.html", status, login=login)
        # The address holds the secret: the page's requests must not leave it in a proxy's log.
        page.headers["Referrer-Policy"] = "strict-origin"
        return page

    def add_device(self, visit: Visit) -> Response:
        """A link that logs in another browser, once, and its QR code; to the till unless said."""
        db, root = self.service.db, self.service.settings.base_url
        till_only = visit.form.get("opens") != "everything"
        link = sessions.login_url(db, root, visit.merchant_id, visit.now, till_only)
        return self.show_devices(visit, link, till_only)

    def show_devices(
        self, visit: Visit, link: str | None = None, till_only: bool = False
    ) -> Response:
        """This browser first, then the others, the newest first."""
        devices = [
            {
                "id": row.id,
                "name": sessions.named(row.browser),
                "last_used_at": row.last_used_at,
                "unused_ms": to_ms(visit.now) - row.last_used_at,
                "is_own": row.id == visit.session.id,
                "till_only": row.till_only,
            }
            for row in sessions.sessions_of(self.service.db, visit.merchant_id, visit.now)
        ]
        devices.sort(key=lambda device: not device["is_own"])
        return visit.page(
            "sessions.html",
            sessions=devices,
            link=link,
            qr=link and qr_svg(link),
            link_is_of_till=till_only,
        )

    def end_one(self, visit: Visit, id: str) -> Response:
        """Ends one of the merchant's sessions; this browser's own is logged out."""
        if id == visit.session.id:
            return self.log_out(visit)
        try:
            sessions.end(self.service.db, visit.merchant_id, id)
        except CommandError as error:
            raise NotFound(str(error)) from None
        return visit.to("/sessions", done="ended")

    def log_out(self, visit: Visit) -> Response:
        """Ends this browser's own session."""
        with suppress(CommandError):  # somebody else has just ended it
            sessions.end(self.service.db, visit.merchant_id, visit.session.id)
        response = self.pages.page("merchant/logged_out.html")
        self.forget(response)
        return response

    def end_others(self, visit: Visit) -> Response:
        """Ends every session but this browser's, and takes back links that nobody has used."""
        sessions.end_all(self.service.db, visit.merchant_id, visit.session.id)
        return visit.to("/sessions", done="others_ended")
