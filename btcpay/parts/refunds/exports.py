"""Sent refunds in the files for bookkeeping, and in the wallet's labels (BIP329)."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal

from btcpay import hooks
from btcpay.bitcoin.tx import parse_tx
from btcpay.exports.labels import label_of
from btcpay.exports.payments import record_of
from btcpay.parts.refunds import sent_queries
from btcpay.parts.refunds.models import Refund
from btcpay.parts.refunds.sent_queries import SentRefund
from btcpay.values.money import value_of
from storage.database import Database, Row, group_by
from storage.models import Merchant
from storage.queries.lists import keyset


def records(
    db: Database,
    merchant: Merchant,
    from_ms: int,
    before_ms: int,
    page: int,
) -> Iterator[Row]:
    """Yields the records of the refunds with from_ms <= time of sending < before_ms.

    The times are in unix milliseconds. The sums are negative. `page` is the number of
    rows that one query loads.
    """
    pages = keyset.pages(
        db,
        sent_queries.SENT,
        page,
        from_ms,
        merchant_id=merchant.id,
        before=before_ms,
    )
    for rows in pages:
        for row in rows:
            yield _record(merchant, row)


def _record(merchant: Merchant, row: SentRefund) -> Row:
    """Returns the record of a sent refund. Its `payment_id` is the refund's id.

    Its value in currencies is the value at the time when it was sent.
    """
    sats = row.sent_sats or row.amount_sats
    usd_at_quote = None
    if row.price_usd:
        usd_at_quote = str(value_of(sats, Decimal(row.price_usd), "USD"))
    return record_of(merchant, row, -sats) | {
        "settled": False,
        "description": row.reason,
        "value_at_receipt": _negative(row.value_at_sending),
        "usd_at_receipt": _negative(row.usd_at_sending),
        "usd_at_quote": _negative(usd_at_quote),
        "outputs": [f"{row.tx_hash}:{row.vout}"],
        "block_height": row.sent_height,
    }


def _negative(amount: str | None) -> str | None:
    """Returns the positive amount with a minus sign; None stays None."""
    if amount is None:
        return None
    return f"-{amount}"


def labels(db: Database, merchant: Merchant) -> Iterator[Row]:
    """Yields labels (BIP329) for the transactions that sent refunds, and for their inputs."""
    rows = db.rows(sent_queries.LABELED, merchant_id=merchant.id)
    refunds_by_txid = group_by(rows, lambda row: row.tx_hash or "")
    for txid, refunds in refunds_by_txid.items():
        yield from _labels_of(db, txid, refunds)


def _labels_of(db: Database, txid: str, refunds: Sequence[Refund]) -> Iterator[Row]:
    text = "; ".join(f"Refund {row.reason or row.id}" for row in refunds)
    yield label_of("tx", txid, text)
    proof = json.loads(db.get(sent_queries.DOCUMENT, txid=txid).document)
    tx = parse_tx(bytes.fromhex(proof["payment"]["raw_tx"]))
    for index in range(len(tx.inputs)):
        yield label_of("input", f"{txid}:{index}", text)


HOOK = hooks.Exports(records=records, labels=labels)
