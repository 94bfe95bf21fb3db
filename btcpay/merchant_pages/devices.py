"""Devices: which browsers are logged in, and the end of any of them."""

from flask import Response

from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.visit import Visit
from btcpay.merchants import browsers
from btcpay.merchants import sessions as merchant_sessions
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.times import to_ms


class Devices:
    """The views; whoever logs out here leaves nothing in the browser."""

    def __init__(self, area: Area) -> None:
        self._area = area
        area.get("/sessions", show)
        area.post("/sessions/<id>/end", self.end_one)
        area.post("/sessions/end-others", end_others)
        area.post("/logout", self.log_out)

    def end_one(self, visit: Visit, id: str) -> Response:
        """Ends one of the merchant's sessions; this browser's own is logged out."""
        if id == visit.session.id:
            return self.log_out(visit)
        try:
            merchant_sessions.end(visit.service.db, visit.merchant_id, id)
        except CommandError as error:
            raise NotFound(str(error)) from None
        return visit.to("/sessions", done="ended")

    def log_out(self, visit: Visit) -> Response:
        """Ends this session, here and in the database."""
        merchant_sessions.end(visit.service.db, visit.merchant_id, visit.session.id)
        response = self._area.pages.page("merchant/logged_out.html")
        self._area.forget(response)
        return response


def show(visit: Visit) -> Response:
    """This browser first, then the others, the newest first."""
    rows = merchant_sessions.sessions_of(visit.service.db, visit.merchant_id, visit.now)
    own = visit.session.id
    told = [
        row
        | {
            "name": browsers.named(row["browser"]),
            "unused_ms": to_ms(visit.now) - row["last_used_at"],
        }
        for row in rows
    ]
    told.sort(key=lambda row: row["id"] != own)
    return visit.page("sessions.html", sessions=told, own=own)


def end_others(visit: Visit) -> Response:
    """Ends every session but this browser's, and takes back links that nobody has used."""
    merchant_sessions.end_others(visit.service.db, visit.merchant_id, visit.session.id)
    return visit.to("/sessions", done="others_ended")
