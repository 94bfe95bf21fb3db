"""One invoice: its whole story, and what its owner decides about it."""

import json
from collections.abc import Callable
from typing import Any

from flask import Response

from btcpay.invoices import by_hand
from btcpay.invoices.status import story_of
from btcpay.merchant_pages.visit import Visit
from btcpay.values.errors import Refused
from btcpay.values.money import asked_of, price_of
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.qr import qr_svg
from storage.models import Invoice
from storage.queries import invoices
from storage.statement import as_dict

MOST_SHOWN = 100  # outputs, and events: who sends much dust to an address makes no endless page
MOST_REASON = 300  # characters
# The columns of the invoice that the page shows.
SHOWN = [
    *(field.name for field in Invoice.PUBLIC),
    "address_index",
    "settled_reason",
    "reference",
    "tip",
]


def show(visit: Visit, id: str) -> Response:
    """The amount asked for and received, the status with its reason, the events, the actions."""
    visit.own(invoices.WHOLE, "inv", id)
    story = story_of(visit.service.db, visit.service.settings, id, visit.now)
    asked_for, asked_in = asked_of(story.row)
    newest = story.events[: -MOST_SHOWN - 1 : -1]
    came = (one.amount_sats for one in story.outputs if one.vanished_at is None)
    payer_url = f"{visit.service.settings.base_url}/pay/{id}"
    return visit.page(
        "invoice.html",
        row={name: getattr(story.row, name) for name in SHOWN},
        asked_for=asked_for,
        asked_in=asked_in,
        price=price_of(story.row),
        came_sats=sum(came),
        attention=story.row.attention,
        verdict=story.verdict,
        needed=story.needed,
        checked_at=story.checked_at,
        can_accept=story.row.status != "paid" and bool(story.verdict.receipts),
        payer_url=payer_url,
        qr=qr_svg(payer_url),
        outputs=story.outputs[:MOST_SHOWN],
        happenings=[as_dict(event) | {"detail": json.loads(event.detail)} for event in newest],
        outputs_seen=len(story.outputs),
        events_seen=len(story.events),
        most_shown=MOST_SHOWN,
    )


def accept(visit: Visit, id: str) -> Response:
    """Counts the received amount as the whole payment."""
    reason = _reason(visit) or gettext("Accepted as received")
    return _decide(visit, id, "accepted", by_hand.settle, reason=reason)


def set_aside(visit: Visit, id: str) -> Response:
    """Takes the invoice off the list of those that need attention, until something new happens."""
    reason = _reason(visit) or gettext("Settled with the customer")
    refund = visit.form.get("refund", "").strip().lower()
    return _decide(visit, id, "set_aside", by_hand.dismiss, reason=reason, refund_txid=refund)


def cancel(visit: Visit, id: str) -> Response:
    """Cancels the invoice, so that its page asks for no money."""
    force = visit.form.get("force") == "yes"
    where = "on the merchant's pages"
    return _decide(visit, id, "canceled", by_hand.cancel, force=force, where=where)


def _decide(visit: Visit, id: str, done: str, decision: Callable[..., Any], **how: Any) -> Response:
    """Goes back to the page with the form, which says what was done or why it was refused."""
    visit.own(invoices.WHOLE, "inv", id)
    try:
        decision(visit.service.db, visit.service.settings, id, now=visit.now, **how)
    except Refused as refused:
        done = refused.code
    if visit.form.get("back") == "attention":
        return visit.to("/attention", done=done)
    return visit.to(f"/invoices/{id}", done=done)


def _reason(visit: Visit) -> str:
    """The typed reason in one line, cut after MOST_REASON."""
    return " ".join(visit.form.get("reason", "").replace("\0", "").split())[:MOST_REASON]
