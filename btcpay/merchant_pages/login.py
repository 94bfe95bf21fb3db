"""Logging in by a link that works once, and out; which browsers are logged in."""

from flask import Response, request

from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit, address
from btcpay.merchants import sessions
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.times import to_ms
from btcpay.web.admission import count, wrong
from btcpay.web.pages.qr import qr_svg

GONE = 410


class Login:
    """The views that give a browser its cookie, or take it back."""

    def __init__(self, area: Area) -> None:
        self._area = area
        self._db = area.service.db

    def show(self, secret: str) -> Response:
        """A button: a link that a messenger or a scanner looks at must still work for a person."""
        return self._page(self._whose(secret))

    def log_in(self, secret: str) -> Response:
        """Uses up the link; a browser that was logged in before gets a new session."""
        self._area.refuse_other_sites()
        if self._whose(secret) is None:  # before the database is asked to write
            return self._page(None)
        service, former = self._area.service, self._area.presented()
        browser = request.headers.get("User-Agent", "")
        opened = sessions.log_in(self._db, secret, former, browser, service.now())
        if opened is None:  # another browser was faster
            return self._page(None)
        response = Response(status=303, headers={"Location": address()})
        self._area.keep(response, opened)
        return response

    def _whose(self, secret: str) -> str | None:
        """The merchant whose pages the link opens; counts a wrong one. Raises RateLimited."""
        merchant = sessions.login_of(self._db, secret, self._area.service.now())
        if merchant is None:
            count(self._area.service, wrong())
        return merchant

    def _page(self, merchant: str | None) -> Response:
        status = GONE if merchant is None else 200
        page = self._area.pages.page("merchant/login.html", status, merchant=merchant)
        # The address holds the secret: what the page loads must not name it in a proxy's log.
        page.headers["Referrer-Policy"] = "strict-origin"
        return page

    def add_device(self, visit: Visit) -> Response:
        """A link that logs in another browser, once, and its QR code."""
        root = self._area.service.settings.base_url
        return self.show_devices(
            visit, sessions.login_url(self._db, root, visit.merchant_id, visit.now)
        )

    def show_devices(self, visit: Visit, link: str | None = None) -> Response:
        """This browser first, then the others, the newest first."""
        devices = [
            {
                "id": row.id,
                "name": sessions.named(row.browser),
                "last_used_at": row.last_used_at,
                "unused_ms": to_ms(visit.now) - row.last_used_at,
                "is_own": row.id == visit.session.id,
            }
            for row in sessions.sessions_of(self._db, visit.merchant_id, visit.now)
        ]
        devices.sort(key=lambda device: not device["is_own"])
        return visit.page("sessions.html", sessions=devices, link=link, qr=link and qr_svg(link))

    def end_one(self, visit: Visit, id: str) -> Response:
        """Ends one of the merchant's sessions; this browser's own is logged out."""
        if id == visit.session.id:
            return self.log_out(visit)
        try:
            sessions.end(self._db, visit.merchant_id, id)
        except CommandError as error:
            raise NotFound(str(error)) from None
        return visit.to("/sessions", done="ended")

    def end_others(self, visit: Visit) -> Response:
        """Ends every session but this browser's, and takes back links that nobody has used."""
        sessions.end_all(self._db, visit.merchant_id, visit.session.id)
        return visit.to("/sessions", done="others_ended")

    def log_out(self, visit: Visit) -> Response:
        sessions.end(self._db, visit.merchant_id, visit.session.id)
        response = self._area.pages.page("merchant/logged_out.html")
        self._area.forget(response)
        return response
