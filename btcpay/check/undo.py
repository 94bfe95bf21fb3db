"""Undoes the payments and the spends of coins in blocks that left the best chain."""

import logging
from collections.abc import Sequence
from datetime import datetime

from btcpay.check.news import undone
from btcpay.invoices.events import record, try_update
from btcpay.notify.publish import News
from btcpay.settings.settings import Settings
from btcpay.values.parts import brought
from storage.database import Database, Row, grouped
from storage.models import Output, Payment
from storage.queries import blocks, invoices, meta, payments
from storage.queries.events import Kind
from storage.queries.totals import balances, days, tallies

log = logging.getLogger(__name__)

# Replaces heights of a chain that is given up; no reorganisation reaches below block 1.
PROVEN = 0


def begin_anew(db: Database, settings: Settings, now: datetime) -> None:
    """Forgets the chain and its outputs that are no payment yet; the next check begins again.

    Payments stay; a block of the new chain that has one, too, gives it its new place.
    """
    with db.write():
        meta.lock(db)
        db.run(blocks.KEEP_PROVEN, height=PROVEN)
        db.run(invoices.KEEP_PROVEN, height=PROVEN)
        for part in brought("blocks"):
            part.keep(db, PROVEN)
        undo_above(db, settings, PROVEN, now)
        db.run(blocks.CUT, height=-1)
        meta.put(db, meta.Key.READ_AT, "0")


def undo_above(db: Database, settings: Settings, height: int, now: datetime) -> None:
    """Takes back every payment and every spend in blocks above `height`, which left the chain.

    Call it in the transaction in which they leave. Invoices that the payments settled are open
    again, and outputs wait again. A coin that comes back is added even beyond the money bound.
    """
    balances.lock_all(db)
    db.run(tallies.ADD, name="reorganisations", label="", total=1)
    db.run(blocks.UNREPLACE, height=height)
    paid = grouped(db.rows(blocks.PAID_ABOVE, height=height), lambda one: one.invoice_id)
    spent = grouped(db.rows(blocks.SPENT_ABOVE, height=height), lambda one: one.invoice_id)
    taken: list[Payment] = []
    for invoice_id in paid | spent:
        with balances.kept(db, [invoice_id], bounded=False):
            for coin in spent.get(invoice_id, ()):
                detail = {"txid": coin.txid, "vout": coin.vout}
                record(db, invoice_id, Kind.UNSPENT, detail, now)
            db.run(blocks.UNSPEND, invoice_id=invoice_id, height=height)
            rows, news = _undo_outputs(db, invoice_id, paid.get(invoice_id, ()), height, now)
        taken += rows
        if invoice_id in paid:
            try_update(db, settings, invoice_id, now, news)
    days.take(db, taken)
    for part in brought("blocks"):
        part.undo(db, settings, height, now)


def _undo_outputs(
    db: Database, invoice_id: str, outputs: Sequence[Output], height: int, now: datetime
) -> tuple[list[Payment], list[News]]:
    """The payments that are undone, and the events that tell of it."""
    ids = dict.fromkeys(output.payment_id for output in outputs if output.payment_id)
    rows = [db.only(payments.OF_ID, payment_id=payment_id) for payment_id in ids]
    blocks_of = {output.txid: output for output in outputs}
    for output in outputs:
        if output.payment_id is None:
            detail = {"txid": output.txid, "vout": output.vout}
            record(db, invoice_id, Kind.REORGANISED, detail | _block(output), now)
            log.warning("reorganised: %s to invoice %s waits again", output.txid, invoice_id)
    db.run(blocks.WAITS_AGAIN, invoice_id=invoice_id, height=height)
    for txid in blocks_of:
        db.run(payments.DELETE_PROOF, invoice_id=invoice_id, txid=txid)
    reopened = [
        _undo_payment(db, payment, _block(blocks_of[payment.tx_hash]), now) for payment in rows
    ]
    return rows, undone(rows, any(reopened))


def _block(output: Output) -> Row:
    return {"block": {"height": output.block_height, "hash": output.block_hash}}


def _undo_payment(db: Database, payment: Payment, block: Row, now: datetime) -> bool:
    """True if its invoice is open again."""
    invoice_id = payment.address_invoice_id
    db.run(payments.DELETE, payment_id=payment.id)
    db.run(tallies.ADD, name="payments_undone", label="", total=1)
    reopened = payment.invoice_id is not None and db.run(invoices.REOPEN, id=invoice_id)
    if reopened:
        db.run(payments.UNSETTLE, invoice_id=invoice_id)
    detail = {"id": payment.id, "txid": payment.tx_hash, "reopened": bool(reopened)}
    record(db, invoice_id, Kind.REORGANISED, detail | block, now)
    log.error(
        "reorganised: payment %s of %s satoshis to invoice %s is undone%s",
        payment.id,
        payment.amount_sats,
        invoice_id,
        ", the invoice is open again" if reopened else "",
    )
    return bool(reopened)
