"""Finds the transactions that send refunds in blocks.

If a reorganisation removes a block, the refunds that it sent are not sent any more. The
result depends on which blocks were processed, but not on their order.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from btcpay import hooks
from btcpay.parts.refunds import queries
from btcpay.parts.refunds.apply import decide_again
from btcpay.parts.refunds.decide import WATCHED_BLOCKS, Paid, worth_keeping
from btcpay.proofs.block import ProvenBlock
from btcpay.proofs.document import to_document
from btcpay.settings.settings import Settings
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values, group_by

OutputsByScript = dict[str, list[Paid]]
Prices = Mapping[str, Decimal]


def matches(db: Database, height: int, block: ProvenBlock) -> OutputsByScript:
    """Returns the outputs of a block that may send refunds, by script in hex.

    An output is a tuple: the transaction's position in the block, the vout and the
    satoshis. Outputs that the refunds cannot need are left out, since anybody can pay
    to a refund's address in thousands of outputs.
    """
    sought = db.rows(queries.SOUGHT, height=height, since=height - WATCHED_BLOCKS)
    refunds_by_script = group_by(sought, lambda row: row.script or "")
    outputs_by_script: OutputsByScript = {}
    for script, refunds in refunds_by_script.items():
        outputs = block.contents.outputs_by_script.get(bytes.fromhex(script))
        if outputs:
            sums_sats = [row.amount_sats for row in refunds]
            outputs_by_script[script] = worth_keeping(sums_sats, outputs)
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

    `matches` is the result of the function `matches` for this block. With each
    transaction, stores a proof and the prices. `prices` has the price of one bitcoin by
    currency.
    """
    positions = set[int]()
    for outputs in matches.values():
        positions.update(position for position, _vout, _amount_sats in outputs)
    price_texts = json.dumps({code: str(price) for code, price in prices.items()})
    for position in sorted(positions):
        db.run(
            queries.ADD_TRANSACTION,
            txid=block.txid(position),
            block_height=height,
            document=_proof_of(block, position, settings.network.name),
            prices=price_texts,
        )
    rows = _output_rows(block, height, matches)
    at_once.run(db, queries.ADD_OUTPUT, rows)
    at_once.run(db, queries.MOVE, rows)
    decide_again(db, settings, matches, now)


def _proof_of(block: ProvenBlock, position: int, network_name: str) -> str:
    """Returns the proof, as JSON, that the block has the transaction at this position."""
    proof = to_document(
        evidence=block.evidence(position),
        txid=block.txid(position),
        script=b"",  # the command `refund proof` adds the refund's script
        network=network_name,
        confirmations=1,
    )
    return json.dumps(proof)


def _output_rows(
    block: ProvenBlock, height: int, matches: OutputsByScript
) -> list[Values]:
    """Returns the columns of each output in `matches`, which are in the block at `height`."""
    rows: list[Values] = []
    for script, outputs in matches.items():
        for position, vout, amount_sats in outputs:
            row: Values = {
                "txid": block.txid(position),
                "vout": vout,
                "script": script,
                "amount_sats": amount_sats,
                "block_height": height,
                "block_time_ms": to_ms(block.mined_at),
                "position": position,
                "again_of": None,
            }
            rows.append(row)
    return rows


def disconnect_blocks(
    db: Database,
    settings: Settings,
    height: int,
    now: datetime,
) -> None:
    """Deletes the outputs of blocks above `height`, which have left the best chain.

    A refund that was found only in these outputs gets the status `ready` again.
    """
    db.run(queries.LOWER, height=height)
    lost_outputs = db.rows(queries.DROP, height=height)
    db.run(queries.DROP_TRANSACTIONS, height=height)
    decide_again(db, settings, {row.script for row in lost_outputs}, now, lost_outputs)


def keep_blocks(db: Database, height: int) -> None:
    """Sets the block height of all sent refunds to `height`, which no reorganisation reaches.

    It is called before the stored chain is deleted and built anew. Otherwise these
    refunds would count as not sent, and the merchant could send them a second time.
    """
    db.run(queries.KEEP_TRANSACTIONS, height=height)
    db.run(queries.KEEP_OUTPUTS, height=height)
    db.run(queries.KEEP_SENT, height=height)


def needs_blocks(db: Database) -> bool:
    """True if there is a refund that has an address and is not sent yet."""
    return db.get_or_none(queries.WAITS) is not None


def first_needed_ms(db: Database) -> int | None:
    """Returns when the first refund was created, in unix milliseconds; None if there is none."""
    (first_made_ms,) = db.get(queries.FIRST_MADE)
    return first_made_ms


HOOK = hooks.Blocks(
    matches=matches,
    connect_block=connect_block,
    disconnect_blocks=disconnect_blocks,
    keep_blocks=keep_blocks,
    needs_blocks=needs_blocks,
    first_needed_ms=first_needed_ms,
)
