"""The API of an Esplora block explorer, at the root path.

While the explorer is switched off, every response has the status 503.

Source: https://github.com/Blockstream/esplora/blob/master/API.md.
"""

import re
from collections.abc import Callable
from functools import partial

from flask import Blueprint, Response, abort, jsonify

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.ledger import ChainTx
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.shop import Json
from btcpay.sandbox.state import current_sandbox

HASH = re.compile("[0-9a-f]{64}")
NUMBER = re.compile("[0-9]{1,9}")
BLOCKS_PER_PAGE = 10
CHAIN_TXS_PER_PAGE = 25
MAX_MEMPOOL_TXS = 50


def create_esplora() -> Blueprint:
    blueprint = Blueprint("esplora", __name__)
    for path, view in VIEWS.items():
        blueprint.add_url_rule(path, endpoint=path, view_func=partial(_answer, view))
    return blueprint


def text_response(message: str, status: int = 200) -> Response:
    return Response(message, status, mimetype="text/plain")


def blocks(start_height: str = "") -> Response:
    """Returns up to ten blocks of the best chain, the highest first.

    They begin at the height `start_height`; if it is "", at the tip.
    """
    ledger = current_sandbox().chain.ledger
    start = ledger.height
    if start_height:
        start = _height(start_height)
    lowest = max(0, start - BLOCKS_PER_PAGE + 1)
    views = []
    for height in range(start, lowest - 1, -1):
        block = ledger.blocks[ledger.hashes[height]]
        views.append(block_view(block, height))
    return jsonify(views)


def raw_block(block_hash: str) -> Response:
    """Returns the serialized block.

    While the workbench makes the explorer lie, blocks mined since then also contain the
    invented payment.
    """
    block = _block(block_hash)
    raw = block.raw
    invented = current_sandbox().switches.invented
    if invented:
        height = current_sandbox().chain.ledger.heights[block.hash]
        raw = invented.put_into(block, height)
    return Response(raw, mimetype="application/octet-stream")


def txs(address: str) -> Response:
    """Returns up to 50 unconfirmed and the newest 25 confirmed transactions of an address."""
    script = _script(address)
    confirmed = current_sandbox().chain.confirmed_of(script)
    return _tx_list([*_waiting(script), *confirmed[:CHAIN_TXS_PER_PAGE]])


def mempool_txs(address: str) -> Response:
    """Returns up to 50 unconfirmed transactions of an address."""
    return _tx_list(_waiting(_script(address)))


def tip_height() -> Response:
    return text_response(str(current_sandbox().chain.ledger.height))


def tip_hash() -> Response:
    return text_response(current_sandbox().chain.ledger.tip.hash)


def hash_at(height: str) -> Response:
    return text_response(current_sandbox().chain.ledger.hashes[_height(height)])


def block_header(block_hash: str) -> Response:
    return text_response(_block(block_hash).header.hex())


VIEWS: dict[str, Callable[..., Response]] = {
    "/blocks/tip/height": tip_height,
    "/blocks/tip/hash": tip_hash,
    "/blocks": blocks,
    "/blocks/<start_height>": blocks,
    "/block-height/<height>": hash_at,
    "/block/<block_hash>/header": block_header,
    "/block/<block_hash>/raw": raw_block,
    "/address/<address>/txs": txs,
    "/address/<address>/txs/mempool": mempool_txs,
}


def _answer(view: Callable[..., Response], **parts: str) -> Response:
    """Calls the view while the chain is locked, so that a response shows a single state.

    Returns 503 while the explorer is switched off.
    """
    if current_sandbox().switches.explorer == "down":
        return text_response("Service Unavailable", 503)
    with current_sandbox().chain.lock:
        return view(**parts)


def _height(text: str) -> int:
    if not NUMBER.fullmatch(text):
        abort(text_response("Invalid number", 400))
    height = int(text)
    if height > current_sandbox().chain.ledger.height:
        abort(text_response("Block not found", 404))
    return height


def _block(text: str) -> Block:
    """Returns the block with this hash, even if it is on a stale branch.

    Aborts the request with 400 if the text is no hash, with 404 if there is no such
    block.
    """
    block_hash = text.lower()
    if not HASH.fullmatch(block_hash):
        abort(text_response("Invalid hex string", 400))
    block = current_sandbox().chain.ledger.blocks.get(block_hash)
    if block is None:
        abort(text_response("Block not found", 404))
    return block


def _waiting(script: bytes) -> list[ChainTx]:
    """Returns the newest unconfirmed transactions that spend from or pay to a script.

    While the explorer lies, the payment that it has invented comes first.
    """
    waiting = current_sandbox().chain.waiting_of(script)
    invented = current_sandbox().switches.invented
    if invented and script in invented.entry.scripts:
        waiting = [invented.entry, *waiting]
    return waiting[:MAX_MEMPOOL_TXS]


def _tx_list(entries: list[ChainTx]) -> Response:
    return jsonify([_tx_view(entry) for entry in entries])


def _script(address: str) -> bytes:
    try:
        return script_of(address)
    except BadRequest as error:
        abort(text_response(str(error), 400))


def _tx_view(entry: ChainTx) -> Json:
    inputs = []
    for txin in entry.tx.inputs:
        inputs.append({"txid": txin.outpoint.txid, "vout": txin.outpoint.vout})
    outputs = []
    for output in entry.tx.outputs:
        outputs.append(
            {"scriptpubkey": output.script.hex(), "value": output.value_sats}
        )
    return {
        "txid": entry.tx.txid,
        "vin": inputs,
        "vout": outputs,
        "weight": entry.tx.weight,
        "fee": _fee_sats(entry),
        "status": {"confirmed": entry.height is not None},
    }


def _fee_sats(entry: ChainTx) -> int:
    """Returns the fee in satoshis; 0 for a coinbase, whose fee would be negative."""
    return max(0, entry.fee_sats)


def block_view(block: Block, height: int) -> Json:
    """Returns the block's header as JSON.

    `previousblockhash` is null for the genesis block.
    """
    previous = None
    if height:
        previous = block.previous
    return {
        "id": block.hash,
        "height": height,
        "version": block.version,
        "timestamp": block.time,
        "merkle_root": block.merkle_root,
        "previousblockhash": previous,
        "nonce": block.nonce,
        "bits": block.bits,
    }
