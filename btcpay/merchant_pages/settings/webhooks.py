"""Webhooks: added, with a secret that is shown once, tried, sent all that waits, removed."""

from flask import Response

from btcpay.merchant_pages.visit import Visit
from btcpay.notify import receivers
from btcpay.notify.kinds import EventKind
from btcpay.notify.outbox import new_send
from btcpay.notify.outcome import Answer
from btcpay.notify.publish import wants
from btcpay.notify.read import sample
from btcpay.values.errors import CommandError, NotFound
from btcpay.web.pages.languages import gettext
from storage.models import Receiver
from storage.queries import receivers as queries

TEST_S = 5  # of a request that somebody waits for
MOST_URL = 2000


def show(
    visit: Visit,
    status: int = 200,
    added: Receiver | None = None,
    wrong: str = "",
    tested: tuple[str, Answer] | None = None,
) -> Response:
    rows = visit.service.db.rows(queries.LIST_OF_MERCHANT, merchant_id=visit.merchant_id)
    typed = visit.form.get("url", "") if wrong else ""
    return visit.page(
        "webhooks.html", status, webhooks=rows, added=added, wrong=wrong, tested=tested, typed=typed
    )


def add(visit: Visit) -> Response:
    """The webhook of this press. A command is the machine's, and added on its command line."""
    service, url = visit.service, visit.form.get("url", "").strip()
    try:
        receivers.refuse_url(url[: MOST_URL + 1], service.settings.network)
    except CommandError:
        return show(visit, 400, wrong=gettext("This must be an https:// address."))
    with visit.once("whk", queries.BY_ID) as (id, is_made):
        if is_made:
            return visit.to("/webhooks", done="added")
        added = receivers.add(service.db, visit.merchant_id, url, None, [], visit.now, id)
    return show(visit, added=added)


def test(visit: Visit, id: str) -> Response:
    """Sends a made-up event now, of the first kind that the webhook wants."""
    receiver, service = visit.own(queries.BY_ID, "whk", id), visit.service
    if receiver.transport != queries.WEBHOOK:
        raise NotFound("a command is tried on the command line, a plug-in's by an order")
    wanted = (kind for kind in EventKind if wants(receiver, kind))
    kind = next(wanted, EventKind.INVOICE_PAID)
    event = sample(service.resources, visit.merchant_id, kind, visit.now)
    answer = new_send(service.settings, TEST_S)(receiver, event, visit.now)
    return show(visit, tested=(id, answer))


def send_all_now(visit: Visit, id: str) -> Response:
    """Sends waiting events now, and those that were given up."""
    receivers.send_all_now(visit.service.db, visit.own(queries.BY_ID, "whk", id).id, visit.now)
    return visit.to("/webhooks", done="sent")


def remove(visit: Visit, id: str) -> Response:
    receivers.remove(visit.service.db, visit.own(queries.BY_ID, "whk", id).id)
    return visit.to("/webhooks", done="removed")
