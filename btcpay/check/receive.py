"""Payments as they are received: their rows, their worth then, the proofs with all headers."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from btcpay.check.settled import Settled
from btcpay.invoices.events import recorded
from btcpay.prices.price import Prices
from btcpay.proofs.verify import extended
from btcpay.settlement.values import Receipt, Scan
from btcpay.values.ids import new_id
from btcpay.values.money import value_of
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values
from storage.models import Payment
from storage.queries import blocks, events, merchants, payments
from storage.queries.events import Kind
from storage.queries.totals import days


def add_payments(db: Database, cases: Sequence[Settled], now: datetime) -> list[Payment]:
    """The rows of the payments that are made, with whole proofs."""
    found = [(case, receipt) for case in cases for receipt in case.outcome.payments]
    ids = {case.row.merchant_id for case, _ in found}
    asked: list[Values] = [{"merchant_id": id} for id in ids]
    owners = {row.id: row for row in at_once.rows(db, merchants.COUNTING, asked)}
    new = [_payment(*one, owners[one[0].row.merchant_id].currency, now) for one in found]
    made = at_once.rows(db, payments.ADD, new)
    days.add(db, made, {id: row.timezone for id, row in owners.items()})
    _extend_proofs(db, found)
    credited: list[Values] = [
        {"txid": row.tx_hash, "invoice_id": row.address_invoice_id, "payment_id": row.id}
        for row in made
    ]
    at_once.run(db, payments.CREDIT_OUTPUTS, credited)
    told = [_told(*one, row["id"], now) for one, row in zip(found, new, strict=True)]
    at_once.run(db, events.RECORD, told)
    return made


def _payment(case: Settled, receipt: Receipt, currency: str, now: datetime) -> Values:
    row = case.row
    return {
        "id": new_id("pay"),
        "merchant_id": row.merchant_id,
        "address_invoice_id": row.id,
        "invoice_id": row.id if receipt.settles else None,
        "amount_sats": receipt.amount_sats,
        **worth(currency, receipt, case.scan, now),
        "tx_hash": receipt.txid,
        "created_at": to_ms(receipt.received_at),
    }


def _told(case: Settled, receipt: Receipt, payment_id: int | str, now: datetime) -> Values:
    detail: dict[str, Any] = {
        "id": payment_id,
        "txid": receipt.txid,
        "amount_sats": receipt.amount_sats,
        "block": {"height": receipt.block.height, "hash": receipt.block.hash},
        "explorer": case.scan.explorer,
    }
    return recorded(case.row.id, Kind.PAYMENT, detail, now)


def _extend_proofs(db: Database, found: Collection[tuple[Settled, Receipt]]) -> None:
    """Adds the headers of later confirmations to proofs that have the block's alone."""
    missing = {
        (case.row.id, receipt.txid): (receipt.block.height, case.rules.confirmations - 1)
        for case, receipt in found
        if case.rules.confirmations > 1
    }
    headers = {
        (height, limit): [bytes(row.header) for row in rows]
        for height, limit in set(missing.values())
        for rows in [db.rows(blocks.FOLLOWING, height=height, limit=limit)]
    }
    keys: list[Values] = [{"invoice_id": id, "txid": txid} for id, txid in missing]
    longer: list[Values] = []
    for row in at_once.rows(db, payments.PROOF, keys):
        following = headers[missing[row.invoice_id, row.txid]]
        document = json.dumps(extended(json.loads(row.document), following))
        longer.append({"invoice_id": row.invoice_id, "txid": row.txid, "document": document})
    at_once.run(db, payments.EXTEND_PROOF, longer)


# A receipt found later than this gets no price rather than that of another hour.
RECEIPT_PRICE_AGE = timedelta(hours=1)


def is_late(mined_at: datetime, now: datetime) -> bool:
    return now - mined_at > RECEIPT_PRICE_AGE


def receipt_prices(db: Database, prices: Prices) -> Mapping[str, Decimal]:
    """The current prices of one bitcoin by currency, as far as they are known."""
    currencies = {"USD", *(row.currency for row in db.rows(merchants.CURRENCIES))}
    for currency in currencies:
        prices.of(currency).ask()  # all at once, so that waiting for all takes as long as for one
    known = {currency: prices.of(currency).current_or_none() for currency in currencies}
    return {currency: price for currency, price in known.items() if price is not None}


def worth(currency: str, receipt: Receipt, scan: Scan, now: datetime) -> Values:
    """The columns with a payment's worth, rounded to the nearest smallest unit."""
    prices = {} if is_late(receipt.block.mined_at, now) else scan.prices
    return {
        "amount_usd_at_receipt": _value(receipt.amount_sats, prices, "USD"),
        "currency": currency,
        "value_at_receipt": _value(receipt.amount_sats, prices, currency),
    }


def _value(amount_sats: int, prices: Mapping[str, Decimal], currency: str) -> str | None:
    price = prices.get(currency)
    return None if price is None else f"{value_of(amount_sats, price, currency):f}"
