"""Blocks send refunds: each is searched for in the pass that reads it, or takes back what it sent.

Whatever the order in which blocks are read, what is sent follows from all that are read.
"""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from btcpay.invoices.events import try_update
from btcpay.proofs.block import ProvenBlock
from btcpay.proofs.verify import to_document
from btcpay.refunds import queries
from btcpay.refunds.acts import SENT, UNDONE, note, step
from btcpay.refunds.decide import WATCHED_BLOCKS, decide
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


def concerns(db: Database, height: int, block: ProvenBlock) -> Found:
    """Position, vout and satoshis of what the block pays to refunds' scripts, enough for one."""
    least: dict[str, int] = {}
    for row in db.rows(queries.SOUGHT, height=height - WATCHED_BLOCKS):
        script = row.script or ""
        least[script] = min(row.amount_sats, least.get(script, row.amount_sats))
    paid = block.parts.paid
    found = {
        script: [one for one in paid.get(bytes.fromhex(script), ()) if one[2] >= sats]
        for script, sats in least.items()
    }
    return {script: outputs for script, outputs in found.items() if outputs}


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
            new: Values = {
                "txid": txid,
                "vout": vout,
                "script": script,
                "amount_sats": amount_sats,
                "block_height": height,
                "block_time_at": to_ms(block.mined_at),
                "position": position,
                "document": json.dumps(proof),
                "again_of": None,
            }
            db.run(queries.ADD_OUTPUT, **new)
            db.run(queries.MOVE, **new)
    _decide(db, settings, found, prices, now)


def undo(db: Database, settings: Settings, height: int, now: datetime) -> None:
    """Takes back what blocks above `height` sent, since they left the chain."""
    db.run(queries.LOWER, height=height)
    lost = db.rows(queries.DROP, height=height)
    _decide(db, settings, {row.script for row in lost}, {}, now, lost)


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
    lost: Sequence[RefundOutput] = (),
) -> None:
    """Decides again on what was paid to these scripts, of which blocks have taken back `lost`."""
    rows = [row for script in scripts for row in db.rows(queries.OF_SCRIPT, script=script)]
    for merchant_id in sorted({row.merchant_id for row in rows}):
        balances.lock(db, merchant_id)
    touched: set[str | None] = set()
    for script in sorted(scripts):
        gone = [one for one in lost if one.script == script]
        touched |= {row.invoice_id for row in _of_script(db, script, gone, prices, now)}
    for invoice_id in sorted(filter(None, touched)):
        try_update(db, settings, invoice_id, now, [])


def _of_script(
    db: Database, script: str, lost: Sequence[RefundOutput], prices: Prices, now: datetime
) -> list[Refund]:
    """Writes what is sent now and what no longer is; returns the refunds of either."""
    refunds = {row.id: row for row in db.rows(queries.OF_SCRIPT, script=script)}
    outputs = db.rows(queries.OUTPUTS, script=script)
    sent, again = decide(list(refunds.values()), outputs)
    by = {id: (one.txid, one.vout) for id, one in sent.items()}
    changed = [
        row for row in refunds.values() if (row.tx_hash, row.vout) != by.get(row.id, (None, None))
    ]
    doubled = [one for one in (*lost, *outputs) if one.again_of != again.get(one)]
    for one in doubled:
        if one.again_of:
            note(db, refunds[one.again_of], Kind.REFUND_UNDONE, now, (one.txid, one.vout))
    for row in changed:
        if row.tx_hash:
            log.error("reorganised: refund %s of %s satoshis is ready", row.id, row.amount_sats)
            step(db, row, UNDONE, now, by=(row.tx_hash, row.vout))
    for row in changed:
        if row.id in sent:
            _send(db, row, sent[row.id], prices, now)
    for one in doubled:
        after = again.get(one)
        db.run(queries.SET_AGAIN, txid=one.txid, vout=one.vout, again_of=after)
        if after:
            log.error("refund %s was sent again, by %s", after, one.txid)
            note(db, refunds[after], Kind.REFUND_AGAIN, now, (one.txid, one.vout))
    named = {id for one in doubled for id in (one.again_of, again.get(one)) if id}
    return changed + [refunds[id] for id in named]


def _send(db: Database, row: Refund, output: RefundOutput, prices: Prices, now: datetime) -> None:
    currency = db.only(merchants.CURRENCY, id=row.merchant_id).currency
    sent: Values = {
        "tx_hash": output.txid,
        "vout": output.vout,
        "sent_height": output.block_height,
        "sent_at": output.block_time_at,
        "currency": currency,
        "value_at_sending": _worth(row, prices, currency),
        "usd_at_sending": _worth(row, prices, "USD"),
    }
    step(db, row, SENT, now, sent, (output.txid, output.vout))


def _worth(row: Refund, prices: Prices, currency: str) -> str | None:
    price = prices.get(currency)
    return None if price is None else f"{value_of(row.amount_sats, price, currency):f}"
