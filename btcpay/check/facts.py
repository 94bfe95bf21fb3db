"""A block's facts: payments to our addresses, spends of their coins, and the prices of its time."""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.bitcoin.tx import Outpoint, parse_tx
from btcpay.bitcoin.wire import hash_from_hex, hash_to_hex, ser_uint32
from btcpay.invoices.status import inputs_of
from btcpay.prices.price import Prices
from btcpay.proofs.block import ProvenBlock
from btcpay.proofs.document import to_document
from btcpay.settlement.values import Block, Scan, SeenOutput
from btcpay.values.errors import BadRow
from storage.database import Database
from storage.models import Invoice, Output
from storage.queries import blocks, merchants
from storage.queries.blocks import given
from storage.queries.lists import mempool_watch

log = logging.getLogger(__name__)

# A receipt found later than this gets no price rather than that of another hour.
RECEIPT_PRICE_AGE = timedelta(hours=1)
# Bytes of a txid that are kept: with the index, enough to tell that a coin is worth a look.
KEY_BYTES = 8


def facts_of(
    db: Database, network: str, height: int, block: ProvenBlock, new: Callable[[], Scan]
) -> dict[str, Scan]:
    """The outputs that this block pays, spends and replaces: a `new` scan for each invoice id."""
    scans: dict[str, Scan] = defaultdict(new)
    place = Block(height, block.hash, block.mined_at)
    for row in paid_invoices(db, block):
        _add_paid(scans[row.id], bytes.fromhex(row.script), place, block, network)
    txids = {outpoint[:32] for outpoint in block.contents.spent_outpoints}
    for coin in db.rows(blocks.COINS, texts=given(map(hash_to_hex, txids))):
        if Outpoint(coin.txid, coin.vout).raw in block.contents.spent_outpoints:
            scans[coin.invoice_id].spent[coin.txid, coin.vout] = height
    for output in conflicting_outputs(
        db, block.contents.spent_outpoints, block.contents.txids
    ):
        scans[output.invoice_id].replaced[output.txid] = height
    return scans


def paid_invoices(db: Database, block: ProvenBlock) -> list[Invoice]:
    """The invoices whose addresses the block pays, each with its `script`."""
    scripts = [script.hex() for script in block.contents.outputs_by_script]
    return db.rows(blocks.OF_SCRIPTS, texts=given(scripts))


def _add_paid(
    scan: Scan, script: bytes, place: Block, block: ProvenBlock, network: str
) -> None:
    """Adds the outputs to this script, with the proofs of their transactions."""
    # A transaction is read once, however many of its outputs pay us.
    inputs: dict[int, tuple[str, ...]] = {}
    for position, vout, amount_sats in block.contents.outputs_by_script[script]:
        txid = block.txid(position)
        if position not in inputs:
            inputs[position] = _inputs_at(block, position)
        output = SeenOutput(txid, vout, amount_sats, place, position, inputs[position])
        scan.confirmed.append(output)
        if Outpoint(txid, vout).raw in block.contents.spent_outpoints:
            scan.spent[txid, vout] = place.height
        if txid not in scan.proofs:
            document = to_document(block.evidence(position), txid, script, network, 1)
            scan.proofs[txid] = json.dumps(document)


def _inputs_at(block: ProvenBlock, position: int) -> tuple[str, ...]:
    """The outpoints that the transaction at this position spends, each "txid:vout"."""
    tx = parse_tx(block.contents.tx_without_witness(position))
    outpoints = [tx_in.outpoint for tx_in in tx.inputs]
    return tuple(f"{outpoint.txid}:{outpoint.vout}" for outpoint in outpoints)


def conflicting_outputs(
    db: Database, spent: Set[bytes], txids: Collection[bytes]
) -> list[Output]:
    """Waiting outputs that lose their money, as other transactions (`txids`) have `spent` an input.

    `spent` has outpoints of 36 bytes.
    """
    conflicting: list[Output] = []
    for invoice in db.rows(mempool_watch.WITH_INPUTS):
        for row in db.rows(mempool_watch.INPUTS, invoice_id=invoice.invoice_id):
            if _has_spent_input(row, spent) and hash_from_hex(row.txid) not in txids:
                conflicting.append(row)
    return conflicting


def _has_spent_input(row: Output, spent: Set[bytes]) -> bool:
    try:
        return is_any_spent(inputs_of(row), spent)
    except BadRow:  # a spoiled row must not keep the block from all others
        log.exception(
            "the inputs of %s to invoice %s are damaged", row.txid, row.invoice_id
        )
        return False


def is_any_spent(inputs: Iterable[str], spent: Set[bytes]) -> bool:
    """True if one of these outpoints, each "txid:vout", is in `spent`, each of 36 bytes."""
    for outpoint in inputs:
        txid, vout = outpoint.split(":")
        if Outpoint(txid, int(vout)).raw in spent:
            return True
    return False


def spends_of(block: ProvenBlock) -> bytes:
    """The block's spends, shortened. They are kept while an earlier block is not read."""
    return b"".join(
        outpoint[:KEY_BYTES] + outpoint[32:]
        for outpoint in block.contents.spent_outpoints
    )


def read_spends_again(db: Database, coins: Sequence[SeenOutput]) -> None:
    """Marks later blocks unread that spend one of these coins, and were read before we knew it."""
    keys = [
        hash_from_hex(coin.txid)[:KEY_BYTES] + ser_uint32(coin.vout) for coin in coins
    ]
    heights = [coin.block.height for coin in coins if coin.block]
    if not heights:
        return
    for row in db.rows(blocks.SPENDS, height=max(heights)):
        spends = row.spends or b""
        if any(key in spends for key in keys):
            db.run(blocks.READ_AGAIN, height=row.height)


def is_late(mined_at: datetime, now: datetime) -> bool:
    return now - mined_at > RECEIPT_PRICE_AGE


def receipt_prices(db: Database, prices: Prices) -> Mapping[str, Decimal]:
    """The current prices of one bitcoin by currency, as far as they are known."""
    currencies = {"USD", *(row.currency for row in db.rows(merchants.CURRENCIES))}
    # All are asked at once, so that waiting for all takes as long as for one.
    for currency in currencies:
        prices.rate_for(currency).start_refresh()
    known: dict[str, Decimal] = {}
    for currency in currencies:
        price = prices.rate_for(currency).current_price_or_none()
        if price is not None:
            known[currency] = price
    return known
