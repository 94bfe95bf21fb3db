"""Loads payments from the database for bookkeeping, a number of rows at a time."""

import json
from collections.abc import Iterator
from decimal import Decimal
from heapq import merge
from typing import Protocol

from btcpay import hooks
from btcpay.values.money import SATS_PER_BTC, value_of
from btcpay.values.times import date_of, day_of, iso_ms, zone_of
from storage.database import Database, Row, Values, group_by
from storage.models import Merchant, Output
from storage.queries.lists import exports, keyset
from storage.queries.payments import PaymentWith
from storage.statement import as_dict

COLUMNS = (
    "day received_at recorded_at merchant invoice_id invoice_status settled reference description"
    " customer_email customer_name customer_note address amount_sats amount_btc currency"
    " value_at_receipt usd_at_receipt usd_at_quote"
    " invoice_usd_quote tip tip_currency outputs block_height block_hash payment_id bill_id"
)
# The number of payments that are loaded at a time.
PAGE = 500
# In unix milliseconds, later than any stored time.
END = 2**62


def payment_records(
    db: Database,
    merchant: Merchant,
    from_ms: int = 0,
    before_ms: int = END,
    page: int = PAGE,
) -> Iterator[Row]:
    """Yields the merchant's payments as dictionaries with COLUMNS, oldest first.

    Yields only payments that were received at from_ms <= time < before_ms, in Unix
    milliseconds. Also yields records of parts (optional plug-ins), such as refunds, at
    their time. `page` is the number of rows that are loaded at a time.
    """
    sources = [_payments(db, merchant, from_ms, before_ms, page)]
    for part in hooks.of(hooks.Exports):
        sources.append(part.records(db, merchant, from_ms, before_ms, page))
    return merge(*sources, key=lambda record: str(record["received_at"]))


class MoneyRow(Protocol):
    """A row of a payment or of a refund."""

    @property
    def id(self) -> str: ...
    @property
    def created_ms(self) -> int: ...


def record_of(merchant: Merchant, row: MoneyRow, amount_sats: int) -> Row:
    """Returns the record of a payment or a refund: a dictionary with COLUMNS.

    `amount_sats` is the amount of the record, negative for a refund. Day, time,
    merchant, amounts and id follow from the arguments. Any other column has the value
    that `row` has under its name. If `row` has none, the value is None, and the caller
    may set it.
    """
    columns = as_dict(row)
    record: Row = {name: columns.get(name) for name in COLUMNS.split()}
    zone = zone_of(merchant.timezone)
    day = date_of(day_of(row.created_ms, zone))
    return record | {
        "day": day.isoformat(),
        "received_at": iso_ms(row.created_ms),
        "merchant": merchant.name,
        "amount_sats": amount_sats,
        "amount_btc": f"{Decimal(amount_sats) / SATS_PER_BTC:.8f}",
        "payment_id": row.id,
    }


def _payments(
    db: Database,
    merchant: Merchant,
    from_ms: int,
    before_ms: int,
    page: int,
) -> Iterator[Row]:
    """Yields the records of the core's payments. Loads `page` rows at a time."""
    pages = keyset.pages(
        db,
        exports.PAYMENTS,
        page,
        from_ms,
        merchant_id=merchant.id,
        before=before_ms,
    )
    for payments in pages:
        span: Values = {
            "merchant_id": merchant.id,
            "first_ms": payments[0].created_ms,
            "last_ms": payments[-1].created_ms,
        }
        outputs = db.rows(exports.OUTPUTS_OF_PAGE, **span)
        outputs_by_payment = group_by(outputs, lambda output: output.payment_id)
        recorded_ms = _recording_times(db, span)
        for payment in payments:
            yield _record(
                merchant,
                payment,
                outputs_by_payment[payment.id],
                recorded_ms.get(payment.id),
            )


def _recording_times(db: Database, span: Values) -> dict[str, int]:
    """Returns when each payment of a page was recorded, in ms, by the payment's id.

    `span` has the parameters of RECORDS_OF_PAGE.
    """
    recorded_ms: dict[str, int] = {}
    for event in db.rows(exports.RECORDS_OF_PAGE, **span):
        payment_id = json.loads(event.detail)["id"]
        recorded_ms[payment_id] = event.happened_ms
    return recorded_ms


def _record(
    merchant: Merchant,
    row: PaymentWith,
    outputs: list[Output],
    recorded_ms: int | None,
) -> Row:
    """Returns the record of a payment: a dictionary with COLUMNS."""
    record = record_of(merchant, row, row.amount_sats) | {
        "invoice_id": row.address_invoice_id,
        "invoice_status": row.status,
        "settled": row.invoice_id is not None,
        "address": row.deposit_address,
        "usd_at_receipt": row.amount_usd_at_receipt,
        "usd_at_quote": str(value_of(row.amount_sats, Decimal(row.price_usd), "USD")),
        "invoice_usd_quote": row.amount_usd_quote,
        "tip": None,
        "tip_currency": None,
        "outputs": [f"{output.txid}:{output.vout}" for output in outputs],
        "block_height": None,
        "block_hash": None,
    }
    if recorded_ms is not None:
        record["recorded_at"] = iso_ms(recorded_ms)
    # Only the payment that completed the invoice has the gratuity, so that a sum over
    # the column counts each one once.
    has_gratuity = Decimal(row.gratuity or 0) != 0
    has_completed = row.tx_hash == row.completed_by
    if has_gratuity and has_completed:
        record["tip"] = row.gratuity
        record["tip_currency"] = row.invoice_currency
    if outputs:
        record["block_height"] = outputs[0].block_height
        record["block_hash"] = outputs[0].block_hash
    return record
