"""Headers as Esplora shows them: field by field, and put together again.

Source: Blockstream/esplora API.md, "Block format"; mempool.space adds `extras`.
"""

from typing import Any, NamedTuple

from btcpay.bitcoin.header import build_header
from btcpay.bitcoin.tx import NO_TXID
from btcpay.bitcoin.wire import Malformed, hash256, txid_hex
from btcpay.chain.explorers.page import values_in
from btcpay.chain.explorers.shape import shaped
from btcpay.http.http_client import Response
from btcpay.values.errors import FetchError

# electrs shows ten blocks in 4 kB, mempool.space fifteen with `extras` in 100 kB.
MAX_HEADERS_BYTES = 1_000_000


class ShownHeader(NamedTuple):
    """80 bytes, and the height that they are said to have."""

    height: int
    raw: bytes


def headers_to(height: int | None) -> Response[list[ShownHeader]]:
    """A page of headers that ends at `height`, or anywhere when None; see `headers_in`."""
    return Response(lambda body: headers_in(body, height), MAX_HEADERS_BYTES)


def headers_in(body: bytes, height: int | None) -> list[ShownHeader]:
    """The headers of a page, ascending without a hole, each linking to the one before.

    Raises FetchError for what is no such page.
    """
    blocks = sorted((shaped("Block", value) for value in values_in(body)), key=_height_of)
    if not blocks or height not in (None, blocks[-1]["height"]):
        raise FetchError("answered other headers than were asked for")
    for before, block in zip(blocks, blocks[1:], strict=False):
        if (before["height"] + 1, before["id"]) != (block["height"], block["previousblockhash"]):
            raise FetchError("answered headers that are no chain")
    return [ShownHeader(block["height"], _raw(block)) for block in blocks]


def _height_of(block: dict[str, Any]) -> int:
    return block["height"]


def _raw(block: dict[str, Any]) -> bytes:
    names = ("merkle_root", "timestamp", "bits", "nonce")
    previous = block["previousblockhash"] or NO_TXID
    try:
        raw = build_header(block["version"], previous, *(block[name] for name in names))
    except Malformed as error:
        raise FetchError(f"answered no header: {error}") from error
    if txid_hex(hash256(raw)) != block["id"]:
        raise FetchError("answered a header that is not its hash's")
    return raw
