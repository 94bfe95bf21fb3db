"""The page of an invoice, and the forms with the merchant's decisions about it."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flask import Response

from btcpay import hooks
from btcpay.invoices import manual
from btcpay.invoices.status import Story, story_of
from btcpay.invoices.stuck import stuck_of
from btcpay.notify.mail.mailto import mailto
from btcpay.parts.merchant_pages.lists.sales import loose_kind
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.errors import ChangeRefused
from btcpay.values.money import (
    amount_due,
    price_of,
    value_of,
)
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.texts import TextRefused
from btcpay.web.pages.forms import invisible_character_message_of
from btcpay.web.pages.languages import gettext
from btcpay.web.pages.qr import qr_svg
from storage.queries import attentions, invoices, receivers
from storage.statement import as_dict

# The maximum number of outputs and of events on the page, since anybody can send dust to
# an address.
MOST_SHOWN = 100
# With these reasons for attention, nothing must be refunded: the payment is not in the best
# chain, or it was refunded twice already.
OWES_NOTHING = ("reorganised", "vanished", "refunded_twice")


def show(visit: Visit, id: str) -> Response:
    """Shows an invoice with its payments, its history and the merchant's decisions."""
    row = visit.get_or_404(attentions.INVOICE, "inv", id)
    db = visit.service.db
    story = story_of(db, visit.service.settings, row, visit.now)
    present = [output for output in story.outputs if output.vanished_ms is None]
    unconfirmed = [output for output in present if output.block_height is None]
    receipts = story.verdict.receipts
    paid_sats = sum(receipt.amount_sats for receipt in receipts if receipt.came_for_it)
    is_paid = story.row.status == InvoiceStatus.PAID
    mail_link = None
    if row.attention:
        mail_link = mailtos(visit, [row]).get(id)
    payer_url = f"{visit.service.settings.base_url}/pay/{id}"
    price = price_of(story.row)
    currency = amount_due(story.row).currency
    return visit.page(
        "invoice.html",
        row=story.row,
        price=price,
        worth=partial(value_of, price=price, currency=currency),
        came_sats=sum(output.amount_sats for output in present),
        cards=_cards_of_parts(visit, row, paid_sats),
        owes_nothing=OWES_NOTHING,
        story=story,
        stuck=stuck_of(unconfirmed, visit.now),
        can_accept=bool(receipts) and not is_paid,
        payer_url=payer_url,
        qr=qr_svg(payer_url),
        mailto=mail_link,
        events=_newest_events(story),
        most_shown=MOST_SHOWN,
        loose_kind=loose_kind,
        reason_error=reason_error(visit),
    )


def _newest_events(story: Story) -> list[dict[str, Any]]:
    """Returns the last MOST_SHOWN events of the invoice's history, newest first.

    Each is a row of the table `event`, with its `detail` parsed from JSON.
    """
    events = []
    for event in reversed(story.events[-MOST_SHOWN:]):
        events.append(as_dict(event) | {"detail": json.loads(event.detail)})
    return events


def _cards_of_parts(
    visit: Visit, row: invoices.InvoiceWith, paid_sats: int
) -> list[tuple[str, dict[str, Any]]]:
    """Returns the cards that parts (optional plug-ins) add to the page of an invoice.

    Each card is a template's name and its values. `paid_sats` is the sum of the
    payments that came for the invoice.
    """
    cards = []
    for part in hooks.of(hooks.MerchantViews):
        if part.invoice_card:
            card = part.invoice_card(visit, row, paid_sats)
            if card:
                cards.append(card)
    return cards


def accept(visit: Visit, id: str) -> Response:
    """Accepts the received payments as full payment of the invoice.

    Stores the reason that the merchant has entered.
    """
    default_reason = gettext("Accepted as received")
    return _decide_with_reason(visit, id, "accepted", manual.settle, default_reason)


def set_aside(visit: Visit, id: str) -> Response:
    """Removes the invoice from the list of invoices that need attention.

    Stores the reason that the merchant has entered. The invoice is listed again if
    something new happens to it that needs attention.
    """
    default_reason = gettext("Settled with the customer")
    return _decide_with_reason(visit, id, "set_aside", manual.dismiss, default_reason)


def cancel(visit: Visit, id: str) -> Response:
    """Cancels the invoice; if a payment is on its way, only with the field `force`."""
    return _decide(
        visit,
        id,
        "canceled",
        manual.cancel,
        force=visit.form.get("force") == "yes",
        where="on the merchant's pages",
    )


def _decide(
    visit: Visit, id: str, outcome: str, decision: Callable[..., Any], **how: Any
) -> Response:
    """Applies the decision, and redirects to the page that had the form.

    `decision` is a function of `btcpay/invoices/manual.py`, and `how` are its keyword
    arguments. The page shows a message by its name: `outcome`, or the reason why the
    decision was refused.
    """
    visit.get_or_404(invoices.WHOLE, "inv", id)
    try:
        decision(visit.service.db, visit.service.settings, id, now=visit.now, **how)
    except ChangeRefused as refusal:
        return _back(visit, id, done=refusal.code)
    return _back(visit, id, done=outcome)


def _decide_with_reason(
    visit: Visit,
    id: str,
    outcome: str,
    decision: Callable[..., Any],
    default_reason: str,
) -> Response:
    """Applies the decision with the entered reason; without one, with `default_reason`."""
    visit.get_or_404(invoices.WHOLE, "inv", id)
    try:
        reason = manual.read_reason(visit.form.get("reason", ""))
    except TextRefused as refusal:
        return _back(visit, id, done="reason", sign=refusal.sign)
    return _decide(visit, id, outcome, decision, reason=reason or default_reason)


def _back(visit: Visit, id: str, **query: str) -> Response:
    """Redirects to the page that had the form: the list of invoices, or the invoice."""
    if visit.form.get("back") == "attention":
        return visit.redirect("/attention", **query)
    return visit.redirect(f"/invoices/{id}", **query)


def reason_error(visit: Visit) -> str:
    """Returns the message about an invisible character in the entered reason; "" if none.

    The URL contains only the character's code point. If it contained the message,
    anybody could compose a URL that shows a text of their choice.
    """
    return invisible_character_message_of(visit.query.get("sign", ""))


def mailtos(visit: Visit, rows: Sequence[invoices.InvoiceWith]) -> dict[str, str]:
    """Returns links that open a mail to an invoice's customer, by the invoice's id.

    There is no link for an invoice without the customer's e-mail address. The mails are
    in the language of the merchant's mail.
    """
    addressed = [row for row in rows if row.customer_email]
    if not addressed:
        return {}
    service = visit.service
    mail = service.db.get_or_none(receivers.MAIL_OF, merchant_id=visit.merchant_id)
    language = "en"
    if mail:
        language = mail.language
    links = {}
    for row in addressed:
        url = f"{service.settings.base_url}/pay/{row.id}"
        links[row.id] = mailto(row, url, visit.session.seller, language)
    return links
