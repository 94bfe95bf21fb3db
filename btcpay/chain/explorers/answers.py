"""Parses JSON responses of Esplora: lists of headers, and transactions of an address.

Raises FetchError for JSON of another structure. Source: Blockstream/esplora API.md. In
addition, mempool.space sends `extras` with each block.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from btcpay.bitcoin.header import build_header, parse_header
from btcpay.bitcoin.tx import NULL_TXID
from btcpay.chain.explorers.bounded_json import (
    as_list,
    as_number,
    as_text,
    parse_list,
    require,
)
from btcpay.chain.sources import MAX_INPUTS, Mempool
from btcpay.http.http_client import Response
from btcpay.settlement.values import SeenOutput
from btcpay.values.money import MAX_MONEY_SATS

_HASH = re.compile("[0-9a-f]{64}")
_HEX = re.compile("[0-9a-f]*")
MAX_HEIGHT = 100_000_000
MAX_VOUT = 0xFFFFFFFF
MAX_WEIGHT = 4_000_000  # of a block (BIP141)
WEIGHT_PER_VBYTE = 4
# electrs shows ten blocks in 4 kB, mempool.space fifteen with `extras` in 100 kB.
MAX_HEADERS_BYTES = 1_000_000
# 75 transactions of usual size have about 200 kB, half of which is truncated while it arrives. A
# single transaction with three thousand outputs has a megabyte.
MAX_PAGE_BYTES = 16_000_000
MAX_PAGE_KEPT_BYTES = 3_000_000
# Servers limit the length of the list, electrs to 50, others to less, but none to fewer than 25
# transactions. So a list with fewer is complete.
WHOLE_BELOW = 25
MAX_COINS = 15_000  # maximum number of outputs and inputs for one address


class ShownHeader(NamedTuple):
    """A header (80 bytes), and the height that the explorer claims for it."""

    height: int
    raw: bytes


class HistoryPage(NamedTuple):
    """A page of the list of an address's transactions, confirmed ones too.

    `txids` are the txids of all transactions on the page, in the explorer's order.
    `outputs` are the unconfirmed outputs that pay the address.
    """

    txids: list[str]
    outputs: list[SeenOutput]


def headers_to(height: int | None) -> Response[list[ShownHeader]]:
    """Returns the parser of a page of headers. The last header must be at `height`.

    If `height` is None, the page may end at any height. The parsed headers are in
    ascending order and linked; each matches its hash.
    """
    read = partial(_read_headers, height)
    return Response(partial(parse_list, read), MAX_HEADERS_BYTES)


def mempool_page(script: bytes) -> Response[Mempool]:
    """Returns the parser of a page of unconfirmed transactions of an address.

    The parsed result has the outputs that pay `script`, the scriptPubKey of the
    address.
    """
    read = partial(_read_mempool, script.hex())
    return Response(partial(parse_list, read), MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES)


def history_page(script: bytes) -> Response[HistoryPage]:
    """Returns the parser of a page of an address's transactions.

    `script` is the scriptPubKey of the address.
    """
    read = partial(_read_page, script.hex())
    return Response(partial(parse_list, read), MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES)


def refuse_too_many(outputs: list[SeenOutput]) -> list[SeenOutput]:
    """Returns the unconfirmed outputs to one address unchanged, unless they are too many.

    Raises FetchError if they have more satoshis than can exist, or if `coins_in` counts
    more than MAX_COINS.
    """
    sats = sum(output.amount_sats for output in outputs)
    require(sats <= MAX_MONEY_SATS, "more money than can exist")
    is_small = coins_in(outputs) <= MAX_COINS
    require(is_small, f"more than {MAX_COINS} outputs for one address")
    return outputs


def coins_in(outputs: Sequence[SeenOutput]) -> int:
    """Returns the number of these outputs, plus that of their transactions' inputs.

    The inputs of a transaction count once, even if it has several of the outputs.
    """
    inputs_by_txid = {output.txid: len(output.inputs) for output in outputs}
    return len(outputs) + sum(inputs_by_txid.values())


def _height(block: Any) -> int:
    return as_number(block["height"], MAX_HEIGHT)


def _read_headers(height: int | None, blocks: list[Any]) -> list[ShownHeader]:
    """Returns the headers in ascending order.

    Each header must match its hash, so the other fields need no check. Raises
    FetchError if a hash does not match, if the headers are not linked, or if they do
    not end at `height`.
    """
    headers = list[ShownHeader]()
    last_hash = ""
    for block in sorted(blocks, key=_height):
        raw = build_header(
            block["version"],
            block.get("previousblockhash") or NULL_TXID,
            block["merkle_root"],
            block["timestamp"],
            block["bits"],
            block["nonce"],
        )
        header = parse_header(raw)
        require(header.hash == block["id"], "a header that is not its hash's")
        if headers:
            is_next = block["height"] == headers[-1].height + 1
            is_linked = header.previous == last_hash
            require(is_next and is_linked, "headers that are no chain")
        headers.append(ShownHeader(block["height"], raw))
        last_hash = header.hash
    ends_at_height = bool(headers) and height in (None, headers[-1].height)
    require(ends_at_height, "other headers than were asked for")
    return headers


def _is_waiting(tx: Any) -> bool:
    """True if the transaction is unconfirmed.

    Raises an error if it has no valid txid or status.
    """
    as_text(tx["txid"], _HASH)
    is_confirmed = tx["status"]["confirmed"]
    if type(is_confirmed) is not bool:
        raise TypeError("no status")
    return not is_confirmed


def _read_mempool(script: str, txs: list[Any]) -> Mempool:
    """Returns the outputs of the unconfirmed transactions that pay the script.

    A transaction that is listed twice counts once. Raises FetchError if there are too
    many outputs, or more satoshis than can exist.
    """
    page = _read_page(script, txs)
    return Mempool(refuse_too_many(page.outputs), is_whole=len(txs) < WHOLE_BELOW)


def _read_page(script: str, txs: list[Any]) -> HistoryPage:
    # By txid, so that a transaction that is listed twice counts once.
    outputs_by_txid: dict[str, list[SeenOutput]] = {}
    for tx in txs:
        if _is_waiting(tx):
            outputs_by_txid[tx["txid"]] = _read_outputs(tx, script)
    outputs: list[SeenOutput] = []
    for outputs_of_tx in outputs_by_txid.values():
        outputs += outputs_of_tx
    txids = [tx["txid"] for tx in txs]
    return HistoryPage(txids, outputs)


def _read_outputs(tx: Any, script: str) -> list[SeenOutput]:
    """Returns the transaction's outputs above 0 satoshis that pay the script."""
    inputs = _read_inputs(tx)
    feerate = _feerate(tx)
    outputs: list[SeenOutput] = []
    total_sats = 0
    for vout, output in enumerate(as_list(tx["vout"])):
        output_script = as_text(output["scriptpubkey"], _HEX)
        sats = as_number(output["value"], MAX_MONEY_SATS)
        total_sats += sats
        if output_script == script and sats:
            seen = SeenOutput(tx["txid"], vout, sats, inputs=inputs, feerate=feerate)
            outputs.append(seen)
    require(total_sats <= MAX_MONEY_SATS, "outputs of more than can exist")
    return outputs


def _feerate(tx: Any) -> int | None:
    """Returns the transaction's fee rate in satoshis per 1,000 vbytes.

    Returns None if the explorer sends no fee or weight, or an impossible one. The fee
    rate only informs people, so a wrong one is no error.
    """
    fee_sats = tx.get("fee")
    weight = tx.get("weight")
    if type(fee_sats) is not int or type(weight) is not int:
        return None
    if not 0 <= fee_sats <= MAX_MONEY_SATS or not 0 < weight <= MAX_WEIGHT:
        return None
    return WEIGHT_PER_VBYTE * 1000 * fee_sats // weight


def _read_inputs(tx: Any) -> tuple[str, ...]:
    """Returns the outpoints that the transaction spends, as `txid:vout`.

    Returns an empty tuple if there are more than MAX_INPUTS.
    """
    coins: list[str] = []
    for tx_in in as_list(tx["vin"]):
        txid = as_text(tx_in["txid"], _HASH)
        vout = as_number(tx_in["vout"], MAX_VOUT)
        coins.append(f"{txid}:{vout}")
    if len(coins) > MAX_INPUTS:
        return ()
    return tuple(coins)


def _read_history(txs: list[Any]) -> list[bool]:
    return [_is_waiting(tx) for tx in txs]


# The parser of a page of an address's transactions: True for each that is unconfirmed.
HISTORY = Response(
    partial(parse_list, _read_history), MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES
)
