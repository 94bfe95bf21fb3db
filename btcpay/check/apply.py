"""Writes the consequences of a scan of an address in one transaction."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from btcpay.check.news import news_of
from btcpay.check.report import Report
from btcpay.invoices.events import finish, record, update_attention
from btcpay.invoices.status import invoice_of, known_outputs, rules_for
from btcpay.prices.price import Prices
from btcpay.proofs.verify import extended
from btcpay.settings.settings import Settings
from btcpay.settlement.settle import Change, Outcome, settle
from btcpay.settlement.values import Output, Receipt, Scan
from btcpay.values.errors import BeyondMoney
from btcpay.values.ids import new_id
from btcpay.values.money import value_of
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Invoice, Payment
from storage.queries import blocks, events, invoices, merchants, payments
from storage.queries.events import Kind
from storage.queries.totals import balances, days, gaps

Proofs = Mapping[str, str]
LONG_HISTORY = 1000  # of one invoice; receivers may be sent each of them
log = logging.getLogger(__name__)


def try_apply(
    db: Database,
    settings: Settings,
    invoice_id: str,
    scan: Scan,
    now: datetime,
    report: Report,
    proofs: Proofs | None = None,
) -> bool:
    """Applies a scan and reports the new status; returns False if that failed.

    An error of one invoice must not stop the others: the next is somebody's money too.
    """
    try:
        before, after = apply(db, settings, invoice_id, scan, now, proofs)
    except BeyondMoney as error:
        log.warning("invoice %s could not be looked for: %s", invoice_id, error)
    except Exception:  # noqa: BLE001 - the edge of the loops over invoices
        log.exception("invoice %s could not be settled", invoice_id)
    else:
        if before != after:
            report.changed[invoice_id] = after
        return True
    report.failed.append(invoice_id)
    return False


def apply(
    db: Database,
    settings: Settings,
    invoice_id: str,
    scan: Scan,
    now: datetime,
    proofs: Proofs | None = None,
) -> tuple[str, str]:
    """Writes all consequences of a scan, or none; returns the status before and after.

    `proofs`: by txid, the documents that prove a block's payments. Raises BeyondMoney for sightings
    of more money than can exist, never for proven outputs.
    """
    with db.write():
        balances.lock(db, db.only(invoices.WHOLE, id=invoice_id).merchant_id)
        row = db.only(invoices.WHOLE, id=invoice_id)
        rules = rules_for(settings, row)
        known = known_outputs(db, invoice_id, scan)
        outcome = settle(invoice_of(row), known, scan, rules, now)
        with balances.kept(db, invoice_id, row.merchant_id, bounded=scan.waiting is not None):
            for change in outcome.changes:
                db.run(payments.PUT_OUTPUT, **_columns(change.after, row))
            for output in outcome.forgotten:
                db.run(payments.FORGET_OUTPUT, **_key(output, row))
            noted = _noted(db, row.id, outcome.changes)
            for change in noted:
                if change.kind:
                    record(db, row.id, Kind(change.kind), _detail(change, scan), now)
            for txid, document in (proofs or {}).items():
                proof: Values = {"invoice_id": invoice_id, "txid": txid, "document": document}
                db.run(payments.ADD_PROOF, **proof)
            made = [
                _add_payment(db, row, receipt, scan, rules.confirmations, now)
                for receipt in outcome.payments
            ]
            for txid in outcome.settling:
                db.run(payments.SETTLE, invoice_id=invoice_id, tx_hash=txid)
        if outcome.changes:
            gaps.note(db, row)
        _end(db, settings, row, outcome, noted, made, scan, now)
        return row.status, outcome.verdict.status


def _end(
    db: Database,
    settings: Settings,
    row: Invoice,
    outcome: Outcome,
    noted: Sequence[Change],
    made: Sequence[Payment],
    scan: Scan,
    now: datetime,
) -> None:
    verdict = outcome.verdict
    has_ended = verdict.status != row.status
    if row.status == "open" and row.covered_at is None and not verdict.missing_sats:
        db.run(invoices.COVER, id=row.id, at=to_ms(now))
    if has_ended:
        paid = verdict.tx_hash, to_ms(verdict.paid_at) if verdict.paid_at else None
        finish(db, row, now, verdict.status, verdict.reason, scan.explorer, *paid)
    if has_ended or outcome.changes or outcome.forgotten or made or outcome.settling:
        news = news_of(replace(outcome, changes=noted), made, row.status)
        update_attention(db, settings, row.id, now, news)


def _noted(db: Database, invoice_id: str, changes: Sequence[Change]) -> list[Change]:
    """The changes for history and receivers; of a long history, only those in a block."""
    is_long = db.only(events.COUNT, invoice_id=invoice_id)[0] >= LONG_HISTORY
    return [one for one in changes if one.after.block or not is_long]


def _key(output: Output, row: Invoice) -> Values:
    return {"txid": output.txid, "vout": output.vout, "invoice_id": row.id}


def _columns(output: Output, row: Invoice) -> Values:
    block = output.block
    return _key(output, row) | {
        "merchant_id": row.merchant_id,
        "amount_sats": output.amount_sats,
        "coinbase": int(output.coinbase),
        "first_seen_at": to_ms(output.first_seen_at),
        "seen_waiting": int(output.seen_waiting),
        "inputs": json.dumps(output.inputs) if output.inputs else None,
        "vanished_at": to_ms(output.vanished_at) if output.vanished_at else None,
        "replaced_height": output.replaced_height,
        "block_height": block.height if block else None,
        "block_hash": block.hash if block else None,
        "block_time_at": to_ms(block.mined_at) if block else None,
        "position": output.position,
        "spent_height": output.spent_height,
    }


def _detail(change: Change, scan: Scan) -> dict[str, Any]:
    output = change.after
    detail: dict[str, Any] = {
        "txid": output.txid,
        "vout": output.vout,
        "amount_sats": output.amount_sats,
        "explorer": scan.explorer,
    }
    if change.kind in (Kind.SEEN, Kind.SEEN_AGAIN, Kind.MOVED):
        block = output.block
        detail["block"] = block and {"height": block.height, "hash": block.hash}
    elif change.kind == Kind.SPENT:
        detail["height"] = output.spent_height
    return detail


def _add_payment(
    db: Database, row: Invoice, receipt: Receipt, scan: Scan, confirmations: int, now: datetime
) -> Payment:
    payment_id, block = new_id("pay"), receipt.block
    new: Values = {
        "id": payment_id,
        "merchant_id": row.merchant_id,
        "address_invoice_id": row.id,
        "invoice_id": row.id if receipt.settles else None,
        "amount_sats": receipt.amount_sats,
        **worth(db, row.merchant_id, receipt, scan, now),
        "tx_hash": receipt.txid,
        "created_at": to_ms(receipt.received_at),
    }
    payment = db.only(payments.ADD, **new)
    days.add(db, payment)
    key: Values = {"txid": receipt.txid, "invoice_id": row.id}
    _extend_proof(db, key, block.height, confirmations)
    db.run(payments.CREDIT_OUTPUTS, **key | {"payment_id": payment_id})
    detail = {
        "id": payment_id,
        "txid": receipt.txid,
        "amount_sats": receipt.amount_sats,
        "block": {"height": block.height, "hash": block.hash},
        "explorer": scan.explorer,
    }
    record(db, row.id, Kind.PAYMENT, detail, now)
    return payment


def _extend_proof(db: Database, key: Values, height: int, confirmations: int) -> None:
    """Adds the headers of later confirmations to a proof that has the block's alone."""
    if confirmations > 1:
        following = db.rows(blocks.FOLLOWING, height=height, limit=confirmations - 1)
        document = json.loads(db.only(payments.PROOF, **key).document)
        whole = extended(document, [bytes(row.header) for row in following])
        db.run(payments.EXTEND_PROOF, **key | {"document": json.dumps(whole)})


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


def worth(db: Database, merchant_id: int, receipt: Receipt, scan: Scan, now: datetime) -> Values:
    """The columns with a payment's worth, rounded to the nearest smallest unit."""
    prices = {} if is_late(receipt.block.mined_at, now) else scan.prices
    currency = db.only(merchants.CURRENCY, id=merchant_id).currency
    return {
        "amount_usd_at_receipt": _value(receipt.amount_sats, prices, "USD"),
        "currency": currency,
        "value_at_receipt": _value(receipt.amount_sats, prices, currency),
    }


def _value(amount_sats: int, prices: Mapping[str, Decimal], currency: str) -> str | None:
    price = prices.get(currency)
    return None if price is None else f"{value_of(amount_sats, price, currency):f}"
