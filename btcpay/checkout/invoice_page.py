"""Computes the values that an invoice's pages show. Only listed columns reach a page."""

from decimal import Decimal
from typing import Any

from btcpay.checkout.invoice_times import times_of
from btcpay.checkout.notices import Notices
from btcpay.checkout.snapshot import Snapshot, status_of
from btcpay.merchants.branding import INVOICE
from btcpay.values.money import (
    Money,
    amount_due,
    price_of,
    round_money,
    stored_amount,
    tax_of,
    value_of,
)
from btcpay.values.statuses import CheckoutState
from btcpay.web.pages.qr import payment_uri, qr_svg
from storage.models import Invoice
from storage.queries import merchants

BLOCK_MINUTES = 10  # average minutes between blocks on every public network
# The branding column with the URL back to the shop, by state. An invoice's own URL comes first.
# While a payment is pending, the page has no such URL: it is too early for the shop to thank.
RETURNS = {
    CheckoutState.PAID: "return_paid",
    CheckoutState.WAITING: "return_unpaid",
    CheckoutState.OVERDUE: "return_unpaid",
    CheckoutState.EXPIRED: "return_unpaid",
    CheckoutState.CANCELED: "return_unpaid",
}
# The columns of the invoice that the page shows unchanged.
FROM_ROW = (
    "id",
    "amount_sats",
    "received_sats",
    "reference",
    "tx_hash",
    "paid_ms",
    "expires_ms",
    "checked_ms",
    "customer_name",
    "customer_note",
    "receipt_number",
)


def invoice_values(
    snapshot: Snapshot,
    brand: merchants.BrandOnPages,
    notices: Notices,
) -> dict[str, Any]:
    """Returns the values for the template of an invoice's page.

    Times are in Unix milliseconds, durations in milliseconds. The docstrings of
    `_amounts`, `_sums_due`, `_request` and `times_of` describe their values. The others:

    - `status`: the JSON object of the page's status, which its script compares.
    - `title`: the title of the payment link; None if the description has the same text.
    - `return_url`: the URL that leads back to the shop.
    - `link_id`: the id of the payment link with which the payer can create another
      invoice.
    """
    row = snapshot.row
    is_payable = snapshot.state in (CheckoutState.WAITING, CheckoutState.PARTIAL)
    sums = _sums_due(snapshot, is_payable)
    request: dict[str, str | None] = {"uri": None, "qr": None}
    if is_payable:
        request |= _request(snapshot, sums["due_sats"], brand.name)
    return {
        **{name: getattr(row, name) for name in FROM_ROW},
        **_amounts(snapshot),
        **sums,
        **times_of(snapshot, is_payable),
        **request,
        **_confirmations(snapshot),
        "state": snapshot.state,
        "status": status_of(snapshot, notices.returned_sats),
        "notices": notices,
        "title": _title(snapshot, notices),
        "description": row.description or None,
        "address": row.deposit_address,
        "return_url": _return_url(snapshot, brand),
        "link_id": _link_id(snapshot, notices),
    }


def _amounts(snapshot: Snapshot) -> dict[str, Any]:
    """Returns the amounts of the invoice that do not depend on what is missing.

    - `amount`: the amount in `currency`, including the tip.
    - `price`: the price of one bitcoin when the invoice was created.
    - `gratuity`: the part of `amount` that is a tip.
    - `tax`: the tax in the rest of `amount`; None if the receipt shows no tax.
    - `overpaid_sats`: satoshis that came too late or in excess.
    - `overpaid`: the value of `overpaid_sats` in `currency`.
    """
    row = snapshot.row
    amount, currency = amount_due(row)
    price = price_of(row)
    overpaid_sats = snapshot.overpaid_sats
    return {
        "currency": currency,
        "amount": amount,
        "price": price,
        "gratuity": stored_amount(row.gratuity or "0"),
        "tax": tax_of(row),
        "overpaid_sats": overpaid_sats,
        "overpaid": value_of(overpaid_sats, price, currency),
    }


def _confirmations(snapshot: Snapshot) -> dict[str, int]:
    """Returns the confirmations so far, those still needed, and the minutes they take."""
    needed = snapshot.confirmations_needed
    confirmations_left = max(0, needed - snapshot.confirmations)
    return {
        "confirmations": min(snapshot.confirmations, needed),
        "confirmations_left": confirmations_left,
        "usual_minutes": BLOCK_MINUTES * confirmations_left,
    }


def _sums_due(snapshot: Snapshot, is_payable: bool) -> dict[str, Any]:
    """Returns the missing amount and the amount to pay now, in satoshis and in currencies.

    - `owed_sats`: the missing satoshis.
    - `due_sats`: the satoshis to pay now. This is `owed_sats`, or the dust limit if less
      than that is missing.
    - `due`: the value of `due_sats` in the invoice's currency, at its exchange rate.
    - `beside`: the value of `due` in the merchant's currency, shown next to `due`.
    - `is_dust`: True if less than the dust limit is missing.

    If nothing can be paid now (`is_payable` is False), the first three are the invoice's
    whole amount.
    """
    row = snapshot.row
    due, currency = amount_due(row)
    owed_sats = row.amount_sats
    due_sats = owed_sats
    if is_payable:
        owed_sats = snapshot.missing_sats
        due_sats = max(owed_sats, snapshot.dust_limit_sats)
    if snapshot.state == CheckoutState.PARTIAL:
        due = value_of(due_sats, price_of(row), currency)
    return {
        "owed_sats": owed_sats,
        "due_sats": due_sats,
        "due": due,
        "beside": _beside(row, due),
        "is_dust": owed_sats < due_sats,
    }


def _beside(row: Invoice, due: Decimal) -> Money | None:
    """Returns the value of `due` dollars in the merchant's currency, at the stored prices.

    Returns None if the amount is not in dollars, or if the merchant's currency is the
    dollar.
    """
    # `amount` is an amount in the merchant's currency; None for an amount in dollars.
    if row.amount is not None or row.currency == "USD":
        return None
    exact = due * Decimal(row.price) / Decimal(row.price_usd)
    return Money(round_money(exact, row.currency), row.currency)


def _title(snapshot: Snapshot, notices: Notices) -> str | None:
    """Returns the title of the invoice's payment link; None if the description repeats it.

    If a link has no description, its title is the description of its invoices.
    """
    if notices.link_title == snapshot.row.description:
        return None
    return notices.link_title


def _link_id(snapshot: Snapshot, notices: Notices) -> str | None:
    """Returns the id of the payment link with which the payer can create another invoice.

    Returns None if the link cannot create one, or if the payer has paid too late or too
    much.
    """
    if not notices.link_is_active or snapshot.overpaid_sats:
        return None
    return snapshot.row.payment_link_id


def _return_url(snapshot: Snapshot, brand: merchants.BrandOnPages) -> str | None:
    """Returns the URL that leads back to the shop, with this invoice's id filled in."""
    url: str | None = snapshot.row.return_url
    column = RETURNS.get(snapshot.state)
    if not url and column:
        url = getattr(brand, column)
    if not url:
        return None
    return url.replace(INVOICE, snapshot.row.id)


def _request(snapshot: Snapshot, due_sats: int, label: str | None) -> dict[str, str]:
    """Returns a request to pay `due_sats`: the URI for the button, and a QR code (SVG).

    The URI has the merchant's name (`label`), which the wallet shows. The QR code has no
    texts: they would make it larger, and harder to scan.
    """
    address = snapshot.row.deposit_address
    return {
        "uri": payment_uri(address, due_sats, label, snapshot.row.description),
        "qr": qr_svg(payment_uri(address, due_sats)),
    }
