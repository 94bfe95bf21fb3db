"""The way in: a link that logs in once."""

from flask import Response, request

from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import address
from btcpay.merchants import sessions as merchant_sessions

GONE = 410


class WayIn:
    """The views that need no session."""

    def __init__(self, area: Area) -> None:
        self._area = area
        self._db = area.service.db
        area.open("GET", "/login/<secret>", self.show_login)
        area.open("POST", "/login/<secret>", self.log_in)

    def show_login(self, secret: str) -> Response:
        """A button: a link that a messenger or a scanner looks at must still work for a person."""
        return self._page(self._whose(secret))

    def log_in(self, secret: str) -> Response:
        """Uses up the link; a browser that was logged in before gets a new session."""
        self._area.refuse_other_sites()
        if self._whose(secret) is None:  # before the database is asked to write
            return self._page(None)
        service, former = self._area.service, self._area.presented()
        browser = request.headers.get("User-Agent", "")
        opened = merchant_sessions.log_in(self._db, secret, former, browser, service.now())
        if opened is None:  # another browser was faster
            return self._page(None)
        response = Response(status=303)
        response.headers["Location"] = address()
        self._area.keep(response, opened)
        return response

    def _whose(self, secret: str) -> str | None:
        """The merchant whose pages the link opens; counts a wrong one. Raises RateLimited."""
        self._area.count_stranger("")
        merchant = merchant_sessions.login_of(self._db, secret, self._area.service.now())
        if merchant is None:
            self._area.count_stranger(secret)
        return merchant

    def _page(self, merchant: str | None) -> Response:
        status = GONE if merchant is None else 200
        page = self._area.pages.page("merchant/login.html", status, merchant=merchant)
        # The address holds the secret: what the page loads must not name it in a proxy's log.
        page.headers["Referrer-Policy"] = "strict-origin"
        return page
