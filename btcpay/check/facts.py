"""Finds the facts in a block that concern invoices: payments, spent coins, double spends.

A double spend is a transaction that spends an input of an unconfirmed payment.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence, Set

from btcpay.bitcoin.tx import Outpoint, parse_tx
from btcpay.bitcoin.wire import hash_from_hex, hash_to_hex
from btcpay.invoices.status import inputs_of
from btcpay.proofs.block import ProvenBlock
from btcpay.proofs.document import to_document
from btcpay.settlement.values import Block, Scan, SeenOutput
from btcpay.values.errors import BadRow
from storage.database import Database
from storage.models import Invoice, Output
from storage.queries import blocks
from storage.queries.blocks import json_keys
from storage.queries.lists import mempool_watch

log = logging.getLogger(__name__)

# How many bytes of a txid are stored. A false match is rare, and only costs another reading of the
# block.
KEY_BYTES = 8


def facts_of(
    db: Database,
    network: str,
    height: int,
    block: ProvenBlock,
    new_scan: Callable[[], Scan],
) -> dict[str, Scan]:
    """Returns a scan for each invoice that the block concerns, by invoice id.

    A scan has three kinds of facts:

    1. the outputs that the block pays to the invoice's address,
    2. the coins of this address that the block spends,
    3. the unconfirmed payments that can no longer be mined, because the block spends
       their inputs.

    `new_scan` makes an empty scan.
    """
    scans: dict[str, Scan] = defaultdict(new_scan)
    mined_in = Block(height, block.hash, block.mined_at)
    spent = block.contents.spent_outpoints
    for row in paid_invoices(db, block):
        script = bytes.fromhex(row.script)
        _add_paid(scans[row.id], script, mined_in, block, network)
    for coin in _spent_coins(db, spent):
        scan = scans[coin.invoice_id]
        scan.spent[coin.txid, coin.vout] = height
    for output in conflicting_outputs(db, spent, block.contents.txids):
        scan = scans[output.invoice_id]
        scan.replaced[output.txid] = height
    return scans


def _spent_coins(db: Database, spent: Set[bytes]) -> list[Output]:
    """Returns the stored outputs whose outpoints (36 bytes each) are in `spent`."""
    hashes = {outpoint[:32] for outpoint in spent}
    txids = map(hash_to_hex, hashes)
    coins = []
    for coin in db.rows(blocks.COINS, texts=json_keys(txids)):
        outpoint = Outpoint(coin.txid, coin.vout)
        if outpoint.raw in spent:
            coins.append(coin)
    return coins


def paid_invoices(db: Database, block: ProvenBlock) -> list[Invoice]:
    """Returns the invoices whose addresses the block pays, each with its `script`."""
    scripts = [script.hex() for script in block.contents.outputs_by_script]
    return db.rows(blocks.OF_SCRIPTS, texts=json_keys(scripts))


def _add_paid(
    scan: Scan,
    script: bytes,
    mined_in: Block,
    block: ProvenBlock,
    network: str,
) -> None:
    """Adds the block's outputs to this script to the scan, with proofs of inclusion.

    `mined_in` and `block` are the same block.
    """
    # By position. A transaction is parsed only once, even if several of its outputs pay
    # the script.
    inputs: dict[int, tuple[str, ...]] = {}
    for position, vout, amount_sats in block.contents.outputs_by_script[script]:
        txid = block.txid(position)
        if position not in inputs:
            inputs[position] = _inputs_at(block, position)
        output = SeenOutput(
            txid,
            vout,
            amount_sats,
            block=mined_in,
            position=position,
            inputs=inputs[position],
        )
        scan.confirmed.append(output)
        outpoint = Outpoint(txid, vout)
        if outpoint.raw in block.contents.spent_outpoints:
            scan.spent[txid, vout] = mined_in.height
        if txid not in scan.proofs:
            evidence = block.evidence(position)
            document = to_document(evidence, txid, script, network, confirmations=1)
            scan.proofs[txid] = json.dumps(document)


def _inputs_at(block: ProvenBlock, position: int) -> tuple[str, ...]:
    """Returns the inputs of the transaction at this position, each as "txid:vout"."""
    raw = block.contents.tx_without_witness(position)
    texts = []
    for tx_in in parse_tx(raw).inputs:
        outpoint = tx_in.outpoint
        texts.append(f"{outpoint.txid}:{outpoint.vout}")
    return tuple(texts)


def conflicting_outputs(
    db: Database,
    spent: Set[bytes],
    txids: Collection[bytes],
) -> list[Output]:
    """Returns stored unconfirmed outputs whose transaction cannot be mined any more.

    Such a transaction has an input that another one has spent. `spent` has the spent
    outpoints, 36 bytes each. `txids` are the transactions that spent them; outputs of
    these transactions are left out.
    """
    conflicting: list[Output] = []
    for invoice in db.rows(mempool_watch.WITH_INPUTS):
        for row in db.rows(mempool_watch.INPUTS, invoice_id=invoice.invoice_id):
            is_spender = hash_from_hex(row.txid) in txids
            if not is_spender and _has_spent_input(row, spent):
                conflicting.append(row)
    return conflicting


def _has_spent_input(row: Output, spent: Set[bytes]) -> bool:
    try:
        return is_any_spent(inputs_of(row), spent)
    except BadRow:  # one damaged row must not block the other invoices
        log.exception(
            "the inputs of %s to invoice %s are damaged", row.txid, row.invoice_id
        )
        return False


def is_any_spent(inputs: Iterable[str], spent: Set[bytes]) -> bool:
    """True if one of the `inputs` is in `spent`.

    An input is "txid:vout", a spent outpoint has 36 bytes.
    """
    for outpoint in inputs:
        txid, vout = outpoint.split(":")
        if Outpoint(txid, int(vout)).raw in spent:
            return True
    return False


def spends_of(block: ProvenBlock) -> bytes:
    """Returns the outpoints that the block spends, each shortened to 12 bytes.

    They are stored while an earlier block is unread: that block may contain a payment
    to us which this block spends.
    """
    return b"".join(map(_spend_key, block.contents.spent_outpoints))


def _spend_key(outpoint: bytes) -> bytes:
    """Returns the start of the txid, and the vout (4 bytes), of a serialized outpoint."""
    return outpoint[:KEY_BYTES] + outpoint[32:]


def read_spends_again(db: Database, coins: Sequence[SeenOutput]) -> None:
    """Marks later blocks that spend one of these coins as unread.

    They were read before the block that created the coins, so the spend was not
    recognised. The next run reads them again.
    """
    keys = []
    heights = []
    for coin in coins:
        outpoint = Outpoint(coin.txid, coin.vout)
        keys.append(_spend_key(outpoint.raw))
        if coin.block:
            heights.append(coin.block.height)
    if not heights:
        return
    # All coins are outputs of the same block. Blocks above it may spend them.
    for row in db.rows(blocks.SPENDS, height=max(heights)):
        spends = row.spends or b""
        if any(key in spends for key in keys):
            db.run(blocks.READ_AGAIN, height=row.height)
