"""Blocks send refunds: each is searched for in the pass that reads it, or takes back what it sent.

Whatever the order in which blocks are read, what is sent follows from all that are read.
"""

import json
import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal

from btcpay.invoices.events import try_update
from btcpay.proofs.block import ProvenBlock
from btcpay.proofs.verify import to_document
from btcpay.refunds import queries
from btcpay.refunds.acts import note, tell
from btcpay.refunds.decide import WATCHED_BLOCKS, Paid, Wanted, decide
from btcpay.refunds.kinds import RefundKind
from btcpay.settings.settings import Settings
from btcpay.values.money import value_of
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Refund, RefundOutput
from storage.queries import merchants
from storage.queries.events import Kind
from storage.queries.totals import balances

log = logging.getLogger(__name__)

Found = dict[str, list[tuple[int, int, int]]]
Prices = Mapping[str, Decimal]
END = 2**62  # above any block


def concerns(db: Database, height: int, block: ProvenBlock) -> Found:
    """Position, vout and satoshis of what the block pays to refunds' scripts, enough for one."""
    least: dict[str | None, int] = {}
    sought = db.rows(queries.READY) + db.rows(queries.LATELY_SENT, height=height - WATCHED_BLOCKS)
    for row in sought:
        least[row.script] = min(row.amount_sats, least.get(row.script, row.amount_sats))
    paid = block.parts.paid
    found = {script: paid.get(bytes.fromhex(script), ()) for script in least if script}
    return {
        script: enough
        for script, outputs in found.items()
        if (enough := [one for one in outputs if one[2] >= least[script]])
    }


def apply(
    db: Database,
    settings: Settings,
    height: int,
    block: ProvenBlock,
    found: Found,
    prices: Prices,
    now: datetime,
) -> None:
    """Keeps the outputs with their proofs, and decides again what they send."""
    for script, outputs in found.items():
        for position, vout, amount_sats in outputs:
            txid, raw = block.txid(position), bytes.fromhex(script)
            proof = to_document(block.evidence(position), txid, raw, settings.network.name, 1)
            db.run(
                queries.ADD_OUTPUT,
                txid=txid,
                vout=vout,
                script=script,
                amount_sats=amount_sats,
                block_height=height,
                block_time_at=to_ms(block.mined_at),
                position=position,
                document=json.dumps(proof),
                again_of=None,
            )
    _decide(db, settings, found, prices, now)


def undo(db: Database, settings: Settings, height: int, now: datetime) -> None:
    """Takes back what blocks above `height` sent, since they left the chain."""
    db.run(queries.LOWER, height=height)
    lost = {row.script for row in db.rows(queries.LOST, height=height)}
    _decide(db, settings, lost, {}, now, height)
    db.run(queries.DROP, height=height)


def keep(db: Database, height: int) -> None:
    """For a chain that is given up: what was sent is not sent again."""
    db.run(queries.KEEP_OUTPUTS, height=height)
    db.run(queries.KEEP_SENT, height=height)


def _decide(
    db: Database,
    settings: Settings,
    scripts: Collection[str],
    prices: Prices,
    now: datetime,
    top: int = END,
) -> None:
    """Decides again on what was paid to these scripts, up to the block `top`."""
    rows = [row for script in scripts for row in db.rows(queries.OF_SCRIPT, script=script)]
    for merchant_id in sorted({row.merchant_id for row in rows}):
        balances.lock(db, merchant_id)
    touched: set[str] = set()
    for script in sorted(scripts):
        touched |= _of_script(db, script, prices, now, top)
    for invoice_id in sorted(touched):
        try_update(db, settings, invoice_id, now, [])


def _of_script(db: Database, script: str, prices: Prices, now: datetime, top: int) -> set[str]:
    """Writes what is sent now and what no longer is; returns the invoices of either."""
    refunds = {row.id: row for row in db.rows(queries.OF_SCRIPT, script=script)}
    outputs = {_paid(row): row for row in db.rows(queries.OUTPUTS, script=script)}
    wanted = [Wanted(row.id, row.amount_sats, row.above_height or 0) for row in refunds.values()]
    sent, again = decide(wanted, (paid for paid in outputs if paid.height <= top))
    changed = {row.id: row for row in refunds.values() if not _is_by(row, sent.get(row.id))}
    doubled = {paid: one for paid, one in outputs.items() if one.again_of != again.get(paid)}
    for row in filter(_was_sent, changed.values()):
        _take_back(db, row, now)
    for one in doubled.values():
        if one.again_of:
            row = refunds[one.again_of]
            note(db, row, Kind.REFUND_UNDONE, now, txid=one.txid, vout=one.vout)
    for id, row in changed.items():
        if id in sent:
            _send(db, row, outputs[sent[id]], prices, now)
    for paid, one in doubled.items():
        db.run(queries.SET_AGAIN, txid=one.txid, vout=one.vout, again_of=again.get(paid))
        if paid in again:
            log.error("refund %s was sent again, by %s", again[paid], one.txid)
            note(db, refunds[again[paid]], Kind.REFUND_AGAIN, now, txid=one.txid, vout=one.vout)
    named = [*changed, *(one.again_of or again[paid] for paid, one in doubled.items())]
    return {owner for id in named if (owner := refunds[id].invoice_id)}


def _paid(row: RefundOutput) -> Paid:
    return Paid(row.block_height, row.position, row.amount_sats, row.vout, row.txid)


def _was_sent(row: Refund) -> bool:
    return row.status == "sent"


def _is_by(row: Refund, paid: Paid | None) -> bool:
    """True if what is stored of the refund is what was decided."""
    if paid is None:
        return not _was_sent(row)
    return (row.sent_height, row.vout, row.tx_hash) == (paid.height, paid.vout, paid.txid)


def _send(db: Database, row: Refund, output: RefundOutput, prices: Prices, now: datetime) -> None:
    currency = db.only(merchants.CURRENCY, id=row.merchant_id).currency
    sent: Values = {
        "id": row.id,
        "tx_hash": output.txid,
        "vout": output.vout,
        "sent_height": output.block_height,
        "sent_at": output.block_time_at,
        "currency": currency,
        "value_at_sending": _worth(row, prices, currency),
        "usd_at_sending": _worth(row, prices, "USD"),
    }
    db.run(queries.SEND, **sent)
    note(db, row, Kind.REFUND_SENT, now, txid=output.txid, vout=output.vout)
    tell(db, row, RefundKind.SENT, now)


def _worth(row: Refund, prices: Prices, currency: str) -> str | None:
    price = prices.get(currency)
    return None if price is None else f"{value_of(row.amount_sats, price, currency):f}"


def _take_back(db: Database, row: Refund, now: datetime) -> None:
    log.error("reorganised: refund %s of %s satoshis is ready again", row.id, row.amount_sats)
    db.run(queries.UNDO, id=row.id)
    note(db, row, Kind.REFUND_UNDONE, now, txid=row.tx_hash, vout=row.vout)
    tell(db, row, RefundKind.UNDONE, now)
