"""The Esplora interface at the root path, as Blockstream's electrs speaks it; 503 while down.

Source: https://github.com/Blockstream/esplora/blob/master/API.md.
"""

import re
from collections.abc import Callable
from functools import partial

from flask import Blueprint, Response, abort, jsonify

from btcpay.sandbox.errors import BadRequest
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.ledger import Found
from btcpay.sandbox.node.script import script_of
from btcpay.sandbox.shop import Json
from btcpay.sandbox.state import current

HASH = re.compile("[0-9a-f]{64}")
BLOCKS_PER_PAGE = 10
CHAIN_TXS_PER_PAGE = 25
MAX_MEMPOOL_TXS = 50


def create_esplora() -> Blueprint:
    blueprint = Blueprint("esplora", __name__)
    for path, view in VIEWS.items():
        blueprint.add_url_rule(path, path, partial(_answer, view))
    return blueprint


def text(message: str, status: int = 200) -> Response:
    return Response(message, status, mimetype="text/plain")


def blocks(start_height: str = "") -> Response:
    """Ten blocks of the best branch, from this height or the tip down."""
    ledger = current().chain.ledger
    start = _height(start_height) if start_height else ledger.height
    heights = range(start, max(-1, start - BLOCKS_PER_PAGE), -1)
    return jsonify(
        [block_view(ledger.blocks[ledger.hashes[each]], each) for each in heights]
    )


def raw_block(block_hash: str) -> Response:
    block = _block(block_hash)
    invented = current().switches.invented
    height = current().chain.ledger.heights[block.hash]
    raw = invented.put_into(block, height) if invented else block.raw
    return Response(raw, mimetype="application/octet-stream")


def txs(address: str) -> Response:
    """Up to 50 waiting transactions and the newest 25 confirmed ones."""
    script = _script(address)
    return _txs(
        _waiting(script) + current().chain.confirmed_of(script)[:CHAIN_TXS_PER_PAGE]
    )


VIEWS: dict[str, Callable[..., Response]] = {
    "/blocks/tip/height": lambda: text(str(current().chain.ledger.height)),
    "/blocks/tip/hash": lambda: text(current().chain.ledger.tip.hash),
    "/blocks": blocks,
    "/blocks/<start_height>": blocks,
    "/block-height/<height>": lambda height: text(
        current().chain.ledger.hashes[_height(height)]
    ),
    "/block/<block_hash>/header": lambda block_hash: text(
        _block(block_hash).header.hex()
    ),
    "/block/<block_hash>/raw": raw_block,
    "/address/<address>/txs": txs,
    "/address/<address>/txs/mempool": lambda address: _txs(_waiting(_script(address))),
}


def _answer(view: Callable[..., Response], **parts: str) -> Response:
    """Under the chain's lock: one answer never shows two states."""
    if current().switches.explorer == "down":
        return text("Service Unavailable", 503)
    with current().chain.lock:
        return view(**parts)


def _height(given: str) -> int:
    if not (given.isascii() and given.isdigit()) or len(given) > 9:
        abort(text("Invalid number", 400))
    if int(given) > current().chain.ledger.height:
        abort(text("Block not found", 404))
    return int(given)


def _block(given: str) -> Block:
    """A block of any branch, lost ones included."""
    if not HASH.fullmatch(given.lower()):
        abort(text("Invalid hex string", 400))
    return current().chain.ledger.blocks.get(given.lower()) or abort(
        text("Block not found", 404)
    )


def _waiting(script: bytes) -> list[Found]:
    invented = current().switches.invented
    untrue = [invented.found] if invented and script in invented.found.scripts else []
    return (untrue + current().chain.waiting_of(script))[:MAX_MEMPOOL_TXS]


def _txs(found: list[Found]) -> Response:
    return jsonify([_tx_view(each) for each in found])


def _script(address: str) -> bytes:
    try:
        return script_of(address)
    except BadRequest as error:
        abort(text(str(error), 400))


def _tx_view(found: Found) -> Json:
    outpoints = [txin.outpoint for txin in found.tx.inputs]
    outputs = found.tx.outputs
    return {
        "txid": found.tx.txid,
        "vin": [
            {"txid": outpoint.txid, "vout": outpoint.vout} for outpoint in outpoints
        ],
        "vout": [
            {"scriptpubkey": o.script.hex(), "value": o.value_sats} for o in outputs
        ],
        "status": {"confirmed": found.height is not None},
    }


def block_view(block: Block, height: int) -> Json:
    return {
        "id": block.hash,
        "height": height,
        "version": block.version,
        "timestamp": block.time,
        "merkle_root": block.merkle_root,
        "previousblockhash": block.previous if height else None,
        "nonce": block.nonce,
        "bits": block.bits,
    }
