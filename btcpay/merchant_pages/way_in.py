"""The way in and out: a link that logs in once, the list of sessions, the end of them."""

from flask import Response, request

from btcpay import merchant_sessions
from btcpay.errors import CommandError, NotFound
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit, address

GONE = 410


class WayIn:
    """The views that need no session, and those that end one."""

    def __init__(self, area: Area) -> None:
        self._area = area
        self._db = area.service.db
        area.open("GET", "/login/<secret>", self.show_login)
        area.open("POST", "/login/<secret>", self.log_in)
        area.get("/sessions", show_sessions)
        area.post("/sessions/<id>/end", self.end_session)
        area.post("/logout", self.log_out)

    def show_login(self, secret: str) -> Response:
        """A button: a link that a messenger or a scanner looks at must still work for a person."""
        self._area.count_stranger("")
        if merchant_sessions.is_login(self._db, secret, self._area.service.now()):
            return self._way_in()
        self._area.count_stranger(secret)
        return self._way_in(GONE)

    def log_in(self, secret: str) -> Response:
        """Uses up the link; a browser that was logged in before gets a new session."""
        self._area.refuse_other_sites()
        service, former = self._area.service, self._area.presented()
        browser = request.headers.get("User-Agent", "")
        opened = merchant_sessions.log_in(self._db, secret, former, browser, service.now())
        if opened is None:
            self._area.count_stranger(secret)
            return self._way_in(GONE)
        response = Response(status=303)
        response.headers["Location"] = address()
        self._area.keep(response, opened)
        return response

    def _way_in(self, status: int = 200) -> Response:
        return self._area.pages.page("merchant/login.html", status, works=status != GONE)

    def end_session(self, visit: Visit, id: str) -> Response:
        """Ends one of the merchant's sessions; this browser's own is logged out."""
        if id == visit.session.id:
            return self.log_out(visit)
        try:
            merchant_sessions.end(self._db, visit.merchant_id, id)
        except CommandError as error:
            raise NotFound(str(error)) from None
        return visit.to("/sessions", done="ended")

    def log_out(self, visit: Visit) -> Response:
        """Ends this session, here and in the database."""
        merchant_sessions.end(self._db, visit.merchant_id, visit.session.id)
        response = self._area.pages.page("merchant/logged_out.html")
        self._area.forget(response)
        return response


def show_sessions(visit: Visit) -> Response:
    """Which browsers are logged in."""
    rows = merchant_sessions.sessions_of(visit.service.db, visit.merchant_id, visit.now)
    return visit.page("sessions.html", sessions=rows, own=visit.session.id)
