"""The pages of webhooks, and of each webhook's latest deliveries. A secret is shown only once."""

from typing import Any

from flask import Response

from btcpay.notify import receivers
from btcpay.notify.events import sample_event
from btcpay.notify.outbox import new_send
from btcpay.notify.outcome import Answer
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import CommandError, NotFound
from btcpay.values.times import to_ms
from btcpay.web.pages.languages import gettext
from storage.models import Receiver
from storage.queries import deliveries
from storage.queries import receivers as queries

TEST_S = 5  # the time-out of a test; the merchant waits for its result
MOST_DELIVERIES = 50  # on the page of a webhook
# The transports whose deliveries can be sent again one by one. A shop's plug-in must get its events
# in order.
SENT_AGAIN = (queries.WEBHOOK, queries.COMMAND)


def show_webhooks(visit: Visit, status: int = 200, **values: Any) -> Response:
    """Shows the merchant's webhooks, and a form that adds one.

    `status` is the HTTP status. `values` are further values for the template: `added` is
    a webhook that was just added, `error` is a message about the URL in the form.
    """
    rows = visit.service.db.rows(
        queries.LIST_OF_MERCHANT, merchant_id=visit.merchant_id
    )
    url = ""
    if "error" in values:
        url = visit.form.get("url", "")
    return visit.page("webhooks.html", status, webhooks=rows, entry=url, **values)


def add_webhook(visit: Visit) -> Response:
    """Adds a webhook, and shows its secret only this once.

    If the browser sends the same form twice, only one webhook is added. On this page a
    receiver of events is always a URL. Only the command `blocktill webhook add` can add
    a program on the server.
    """
    text = visit.form.get("url", "").strip()
    try:
        url = receivers.webhook_url(text, visit.service.settings.network)
        webhook = _add_once(visit, url)
    except receivers.NoRoom:
        error = gettext("There are already 20 webhooks. Remove one first.")
        return show_webhooks(visit, 400, error=error)
    except CommandError:
        return show_webhooks(
            visit, 400, error=gettext("This must be an https:// address.")
        )
    if webhook is None:
        return visit.redirect("/webhooks", done="added")
    return show_webhooks(visit, added=webhook)


def _add_once(visit: Visit, url: str) -> Receiver | None:
    """Adds the webhook of this form; returns None if the form has added it before.

    Raises NoRoom if the merchant already has the maximum number of webhooks.
    """
    with visit.create_once("whk", queries.BY_ID) as (id, exists):
        if exists:
            return None
        return receivers.add(
            visit.service.db,
            visit.merchant_id,
            url,
            command=None,
            kinds=[],
            now=visit.now,
            id=id,
        )


def _webhook_or_404(visit: Visit, id: str) -> Receiver:
    """Returns the merchant's receiver with this id: a webhook, a command or a plug-in's.

    Raises NotFound if there is none, or if it is a mailbox.
    """
    receiver = visit.get_or_404(queries.BY_ID, "whk", id)
    if receiver.transport in queries.MAILS:
        raise NotFound("there is no such webhook")
    return receiver


def show_webhook(visit: Visit, id: str, tested: Answer | None = None) -> Response:
    """Shows a webhook with its latest deliveries, newest first.

    `tested` is the answer to a test event that was just sent; None if none was sent.
    """
    receiver = _webhook_or_404(visit, id)
    rows = visit.service.db.rows(deliveries.LIST, receiver_id=id, limit=MOST_DELIVERIES)
    return visit.page(
        "webhook.html",
        webhook=receiver,
        deliveries=rows,
        can_send_again=receiver.transport in SENT_AGAIN,
        now_ms=to_ms(visit.now),
        tested=tested,
    )


def test_webhook(visit: Visit, id: str) -> Response:
    """Sends a sample event `invoice.paid` to the webhook, and shows the result.

    Raises NotFound if the receiver is not a webhook.
    """
    receiver = _webhook_or_404(visit, id)
    service = visit.service
    if receiver.transport != queries.WEBHOOK:
        raise NotFound(
            "a command is tried on the command line, a plug-in's by an order"
        )
    event = sample_event(service.resources, visit.merchant_id, visit.now)
    send = new_send(service.settings, TEST_S)
    answer = send(receiver, event, visit.now)
    return show_webhook(visit, id, answer)


def send_all_now(visit: Visit, id: str) -> Response:
    """Makes the next check (`blocktill check`) send all events that were not delivered.

    These are the events that wait for the webhook, and those that were given up.
    """
    receiver = _webhook_or_404(visit, id)
    receivers.send_all_now(visit.service.db, receiver.id, visit.now)
    return visit.redirect(f"/webhooks/{id}", done="sent")


def send_again(visit: Visit, id: str, event: str) -> Response:
    """Makes the next check (`blocktill check`) send an event to the webhook once more.

    The event may have been delivered already. Raises NotFound if the event was never
    meant for this webhook, or if the webhook belongs to a plug-in.
    """
    receiver = _webhook_or_404(visit, id)
    try:
        receivers.resend(visit.service.db, receiver.id, event, visit.now)
    except CommandError as error:
        raise NotFound(str(error)) from None
    return visit.redirect(f"/webhooks/{id}", done="again")


def remove_webhook(visit: Visit, id: str) -> Response:
    receiver = _webhook_or_404(visit, id)
    receivers.remove(visit.service.db, receiver.id)
    return visit.redirect("/webhooks", done="removed")
