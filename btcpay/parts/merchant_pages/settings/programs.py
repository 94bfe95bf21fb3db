"""The shop's pages of API keys, webhooks and devices (browsers that are logged in).

Each secret is shown only once.
"""

from typing import Any

from flask import Response

from btcpay.merchants import keys, sessions
from btcpay.notify import receivers
from btcpay.notify.events import sample_event
from btcpay.notify.outbox import new_send
from btcpay.parts.merchant_pages.visit import Visit, clear_session_cookie
from btcpay.values.errors import CommandError, InvalidRequest, NotFound
from btcpay.values.times import to_ms
from btcpay.web.pages.forms import invisible_character_message
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.qr import qr_svg
from storage.queries import keys as stored_keys
from storage.queries import receivers as queries

SCOPES = ("write", "read")
TEST_S = 5  # the time-out of a test; the merchant waits for its result


def show_keys(visit: Visit, status: int = 200, **values: Any) -> Response:
    """Shows the API keys: first the working ones, then the revoked ones, each newest first.

    `values` are further values for the template, such as a key that was just issued.
    """
    rows = visit.service.db.rows(stored_keys.OF_MERCHANT, merchant_id=visit.merchant_id)
    rows.sort(key=lambda row: (row.revoked_ms is not None, -row.created_ms))
    return visit.page("keys.html", status, keys=rows, **values)


def issue_key(visit: Visit) -> Response:
    """Issues an API key, and shows its secret only this once.

    If the browser sends the same form twice, only one key is issued.
    """
    service = visit.service
    scope = visit.form.get("scope", "")
    if scope not in SCOPES:
        raise InvalidRequest("the form names no kind of key")
    try:
        name = keys.checked_name(visit.form.get("name", ""))
    except CommandError as refusal:
        error = invisible_character_message(refusal) or gettext(
            "One line of at most 60 characters."
        )
        return show_keys(visit, 400, error=error, entry=visit.form.get("name", ""))
    with visit.create_once("key", stored_keys.BY_ID) as (id, exists):
        if exists:
            return visit.redirect("/keys", done="issued")
        network = service.settings.network
        owner_id = visit.merchant_id
        issued = keys.issue(
            service.db,
            network,
            owner_id,
            scope,
            name,
            visit.now,
            id=id,
        )
    return show_keys(visit, issued=issued)


def revoke_key(visit: Visit, id: str) -> Response:
    if visit.get_or_404(stored_keys.BY_ID, "key", id).revoked_ms is None:
        keys.revoke(visit.service.db, id, visit.now)
    return visit.redirect("/keys", done="revoked")


def show_webhooks(visit: Visit, status: int = 200, **values: Any) -> Response:
    """Shows the webhooks.

    `values` are further values for the template, such as a webhook that was just added
    or tested, or the message `error` about a URL.
    """
    rows = visit.service.db.rows(
        queries.LIST_OF_MERCHANT, merchant_id=visit.merchant_id
    )
    url = ""
    if "error" in values:
        url = visit.form.get("url", "")
    return visit.page("webhooks.html", status, webhooks=rows, entry=url, **values)


def add_webhook(visit: Visit) -> Response:
    """Adds a webhook. If the browser sends the same form twice, only one is added.

    A program on the server that receives events can be added only on the command line.
    """
    service = visit.service
    text = visit.form.get("url", "").strip()
    try:
        url = receivers.webhook_url(text, service.settings.network)
        with visit.create_once("whk", queries.BY_ID) as (id, exists):
            if exists:
                return visit.redirect("/webhooks", done="added")
            webhook = receivers.add(
                service.db,
                visit.merchant_id,
                url,
                None,
                [],
                visit.now,
                id,
            )
    except receivers.NoRoom:
        error = gettext("There are already 20 webhooks. Remove one first.")
        return show_webhooks(visit, 400, error=error)
    except CommandError:
        return show_webhooks(
            visit, 400, error=gettext("This must be an https:// address.")
        )
    return show_webhooks(visit, added=webhook)


def test_webhook(visit: Visit, id: str) -> Response:
    """Sends a sample event `invoice.paid` to the webhook, and shows the result.

    Raises NotFound if the receiver is not a webhook.
    """
    receiver = visit.get_or_404(queries.BY_ID, "whk", id)
    service = visit.service
    if receiver.transport != queries.WEBHOOK:
        raise NotFound(
            "a command is tried on the command line, a plug-in's by an order"
        )
    event = sample_event(service.resources, visit.merchant_id, visit.now)
    answer = new_send(service.settings, TEST_S)(receiver, event, visit.now)
    return show_webhooks(visit, tested=(id, answer))


def send_all_now(visit: Visit, id: str) -> Response:
    """Makes the next check send all events of the webhook that wait or were given up."""
    receivers.send_all_now(
        visit.service.db, visit.get_or_404(queries.BY_ID, "whk", id).id, visit.now
    )
    return visit.redirect("/webhooks", done="sent")


def remove_webhook(visit: Visit, id: str) -> Response:
    receivers.remove(visit.service.db, visit.get_or_404(queries.BY_ID, "whk", id).id)
    return visit.redirect("/webhooks", done="removed")


def add_device(visit: Visit) -> Response:
    """Creates a link that logs in one other browser, and shows the link with its QR code.

    The session that the link opens can use only the till, unless the form's field
    `opens` is `everything`.
    """
    service = visit.service
    till_only = visit.form.get("opens") != "everything"
    root = service.settings.base_url
    own = visit.merchant_id
    link = sessions.login_url(service.db, root, own, visit.now, till_only)
    return show_devices(visit, link, till_only)


def show_devices(
    visit: Visit,
    link: str | None = None,
    till_only: bool = False,
) -> Response:
    """Shows the sessions: first this browser's session, then the others, newest first.

    `link` is a login link that was just created.
    """
    rows = sessions.sessions_of(visit.service.db, visit.merchant_id, visit.now)
    return visit.page(
        "sessions.html",
        sessions=sorted(rows, key=lambda row: row.id != visit.session.id),
        own_id=visit.session.id,
        named=sessions.device_of,
        now_ms=to_ms(visit.now),
        link=link,
        qr=link and qr_svg(link),
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
