"""The shop's page of devices: the browsers that are logged in."""

from flask import Response

from btcpay.merchants import sessions
from btcpay.parts.merchant_pages.session_cookie import clear_session_cookie
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import NotFound
from btcpay.values.times import to_ms
from btcpay.web.pages.qr import qr_svg


def add_device(visit: Visit) -> Response:
    """Creates a link that logs in one other browser, and shows the link with its QR code.

    The session that the link opens can use only the till, unless the form's field
    `opens` is `everything`.
    """
    service = visit.service
    till_only = visit.form.get("opens") != "everything"
    link = sessions.login_url(
        service.db,
        service.settings.base_url,
        visit.merchant_id,
        visit.now,
        till_only,
    )
    return show_devices(visit, link, till_only)


def show_devices(
    visit: Visit,
    link: str | None = None,
    till_only: bool = False,
) -> Response:
    """Shows the sessions: first this browser's session, then the others, newest first.

    `link` is a login link that was just created, else None. `till_only` is True if the
    session that this link opens can use only the till.
    """
    rows = sessions.sessions_of(visit.service.db, visit.merchant_id, visit.now)
    qr = None
    if link:
        qr = qr_svg(link)
    return visit.page(
        "sessions.html",
        # False sorts before True, and the order of equal rows stays.
        sessions=sorted(rows, key=lambda row: row.id != visit.session.id),
        own_id=visit.session.id,
        named=sessions.device_of,
        now_ms=to_ms(visit.now),
        link=link,
        qr=qr,
        link_is_of_till=till_only,
    )


def end_device(visit: Visit, id: str) -> Response:
    """Ends one of the merchant's sessions. If it is this browser's session, logs out.

    Raises NotFound if the merchant has no such session.
    """
    if id == visit.session.id:
        return log_out(visit)
    if not sessions.end(visit.service.db, visit.merchant_id, id):
        raise NotFound("there is no such session")
    return visit.redirect("/sessions", done="ended")


def log_out(visit: Visit) -> Response:
    """Ends this browser's session, and redirects to a page that says so."""
    sessions.end(visit.service.db, visit.merchant_id, visit.session.id)
    response = visit.redirect("/login/logged-out")
    clear_session_cookie(visit.service, response)
    return response


def end_other_devices(visit: Visit) -> Response:
    """Ends all sessions except this browser's session, and deletes unused login links."""
    sessions.end_all(visit.service.db, visit.merchant_id, visit.session.id)
    return visit.redirect("/sessions", done="others_ended")
