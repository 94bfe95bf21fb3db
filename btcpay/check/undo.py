"""Undoes payments and spends of coins in blocks that left the best chain."""

import logging
from collections.abc import Sequence, Set
from datetime import datetime

from btcpay import hooks
from btcpay.check.parts import plan_undo, undo_planned
from btcpay.check.settlements import payment_news
from btcpay.invoices.attention import try_update_attention
from btcpay.invoices.history import record
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import News
from btcpay.settings.settings import Settings
from storage.database import Database, Row, group_by
from storage.models import Output, Payment
from storage.queries import blocks, invoices, meta, payments
from storage.queries.events import Kind
from storage.queries.totals import balances, days, tallies

log = logging.getLogger(__name__)

# If the chain is deleted, proven rows get this height. No reorganisation removes block 0,
# so these rows are never undone.
PROVEN = 0


def begin_anew(db: Database, settings: Settings, now: datetime) -> None:
    """Deletes the stored headers, so that the next check begins the chain anew.

    Payments are kept. If a block of the new chain contains a payment's transaction, the
    payment is moved to that block. Confirmed outputs that are not payments yet become
    unconfirmed.
    """
    with db.write():
        meta.lock(db)
        db.run(blocks.KEEP_PROVEN, height=PROVEN)
        db.run(invoices.KEEP_PROVEN, height=PROVEN)
        db.run(invoices.FORGET_TIP)
        for part in hooks.of(hooks.Blocks):
            part.keep_blocks(db, PROVEN)
        undo_above(db, settings, PROVEN, now)
        db.run(blocks.CUT, height=-1)  # all headers: those above this height
        meta.put(db, meta.Key.READ_MS, "0")
    undo_planned(db, settings, now)


def undo_above(db: Database, settings: Settings, height: int, now: datetime) -> None:
    """Undoes payments and spends of coins in blocks above `height`.

    These blocks have left the best chain. Invoices that the payments settled are open
    again, and their outputs are unconfirmed again. Coins that are unspent again are
    added to the balance, even if it then exceeds 21 million bitcoin. Call this in the
    database transaction that removes the blocks, and call `parts.undo_planned`
    afterwards.
    """
    db.rows(balances.LOCK_ALL)
    db.run(tallies.ADD, name="reorganisations", label="", total=1)
    db.run(blocks.UNREPLACE, height=height)
    db.run(invoices.LOWER, height=height)
    # Loaded before the statements below, which change these rows.
    outputs = db.rows(blocks.PAID_ABOVE, height=height)
    spent = db.rows(blocks.SPENT_ABOVE, height=height)
    output_by_payment = {
        output.payment_id: output for output in outputs if output.payment_id
    }
    undone = [db.get(payments.OF_ID, payment_id=id) for id in output_by_payment]
    changed_ids = {output.invoice_id for output in [*outputs, *spent]}
    reopened_ids: set[str] = set()
    with balances.update_balances(db, changed_ids, bounded=False):
        db.run(blocks.UNSPEND, height=height)
        db.run(blocks.WAITS_AGAIN, height=height)
        _record_unspent(db, spent, now)
        _take_back_outputs(db, outputs, now)
        for payment in undone:
            has_reopened = _undo(db, payment, output_by_payment[payment.id], now)
            if has_reopened:
                reopened_ids.add(payment.address_invoice_id)
    # Each invoice once, in the order of the outputs.
    paid_ids = list(dict.fromkeys(output.invoice_id for output in outputs))
    news = _news_by_invoice(paid_ids, undone, reopened_ids)
    for invoice_id in paid_ids:
        try_update_attention(db, settings, invoice_id, now, news[invoice_id])
    days.remove(db, undone)
    plan_undo(db, height, now)


def _news_by_invoice(
    ids: Sequence[str],
    undone: Sequence[Payment],
    reopened_ids: Set[str],
) -> dict[str, list[News]]:
    """Returns the events about the undone payments of each invoice in `ids`."""
    undone_by_invoice = group_by(undone, lambda payment: payment.address_invoice_id)
    news_by_invoice: dict[str, list[News]] = {}
    for id in ids:
        news = []
        for payment in undone_by_invoice[id]:
            news.append(payment_news(EventKind.PAYMENT_UNDONE, payment))
        if id in reopened_ids:
            news.append(News(EventKind.INVOICE_REOPENED))
        news_by_invoice[id] = news
    return news_by_invoice


def _record_unspent(db: Database, coins: Sequence[Output], now: datetime) -> None:
    for coin in coins:
        detail = {"txid": coin.txid, "vout": coin.vout}
        record(db, coin.invoice_id, Kind.UNSPENT, detail, now)


def _take_back_outputs(db: Database, outputs: Sequence[Output], now: datetime) -> None:
    """Deletes the outputs' proofs, and records outputs that were not yet payments."""
    for invoice_id, txid in {(output.invoice_id, output.txid) for output in outputs}:
        db.run(payments.DELETE_PROOF, invoice_id=invoice_id, txid=txid)
    for output in outputs:
        if output.payment_id is None:
            detail = {
                "txid": output.txid,
                "vout": output.vout,
                "block": _block_detail(output),
            }
            record(db, output.invoice_id, Kind.REORGANISED, detail, now)


def _block_detail(output: Output) -> Row:
    return {"height": output.block_height, "hash": output.block_hash}


def _undo(db: Database, payment: Payment, output: Output, now: datetime) -> bool:
    """Undoes one payment. Returns True if its invoice is open again.

    `output` has the block that contained the payment.
    """
    invoice_id = payment.address_invoice_id
    db.run(payments.DELETE, payment_id=payment.id)
    db.run(tallies.ADD, name="payments_undone", label="", total=1)
    has_reopened = False
    if payment.invoice_id:
        has_reopened = db.run(invoices.REOPEN, id=invoice_id) > 0
    if has_reopened:
        db.run(payments.UNSETTLE, invoice_id=invoice_id)
    detail = {
        "id": payment.id,
        "txid": payment.tx_hash,
        "reopened": has_reopened,
        "block": _block_detail(output),
    }
    record(db, invoice_id, Kind.REORGANISED, detail, now)
    consequence = ""
    if has_reopened:
        consequence = ", the invoice is open again"
    log.error(
        "reorganised: payment %s of %s satoshis to invoice %s is undone%s",
        payment.id,
        payment.amount_sats,
        invoice_id,
        consequence,
    )
    return has_reopened
