"""Stores outputs, payments and proofs that follow from scans of invoice addresses."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from btcpay.check.receipt_prices import is_late
from btcpay.check.settlements import Settlement
from btcpay.proofs.document import extend_document
from btcpay.settlement.values import Output, Receipt
from btcpay.values.ids import new_id
from btcpay.values.money import value_of
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice, Payment
from storage.queries import blocks, merchants, payments
from storage.queries.totals import days


def store_outputs_and_proofs(db: Database, settlements: Sequence[Settlement]) -> None:
    """Stores changed outputs and new proofs.

    Also deletes the outputs in `forgotten` of each `Outcome`.
    """
    changed_outputs: list[Values] = []
    forgotten_outputs: list[Values] = []
    proofs: list[Values] = []
    for settlement in settlements:
        row = settlement.row
        for change in settlement.outcome.changes:
            changed_outputs.append(_output_columns(change.after, row))
        for output in settlement.outcome.forgotten:
            forgotten_outputs.append(_output_key(output, row))
        for txid, document in settlement.scan.proofs.items():
            proof: Values = {"invoice_id": row.id, "txid": txid, "document": document}
            proofs.append(proof)
    at_once.run(db, payments.PUT_OUTPUT, changed_outputs)
    at_once.run(db, payments.FORGET_OUTPUT, forgotten_outputs)
    at_once.run(db, payments.ADD_PROOF, proofs)


def _output_key(output: Output, row: Invoice) -> Values:
    return {"txid": output.txid, "vout": output.vout, "invoice_id": row.id}


def _output_columns(output: Output, row: Invoice) -> Values:
    """Returns the parameters of the statement `payments.PUT_OUTPUT`."""
    columns = _output_key(output, row) | {
        "merchant_id": row.merchant_id,
        "amount_sats": output.amount_sats,
        "coinbase": int(output.coinbase),
        "first_seen_ms": to_ms(output.first_seen_at),
        "seen_waiting": int(output.seen_waiting),
        "feerate": None,
        "inputs": None,
        "vanished_ms": None,
        "replaced_height": output.replaced_height,
        "block_height": None,
        "block_hash": None,
        "block_time_ms": None,
        "position": output.position,
        "spent_height": output.spent_height,
    }
    if output.feerate is not None:
        columns["feerate"] = output.feerate
    if output.inputs:
        columns["inputs"] = json.dumps(output.inputs)
    if output.vanished_at:
        columns["vanished_ms"] = to_ms(output.vanished_at)
    if output.block:
        columns["block_height"] = output.block.height
        columns["block_hash"] = output.block.hash
        columns["block_time_ms"] = to_ms(output.block.mined_at)
    return columns


def add_payments(
    db: Database,
    settlements: Sequence[Settlement],
    now: datetime,
) -> list[Payment]:
    """Stores the new payments, completes their proofs, and returns the payments' rows.

    Also marks earlier payments that settle their invoice only now.
    """
    receipts: list[tuple[Settlement, Receipt]] = []
    for settlement in settlements:
        for receipt in settlement.outcome.payments:
            receipts.append((settlement, receipt))
    merchant_ids = {settlement.row.merchant_id for settlement, _ in receipts}
    keys: list[Values] = [{"merchant_id": id} for id in merchant_ids]
    owners = {row.id: row for row in at_once.rows(db, merchants.COUNTING, keys)}
    columns: list[Values] = []
    for settlement, receipt in receipts:
        currency = owners[settlement.row.merchant_id].currency
        columns.append(_payment_columns(settlement, receipt, currency, now))
    new_payments = at_once.rows(db, payments.ADD, columns)
    # The totals of the merchants' days, by the merchants' time zones.
    timezones = {id: row.timezone for id, row in owners.items()}
    days.add(db, new_payments, timezones)
    _extend_proofs(db, receipts)
    _credit_outputs(db, new_payments)
    _mark_settling(db, settlements)
    return new_payments


def _credit_outputs(db: Database, new_payments: Sequence[Payment]) -> None:
    """Stores which outputs belong to the new payments."""
    credited: list[Values] = [
        {
            "txid": row.tx_hash,
            "invoice_id": row.address_invoice_id,
            "payment_id": row.id,
        }
        for row in new_payments
    ]
    at_once.run(db, payments.CREDIT_OUTPUTS, credited)


def _mark_settling(db: Database, settlements: Sequence[Settlement]) -> None:
    """Stores which earlier payments settle their invoice only now."""
    settling: list[Values] = []
    for settlement in settlements:
        for txid in settlement.outcome.settling:
            settling.append({"invoice_id": settlement.row.id, "tx_hash": txid})
    at_once.run(db, payments.SETTLE, settling)


def _payment_columns(
    settlement: Settlement,
    receipt: Receipt,
    currency: str,
    now: datetime,
) -> Values:
    """Returns the columns of a new payment.

    Its values in a currency are rounded to the currency's smallest unit.
    """
    invoice_id = None
    if receipt.settles:
        invoice_id = settlement.row.id
    values = _values_at_receipt(settlement, receipt, {"USD", currency}, now)
    return {
        "id": new_id("pay"),
        "merchant_id": settlement.row.merchant_id,
        "address_invoice_id": settlement.row.id,
        "invoice_id": invoice_id,
        "amount_sats": receipt.amount_sats,
        "amount_usd_at_receipt": values.get("USD"),
        "currency": currency,
        "value_at_receipt": values.get(currency),
        "tx_hash": receipt.txid,
        "created_ms": to_ms(receipt.received_at),
    }


def _values_at_receipt(
    settlement: Settlement,
    receipt: Receipt,
    currencies: set[str],
    now: datetime,
) -> Mapping[str, str]:
    """Returns the payment's value by currency; empty if the block is too old."""
    if is_late(receipt.block.mined_at, now):
        return {}
    prices = settlement.scan.prices
    values: dict[str, str] = {}
    for currency in currencies & prices.keys():
        value = value_of(receipt.amount_sats, prices[currency], currency)
        values[currency] = f"{value:f}"
    return values


class _NextHeaders(NamedTuple):
    """The first `limit` headers that follow the block at `height`."""

    height: int
    limit: int


def _extend_proofs(
    db: Database,
    receipts: Sequence[tuple[Settlement, Receipt]],
) -> None:
    """Adds the headers of later confirmations to the payments' stored proofs.

    Before that, a proof has only the header of its own block.
    """
    missing = _missing_headers(receipts)
    # Many payments of one block need the same headers, which are loaded only once.
    headers: dict[_NextHeaders, list[bytes]] = {}
    for next_headers in set(missing.values()):
        height, limit = next_headers
        rows = db.rows(blocks.FOLLOWING, height=height, limit=limit)
        headers[next_headers] = [bytes(row.header) for row in rows]
    keys: list[Values] = []
    for invoice_id, txid in missing:
        keys.append({"invoice_id": invoice_id, "txid": txid})
    extended: list[Values] = []
    for row in at_once.rows(db, payments.PROOF, keys):
        following = headers[missing[row.invoice_id, row.txid]]
        document = extend_document(json.loads(row.document), following)
        proof: Values = {
            "invoice_id": row.invoice_id,
            "txid": row.txid,
            "document": json.dumps(document),
        }
        extended.append(proof)
    at_once.run(db, payments.EXTEND_PROOF, extended)


def _missing_headers(
    receipts: Sequence[tuple[Settlement, Receipt]],
) -> dict[tuple[str, str], _NextHeaders]:
    """Returns the headers that each proof lacks, by the proof's invoice id and txid."""
    missing: dict[tuple[str, str], _NextHeaders] = {}
    for settlement, receipt in receipts:
        # The stored proof already has the header of the payment's block.
        header_count = settlement.rules.confirmations - 1
        if header_count > 0:
            key = (settlement.row.id, receipt.txid)
            missing[key] = _NextHeaders(receipt.block.height, header_count)
    return missing
