"""Esplora's paths about blocks."""

from flask import Response, jsonify

from btcpay.sandbox.esplora.plain import binary, read_hash, read_number, refuse, text
from btcpay.sandbox.esplora.views import block_view
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.state import current

BLOCKS_PER_PAGE = 10


def tip_height() -> Response:
    return text(str(current().chain.ledger.height))


def tip_hash() -> Response:
    return text(current().chain.ledger.tip.hash)


def newest_blocks() -> Response:
    return _page(current().chain.ledger.height)


def blocks_from(start_height: str) -> Response:
    """Ten blocks of the best branch, from this height down."""
    return _page(_height(start_height))


def _page(start: int) -> Response:
    ledger = current().chain.ledger
    newest_first = ledger.hashes[max(0, start - BLOCKS_PER_PAGE + 1) : start + 1][::-1]
    return jsonify([block_view(ledger, ledger.blocks[each]) for each in newest_first])


def hash_at(height: str) -> Response:
    return text(current().chain.ledger.hashes[_height(height)])


def _height(given: str) -> int:
    """The height of a block of the best branch; a higher one ends the request with 404."""
    height = read_number(given)
    if height > current().chain.ledger.height:
        refuse(404, "Block not found")
    return height


def header(block_hash: str) -> Response:
    return text(_block(block_hash).header.hex())


def raw(block_hash: str) -> Response:
    block, lie = _block(block_hash), current().switches.lie
    height = current().chain.ledger.heights[block.hash]
    return binary(lie.block(block, height) if lie else block.raw)


def _block(block_hash: str) -> Block:
    """A block of any branch, lost ones included."""
    known = current().chain.ledger.blocks.get(read_hash(block_hash))
    if known is None:
        refuse(404, "Block not found")
    return known


ROUTES = (
    ("/blocks/tip/height", tip_height),
    ("/blocks/tip/hash", tip_hash),
    ("/blocks", newest_blocks),
    ("/blocks/<start_height>", blocks_from),
    ("/block-height/<height>", hash_at),
    ("/block/<block_hash>/header", header),
    ("/block/<block_hash>/raw", raw),
)
