"""Computes the values that an invoice's pages show. Only listed columns reach a page."""

import json
import math
from decimal import Decimal
from typing import Any

from btcpay.checkout.notices import Notices
from btcpay.checkout.snapshot import Snapshot, status_of
from btcpay.merchants.branding import INVOICE
from btcpay.values.errors import NotFound
from btcpay.values.money import (
    Money,
    amount_due,
    price_of,
    round_money,
    stored_amount,
    tax_of,
    value_of,
)
from btcpay.values.statuses import CheckoutState, InvoiceStatus
from btcpay.values.times import to_ms
from btcpay.web.pages.qr import payment_uri, qr_svg
from btcpay.web.service import Service
from storage.models import Invoice
from storage.queries import merchants, payments

BLOCK_MINUTES = 10  # average minutes between blocks on every public network
LONG_AGO_MS = 10 * 60_000  # a check that runs every minute has missed many runs by then
COUNTDOWN_MS = 5 * 60_000
# An invoice is new for this time. A check that runs every minute has run by then. pages.js has the
# same value.
PATIENCE_MS = 2 * 60_000
# The branding column with the URL back to the shop, by state. An invoice's own URL comes first.
# While a payment is pending there is none: it is too early for the shop to thank.
RETURNS = {
    CheckoutState.PAID: "return_paid",
    CheckoutState.WAITING: "return_unpaid",
    CheckoutState.OVERDUE: "return_unpaid",
    CheckoutState.EXPIRED: "return_unpaid",
    CheckoutState.CANCELED: "return_unpaid",
}
FROM_ROW = (
    "id amount_sats received_sats reference tx_hash paid_ms expires_ms checked_ms"
    " customer_name customer_note receipt_number"
)
# The public members of a payment proof. All except the name of the format can be read
# from the blockchain.
PROOF = "format network txid script confirmations payment coinbase headers"


def invoice_values(
    snapshot: Snapshot,
    brand: merchants.BrandOnPages,
    notices: Notices,
) -> dict[str, Any]:
    """Returns the values for the template of an invoice's page.

    Times are in Unix milliseconds, durations in milliseconds.

    - `owed_sats`: the missing satoshis.
    - `due_sats`: the satoshis to pay now. This is `owed_sats`, or the dust limit if less
      than that is missing.
    - `due`: the value of `due_sats` in `currency`, at the invoice's exchange rate.
    - `beside`: the value of `due` in the merchant's currency, shown next to `due`.
    - `uri` and `qr` (SVG): a request to pay `due_sats` to the merchant, whose name the
      wallet shows. Both are None if `state` is neither waiting nor partial.
    - `gratuity`: the part of `amount` that is a tip.
    - `tax`: the tax in the rest of `amount`; None if the receipt shows no tax.
    - `overpaid_sats`: satoshis that came too late or in excess.
    - `title`: the title of the payment link; None if the description has the same text.
    - `return_url`: the URL that leads back to the shop.
    - `link_id`: the id of the payment link with which the payer can create another
      invoice.
    """
    row = snapshot.row
    state = snapshot.state
    is_payable = state in (CheckoutState.WAITING, CheckoutState.PARTIAL)
    amount, currency = amount_due(row)
    price = price_of(row)
    sums = _sums_due(snapshot, is_payable)
    request: dict[str, str | None] = {"uri": None, "qr": None}
    if is_payable:
        request |= _request(snapshot, sums["due_sats"], brand.name)
    overpaid_sats = snapshot.overpaid_sats
    link_id = None
    if notices.link_is_active and not overpaid_sats:
        link_id = row.payment_link_id
    return {
        **{name: getattr(row, name) for name in FROM_ROW.split()},
        **_times(snapshot, is_payable),
        **sums,
        **request,
        **_confirmations(snapshot),
        "state": state,
        "status": status_of(snapshot, notices.returned_sats),
        "notices": notices,
        "currency": currency,
        "amount": amount,
        "price": price,
        "gratuity": stored_amount(row.gratuity or "0"),
        "tax": tax_of(row),
        "overpaid_sats": overpaid_sats,
        "overpaid": value_of(overpaid_sats, price, currency),
        "title": _title(snapshot, notices),
        "description": row.description or None,
        "address": row.deposit_address,
        "return_url": _return_url(snapshot, brand),
        "link_id": link_id,
    }


def _confirmations(snapshot: Snapshot) -> dict[str, int]:
    """Returns the confirmations so far, those still needed, and how long they take."""
    needed = snapshot.confirmations_needed
    confirmations_left = max(0, needed - snapshot.confirmations)
    return {
        "confirmations": min(snapshot.confirmations, needed),
        "confirmations_left": confirmations_left,
        "usual_minutes": BLOCK_MINUTES * confirmations_left,
    }


def _sums_due(snapshot: Snapshot, is_payable: bool) -> dict[str, Any]:
    """Returns the missing amount and the amount to pay now, in satoshis and in currencies.

    `is_dust`: True if less than the dust limit is missing.
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


def _times(snapshot: Snapshot, is_payable: bool) -> dict[str, Any]:
    """Returns the values that depend on the current time.

    `countdown`: the minutes and seconds left, such as `4:59`, rounded up to a second.
    `ring_percent`: how much of the ring is drawn. The ring shows the time that is left,
    or the confirmations.
    """
    row = snapshot.row
    left_ms = snapshot.left_ms
    left_s = math.ceil(max(0, left_ms or 0) / 1000)
    minutes, seconds = divmod(left_s, 60)
    life_ms = None
    if row.expires_ms is not None:
        life_ms = row.expires_ms - row.created_ms
    checked_ago_ms = None
    if row.checked_ms is not None:
        checked_ago_ms = to_ms(snapshot.now) - row.checked_ms
    return {
        "left_ms": left_ms,
        "life_ms": life_ms,
        "counts_down": left_ms is not None and left_ms < COUNTDOWN_MS,
        "countdown": f"{minutes}:{seconds:02d}",
        "countdown_ms": COUNTDOWN_MS,
        "ring_percent": _ring_percent(snapshot, is_payable, life_ms),
        "checked_ago_ms": checked_ago_ms,
        "is_unwatched": checked_ago_ms is not None and checked_ago_ms > LONG_AGO_MS,
        "long_ago_ms": LONG_AGO_MS,
        "is_new": to_ms(snapshot.now) - row.created_ms < PATIENCE_MS,
    }


def _ring_percent(snapshot: Snapshot, is_payable: bool, life_ms: int | None) -> int:
    """Returns how much of the ring is drawn, in percent.

    `life_ms` is the time from the invoice's creation to its expiry; None if it never
    expires.
    """
    if snapshot.state == CheckoutState.SEEN:
        confirmations = min(snapshot.confirmations, snapshot.confirmations_needed)
        return 100 * confirmations // snapshot.confirmations_needed
    if not is_payable:
        return 0
    if not life_ms:
        return 100
    return 100 * max(0, snapshot.left_ms or 0) // life_ms


def _beside(row: Invoice, due: Decimal) -> Money | None:
    """Returns the value of `due` dollars in the merchant's currency, at the stored prices.

    Returns None if the amount is not in dollars, or if the merchant's currency is the
    dollar.
    """
    if row.amount is not None or row.currency == "USD":
        return None
    exact = due * Decimal(row.price) / Decimal(row.price_usd)
    return Money(round_money(exact, row.currency), row.currency)


def _title(snapshot: Snapshot, notices: Notices) -> str | None:
    """Returns the title of the invoice's payment link, unless the description repeats it.

    The description of a link's invoice is the link's title if the link has no
    description.
    """
    if notices.link_title == snapshot.row.description:
        return None
    return notices.link_title


def _return_url(snapshot: Snapshot, brand: merchants.BrandOnPages) -> str | None:
    url: str | None = snapshot.row.return_url
    column = RETURNS.get(snapshot.state)
    if not url and column:
        url = getattr(brand, column)
    return url and url.replace(INVOICE, snapshot.row.id)


def _request(snapshot: Snapshot, due_sats: int, label: str | None) -> dict[str, str]:
    """Returns the payment URI for the button, and a QR code of the URI without texts.

    Texts would make the QR code larger, and harder to scan.
    """
    address = snapshot.row.deposit_address
    return {
        "uri": payment_uri(address, due_sats, label, snapshot.row.description),
        "qr": qr_svg(payment_uri(address, due_sats)),
    }


def proofs_of(service: Service, snapshot: Snapshot) -> list[dict[str, Any]]:
    """Returns the proofs of the oldest payments of a paid invoice, at most MAX_SHOWN.

    Raises NotFound if the invoice is not paid, or if no payment has a proof.
    """
    row = snapshot.row
    proofs = []
    if row.status == InvoiceStatus.PAID:
        for payment in service.db.rows(payments.FIRST_PROOFS, invoice_id=row.id):
            document = json.loads(payment.document)
            proof = {
                "amount_sats": payment.amount_sats,
                "height": payment.block_height,
                "block": payment.block_hash,
                "document": {name: document[name] for name in PROOF.split()},
            }
            proofs.append(proof)
    if not proofs:
        raise NotFound("this invoice has no payment that is proven")
    return proofs
