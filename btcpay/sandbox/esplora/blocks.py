"""Esplora's paths about blocks."""

from flask import Response, jsonify

from btcpay.sandbox.esplora.plain import binary, read_hash, read_number, refuse, text
from btcpay.sandbox.esplora.views import block_status_view, block_view
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.state import current


def tip_height() -> Response:
    return text(str(current().chain.ledger.height))


def tip_hash() -> Response:
    return text(current().chain.ledger.tip.hash)


def hash_at(height: str) -> Response:
    hashes = current().chain.ledger.hashes
    index = read_number(height)
    if index >= len(hashes):
        refuse(404, "Block not found")
    return text(hashes[index])


def block(block_hash: str) -> Response:
    return jsonify(block_view(current().chain.ledger, _block(block_hash)))


def header(block_hash: str) -> Response:
    return text(_block(block_hash).header.hex())


def status(block_hash: str) -> Response:
    return jsonify(block_status_view(current().chain.ledger, read_hash(block_hash)))


def txids(block_hash: str) -> Response:
    return jsonify([tx.txid for tx in _block(block_hash).txs])


def txid_at(block_hash: str, index: str) -> Response:
    txs, position = _block(block_hash).txs, read_number(index)
    if position >= len(txs):
        refuse(404, "tx index out of range")
    return text(txs[position].txid)


def raw(block_hash: str) -> Response:
    return binary(_block(block_hash).raw)


def _block(block_hash: str) -> Block:
    """A block of any branch, lost ones included."""
    known = current().chain.ledger.blocks.get(read_hash(block_hash))
    if known is None:
        refuse(404, "Block not found")
    return known


ROUTES = (
    ("/blocks/tip/height", tip_height),
    ("/blocks/tip/hash", tip_hash),
    ("/block-height/<height>", hash_at),
    ("/block/<block_hash>", block),
    ("/block/<block_hash>/header", header),
    ("/block/<block_hash>/status", status),
    ("/block/<block_hash>/txids", txids),
    ("/block/<block_hash>/txid/<index>", txid_at),
    ("/block/<block_hash>/raw", raw),
)
