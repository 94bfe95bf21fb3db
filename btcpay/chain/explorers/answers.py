"""Esplora's JSON, read: pages of headers, and of transactions of an address.

Source: Blockstream/esplora API.md; mempool.space adds `extras` to blocks.
"""

import json
from typing import Any, NamedTuple

from marshmallow import Schema, ValidationError

from btcpay.bitcoin.header import build_header
from btcpay.bitcoin.tx import NO_TXID
from btcpay.bitcoin.wire import Malformed, hash256, txid_hex
from btcpay.chain.explorers import answer_schemas as schemas
from btcpay.chain.sources import MAX_INPUTS, Mempool
from btcpay.http.http_client import Response
from btcpay.settlement.values import SeenOutput
from btcpay.values.errors import FetchError
from btcpay.values.money import MAX_MONEY_SATS

# Bytes of a page's values in memory: an array of empty ones takes thirty times its length.
MAX_PAGE_WEIGHT = 32_000_000
_WEIGHTS = {b"{": 256, b"[": 112, b",": 112, b":": 128}  # at most, for the value that each begins
_BYTE_WEIGHT = 4  # one character beyond 16 bits makes all of its text so large
# electrs shows ten blocks in 4 kB, mempool.space fifteen with `extras` in 100 kB.
MAX_HEADERS_BYTES = 1_000_000
# Of a page of transactions: 75 of ordinary size are some 200 kB, half of which is cut as it comes.
# A single one that pays three thousand others is a megabyte.
MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES = 16_000_000, 3_000_000
# Servers cap the list, electrs at 50, others lower; a shorter list is complete.
WHOLE_BELOW = 25
MAX_PARTS = 15_000  # outputs and inputs of one address
_BLOCK, _TRANSACTION = schemas.Block(), schemas.Transaction()
_SUMMARY = schemas.Transaction(only=("txid", "status"))

# The transactions of a page, each with `txid` and `status`.
TRANSACTIONS = Response(
    lambda body: [_load(_SUMMARY, tx) for tx in _values_in(body)],
    MAX_PAGE_BYTES,
    MAX_PAGE_KEPT_BYTES,
)


class ShownHeader(NamedTuple):
    """The 80 bytes of a header, and its height by the explorer's word."""

    height: int
    raw: bytes


def headers_to(height: int | None) -> Response[list[ShownHeader]]:
    """A page of headers that ends at `height`, or anywhere when None: ascending, and linked."""
    return Response(lambda body: _headers_in(body, height), MAX_HEADERS_BYTES)


def mempool_page(script: bytes) -> Response[Mempool]:
    """A page of an address's mempool: the outputs that pay `script`, its scriptPubKey."""
    return Response(
        lambda body: _mempool(_values_in(body), script.hex()), MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES
    )


def parts_in(mempool: Mempool) -> int:
    inputs = {output.txid: len(output.inputs) for output in mempool.outputs}
    return len(mempool.outputs) + sum(inputs.values())


def _load(schema: Schema, value: Any) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = schema.load(value)
    except ValidationError as error:
        raise FetchError(f"answered as no Esplora does: {str(error.messages)[:200]}") from error
    return loaded


def _values_in(body: bytes) -> list[Any]:
    """The values of a list, if memory has room for them."""
    weight = _BYTE_WEIGHT * len(body)
    weight += sum(body.count(sign) * each for sign, each in _WEIGHTS.items())
    if weight > MAX_PAGE_WEIGHT:
        raise FetchError("answered more values than one page can hold")
    try:
        # Only ASCII is looked for. Read as Latin-1, no other character makes a text larger.
        found = json.loads(body.decode("latin-1"))
    except (ValueError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
    if not isinstance(found, list):
        raise FetchError("answered no list")
    return found


def _headers_in(body: bytes, height: int | None) -> list[ShownHeader]:
    blocks = [_load(_BLOCK, value) for value in _values_in(body)]
    blocks.sort(key=lambda block: block["height"])
    if not blocks or height not in (None, blocks[-1]["height"]):
        raise FetchError("answered other headers than were asked for")
    for before, block in zip(blocks, blocks[1:], strict=False):
        if (before["height"] + 1, before["id"]) != (block["height"], block["previousblockhash"]):
            raise FetchError("answered headers that are no chain")
    return [ShownHeader(block["height"], _raw(block)) for block in blocks]


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


def _mempool(txs: list[Any], script: str) -> Mempool:
    """Each transaction once, without those that have come into a block meanwhile."""
    waiting: dict[str, list[SeenOutput]] = {}
    for tx in txs:
        loaded = _load(_TRANSACTION, tx)
        if not loaded["status"]["confirmed"]:
            waiting[loaded["txid"]] = _paid(loaded, script)
    outputs = [output for paid in waiting.values() for output in paid]
    if sum(output.amount_sats for output in outputs) > MAX_MONEY_SATS:
        raise FetchError("answered more money than can exist")
    mempool = Mempool(outputs, len(txs) < WHOLE_BELOW)
    if parts_in(mempool) > MAX_PARTS:
        raise FetchError(f"answered more than {MAX_PARTS} outputs for one address")
    return mempool


def _paid(tx: dict[str, Any], script: str) -> list[SeenOutput]:
    """Its outputs to the script; 0 satoshis are no money."""
    inputs = tuple(tx["vin"]) if len(tx["vin"]) <= MAX_INPUTS else ()
    return [
        SeenOutput(tx["txid"], vout, sats, inputs=inputs)
        for vout, (to, sats) in enumerate(tx["vout"])
        if to == script and sats
    ]
