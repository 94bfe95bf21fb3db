"""Finds the transactions that send refunds in the blocks of the chain.

A reorganisation takes back what the lost blocks sent. The result depends on which
blocks were read, not on the order in which they were read.
"""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from btcpay import hooks
from btcpay.invoices.attention import try_update_attention
from btcpay.parts.refunds import queries
from btcpay.parts.refunds.actions import SENT, UNDONE, note, step
from btcpay.parts.refunds.decide import WATCHED_BLOCKS, decide, worth_keeping
from btcpay.parts.refunds.models import Refund, RefundOutput
from btcpay.proofs.block import ProvenBlock
from btcpay.proofs.document import to_document
from btcpay.settings.settings import Settings
from btcpay.values.money import value_of
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, group_by
from storage.queries import merchants
from storage.queries.events import Kind
from storage.queries.totals import balances

log = logging.getLogger(__name__)

OutputsByScript = dict[str, list[tuple[int, int, int]]]
Prices = Mapping[str, Decimal]


def matches(db: Database, height: int, block: ProvenBlock) -> OutputsByScript:
    """Returns the outputs of a block that may send refunds, by script in hex.

    Each output is the transaction's position in the block, the vout and the satoshis.
    Their number is limited to what the refunds can use, since anybody can pay to a
    refund's address in thousands of outputs.
    """
    since: Values = {"height": height, "since": height - WATCHED_BLOCKS}
    refunds_by_script = group_by(
        db.rows(queries.SOUGHT, **since), lambda row: row.script or ""
    )
    outputs_by_script: OutputsByScript = {}
    for script, refunds in refunds_by_script.items():
        if outputs := block.contents.outputs_by_script.get(bytes.fromhex(script)):
            outputs_by_script[script] = worth_keeping(
                (row.amount_sats for row in refunds), outputs
            )
    return outputs_by_script


def connect_block(
    db: Database,
    settings: Settings,
    height: int,
    block: ProvenBlock,
    matches: OutputsByScript,
    prices: Prices,
    now: datetime,
) -> None:
    """Stores the outputs found in a block, and decides again which refunds are sent.

    Also stores one proof for each transaction. `prices` is the price of a bitcoin by
    currency.
    """
    price_texts = json.dumps(
        {currency: str(price) for currency, price in prices.items()}
    )
    positions = {position for outputs in matches.values() for position, _, _ in outputs}
    for position in sorted(positions):
        txid = block.txid(position)
        proof = to_document(
            block.evidence(position), txid, b"", settings.network.name, 1
        )
        document = json.dumps(proof)
        columns: Values = {
            "txid": txid,
            "block_height": height,
            "document": document,
            "prices": price_texts,
        }
        db.run(queries.ADD_TRANSACTION, **columns)
    new: list[Values] = [
        {
            "txid": block.txid(position),
            "vout": vout,
            "script": script,
            "amount_sats": amount_sats,
            "block_height": height,
            "block_time_ms": to_ms(block.mined_at),
            "position": position,
            "again_of": None,
        }
        for script, outputs in matches.items()
        for position, vout, amount_sats in outputs
    ]
    at_once.run(db, queries.ADD_OUTPUT, new)
    at_once.run(db, queries.MOVE, new)
    decide_again(db, settings, matches, now)


def disconnect_blocks(
    db: Database, settings: Settings, height: int, now: datetime
) -> None:
    """Deletes the outputs of blocks above `height`, which left the best chain.

    The refunds that they sent are ready to be sent again.
    """
    db.run(queries.LOWER, height=height)
    lost_outputs = db.rows(queries.DROP, height=height)
    db.run(queries.DROP_TRANSACTIONS, height=height)
    decide_again(db, settings, {row.script for row in lost_outputs}, now, lost_outputs)


def keep_blocks(db: Database, height: int) -> None:
    """Moves all sent refunds to block `height`, where no reorganisation reaches them.

    It is called when the chain is begun anew, so that no refund is sent a second time.
    """
    db.run(queries.KEEP_TRANSACTIONS, height=height)
    db.run(queries.KEEP_OUTPUTS, height=height)
    db.run(queries.KEEP_SENT, height=height)


def decide_again(
    db: Database,
    settings: Settings,
    scripts: Collection[str],
    now: datetime,
    lost_outputs: Sequence[RefundOutput] = (),
) -> None:
    """Stores which refunds the known outputs to these scripts send now.

    `lost_outputs` are outputs that a reorganisation has removed. Call it in the transaction of
    the change, while `meta.lock` is held.
    """
    rows = [
        row for script in scripts for row in db.rows(queries.OF_SCRIPT, script=script)
    ]
    for merchant_id in sorted({row.merchant_id for row in rows}):
        balances.lock(db, merchant_id)
    invoice_ids: set[str | None] = set()
    for script in sorted(scripts):
        lost_to_script = [output for output in lost_outputs if output.script == script]
        invoice_ids |= {
            row.invoice_id for row in _of_script(db, script, lost_to_script, now)
        }
    for invoice_id in sorted(filter(None, invoice_ids)):
        try_update_attention(db, settings, invoice_id, now, [])


def _of_script(
    db: Database, script: str, lost_outputs: Sequence[RefundOutput], now: datetime
) -> list[Refund]:
    """Stores which refunds of this script are sent now, and which are no longer sent.

    Returns the refunds that have changed, and those that seem to be sent twice or no
    longer seem so.
    """
    refunds = {row.id: row for row in db.rows(queries.OF_SCRIPT, script=script)}
    exact_outputs = db.rows(queries.EXACT, script=script)
    named_outputs = db.rows(queries.NAMED, script=script)
    outputs = list(dict.fromkeys([*exact_outputs, *named_outputs]))
    outputs_by_refund, again = decide(list(refunds.values()), outputs)
    by = {id: (output.txid, output.vout) for id, output in outputs_by_refund.items()}
    changed_refunds = [
        row
        for row in refunds.values()
        if (row.tx_hash, row.vout) != by.get(row.id, (None, None))
    ]
    changed_outputs = [
        output
        for output in (*lost_outputs, *outputs)
        if output.again_of != again.get(output)
    ]
    for output in changed_outputs:
        if output.again_of:
            note(
                db,
                refunds[output.again_of],
                Kind.REFUND_UNDONE,
                now,
                (output.txid, output.vout),
            )
    for row in changed_refunds:
        if row.tx_hash:
            log.error(
                "reorganised: refund %s of %s satoshis is ready",
                row.id,
                row.amount_sats,
            )
            step(db, row, UNDONE, now, by=(row.tx_hash, row.vout))
    for row in changed_refunds:
        if row.id in outputs_by_refund:
            _send(db, row, outputs_by_refund[row.id], now)
    for output in changed_outputs:
        after = again.get(output)
        db.run(queries.SET_AGAIN, txid=output.txid, vout=output.vout, again_of=after)
        if after:
            log.error("refund %s was sent again, by %s", after, output.txid)
            note(db, refunds[after], Kind.REFUND_AGAIN, now, (output.txid, output.vout))
    repeated_ids = {
        id
        for output in changed_outputs
        for id in (output.again_of, again.get(output))
        if id
    }
    return changed_refunds + [refunds[id] for id in repeated_ids]


def _send(db: Database, row: Refund, output: RefundOutput, now: datetime) -> None:
    """Stores that the output sends the refund, with its worth.

    The prices are those of the time when its block was first read, so the result does
    not depend on the order of blocks.
    """
    currency = db.get(merchants.CURRENCY, id=row.merchant_id).currency
    prices = json.loads(db.get(queries.PRICES, txid=output.txid).prices)
    columns: Values = {
        "tx_hash": output.txid,
        "vout": output.vout,
        "sent_height": output.block_height,
        "sent_ms": output.block_time_ms,
        "sent_sats": output.amount_sats,
        "currency": currency,
        "value_at_sending": _worth(output, prices, currency),
        "usd_at_sending": _worth(output, prices, "USD"),
    }
    step(db, row, SENT, now, columns, (output.txid, output.vout))


def _worth(
    output: RefundOutput, prices: Mapping[str, str], currency: str
) -> str | None:
    price = prices.get(currency)
    if price is None:
        return None
    return f"{value_of(output.amount_sats, Decimal(price), currency):f}"


def needs_blocks(db: Database) -> bool:
    """True if a refund has an address and is not sent yet."""
    return db.get_or_none(queries.WAITS) is not None


def first_needed_ms(db: Database) -> int | None:
    """Returns when the first refund was created, in Unix ms; None if there is none."""
    return db.get(queries.FIRST_MADE)[0]


HOOK = hooks.Blocks(
    matches=matches,
    connect_block=connect_block,
    disconnect_blocks=disconnect_blocks,
    keep_blocks=keep_blocks,
    needs_blocks=needs_blocks,
    first_needed_ms=first_needed_ms,
)
