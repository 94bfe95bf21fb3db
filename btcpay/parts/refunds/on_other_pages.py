"""The sentences and the card about refunds on the merchant's other pages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from btcpay import hooks
from btcpay.languages import formats
from btcpay.parts.refunds import queries, sums
from btcpay.parts.refunds.models import Refund
from btcpay.values.money import amount_due, full_btc_text, price_of, value_of
from btcpay.values.statuses import RefundStatus
from btcpay.web.pages.forms import AmountRefused, invisible_character_message_of
from btcpay.web.pages.languages import current_language, gettext
from btcpay.web.pages.visit import Line, Visit
from storage.queries.invoices import InvoiceWith


def menu_item() -> hooks.MenuItem:
    drawn = "M9 14l-5-5 5-5M4 9h10a6 6 0 0 1 0 12h-3"
    return hooks.MenuItem("/refunds", gettext("Refunds"), drawn)


def today_lines(counts: Mapping[str, int]) -> list[Line]:
    """Returns a sentence with the number of refunds to be sent; [] if there are none."""
    return _lines_of(counts["refunds_to_send"])


def inbox_lines(visit: Visit) -> list[Line]:
    """Returns a sentence with the number of refunds to be sent; [] if there are none."""
    (to_send_count,) = visit.service.db.get(
        queries.TO_SEND_COUNT, merchant_id=visit.merchant_id
    )
    return _lines_of(to_send_count)


def _lines_of(to_send_count: int) -> list[Line]:
    """Returns a sentence with the number of refunds to be sent; [] if there are none."""
    if not to_send_count:
        return []
    number = formats.whole(to_send_count, current_language())
    text = gettext("Refunds to be sent: %(number)s", number=number)
    return [(text, "/refunds", {})]


def month_lines(visit: Visit, since_ms: int, before_ms: int) -> list[Line]:
    """Returns a line for the month's page: the sums that were sent back, by currency.

    Returns no line ([]) if nothing was sent back. A refund counts if
    since_ms <= time of sending < before_ms, in unix milliseconds.
    """
    rows = visit.service.db.rows(
        queries.SENT_BETWEEN,
        merchant_id=visit.merchant_id,
        since=since_ms,
        before=before_ms,
    )
    if not rows:
        return []
    amount_texts = []
    for currency, amount in _sent_sums(rows).items():
        if currency == "BTC":
            amount_texts.append(f"{amount} BTC")
        else:
            amount_texts.append(formats.money(amount, currency, current_language()))
    sentence = gettext("Sent back: %(sums)s", sums=", ".join(amount_texts))
    return [(sentence, "/refunds", {})]


def _sent_sums(refunds: Iterable[Refund]) -> Mapping[str, Decimal]:
    """Returns the sum that these refunds sent, by currency.

    A refund whose value was not known when it was sent counts in bitcoin ("BTC").
    """
    sums_by_currency = defaultdict[str, Decimal](Decimal)
    for row in refunds:
        if row.currency and row.value_at_sending:
            sums_by_currency[row.currency] += Decimal(row.value_at_sending)
        else:
            sums_by_currency["BTC"] += Decimal(full_btc_text(row.sent_sats or 0))
    return sums_by_currency


def invoice_card(
    visit: Visit,
    row: InvoiceWith,
    came_sats: int,
) -> tuple[str, dict[str, Any]] | None:
    """Returns the card about refunds on an invoice's page: a template and its values.

    `came_sats` are the satoshis that could be sent back. Returns None if they are 0.
    """
    if not came_sats:
        return None
    refunds = sums.refunds_of(visit.service.db, row.id)
    left_sats = sums.default_of(row, came_sats, refunds).left_sats
    offered = ""
    if left_sats:
        left = value_of(left_sats, price_of(row), amount_due(row).currency)
        offered = f"{left:f}"
    values: dict[str, Any] = {
        "refunds": refunds,
        "worth_of": sums.worth_of,
        "left_sats": left_sats,
        "offered": offered,
        "is_sent_twice": row.attention == sums.SENT_TWICE,
        "is_open": "refund" in visit.query,
        "error": _error_of(visit),
    }
    return "merchant/refund_card.html", values


def sale_note(state: str) -> str:
    """Returns the note about a sale's refund, such as "Refunded", for the list of sales.

    `state` is the refund's status.
    """
    texts = {
        RefundStatus.REQUESTED: gettext("Refund: waiting for the address"),
        RefundStatus.READY: gettext("Refund: to be sent"),
        RefundStatus.SENT: gettext("Refunded"),
    }
    return texts[RefundStatus(state)]


def _error_of(visit: Visit) -> str:
    """Returns the error about the entered amount or reason; "" if there is none.

    The URL contains the entered amount or the invisible character, not the error's text.
    Otherwise anybody could compose a URL that shows a text of their choice.
    """
    query = visit.query
    outcome = query.get("done")
    if outcome == "refund_invalid_request":
        try:
            visit.amount(query.get("amount", ""))
        except AmountRefused as refusal:
            return str(refusal)
    if outcome == "refund_reason":
        return invisible_character_message_of(query.get("sign", ""))
    return ""
