"""Esplora's JSON, read as far as it is used: pages of headers, and of an address's transactions.

Any other shape is refused. Source: Blockstream/esplora API.md; mempool.space adds `extras` to
blocks.
"""

import json
import re
from typing import Any, NamedTuple

from btcpay.bitcoin.header import build_header
from btcpay.bitcoin.tx import NO_TXID
from btcpay.bitcoin.wire import Malformed, hash256, txid_hex
from btcpay.chain.sources import MAX_INPUTS, Mempool
from btcpay.http.http_client import Response
from btcpay.settlement.values import SeenOutput
from btcpay.values.errors import FetchError
from btcpay.values.money import MAX_MONEY_SATS

_HASH, _HEX = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]*")
# A block's numbers, with their bounds; some servers show the version as signed, others not.
_NUMBERS = {"height": (0, 100_000_000), "version": (-0x80000000, 0xFFFFFFFF)}
_NUMBERS |= dict.fromkeys(("timestamp", "bits", "nonce"), (0, 0xFFFFFFFF))
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


class ShownHeader(NamedTuple):
    """The 80 bytes of a header, and its height by the explorer's word."""

    height: int
    raw: bytes


def headers_to(height: int | None) -> Response[list[ShownHeader]]:
    """A page of headers that ends at `height`, or anywhere when None: ascending, and linked."""
    return Response(lambda body: _headers_in(body, height), MAX_HEADERS_BYTES)


def mempool_page(script: bytes) -> Response[Mempool]:
    """A page of an address's mempool: the outputs that pay `script`, its scriptPubKey."""
    return Response(lambda body: _mempool(body, script.hex()), MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES)


def parts_in(mempool: Mempool) -> int:
    inputs = {output.txid: len(output.inputs) for output in mempool.outputs}
    return len(mempool.outputs) + sum(inputs.values())


def _require(holds: bool, answered: str) -> None:
    if not holds:
        raise FetchError(f"answered {answered}")


def _is(value: Any, pattern: re.Pattern[str]) -> bool:
    return type(value) is str and pattern.fullmatch(value) is not None


def _is_int(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _objects(value: Any) -> list[dict[str, Any]]:
    is_list = isinstance(value, list) and all(isinstance(one, dict) for one in value)
    _require(is_list, "no list of objects")
    return list(value)


def _objects_in(body: bytes) -> list[dict[str, Any]]:
    """The objects of a list, if memory has room for them."""
    weight = _BYTE_WEIGHT * len(body)
    weight += sum(body.count(sign) * each for sign, each in _WEIGHTS.items())
    _require(weight <= MAX_PAGE_WEIGHT, "more values than one page can hold")
    try:
        # Only ASCII is looked for. Read as Latin-1, no other character makes a text larger.
        return _objects(json.loads(body.decode("latin-1")))
    except (ValueError, RecursionError) as error:
        raise FetchError("answered no JSON") from error


def _headers_in(body: bytes, height: int | None) -> list[ShownHeader]:
    blocks = _objects_in(body)
    for block in blocks:
        before = block.setdefault("previousblockhash", None)  # of the first one, which has none
        hashes = [block.get("id"), block.get("merkle_root"), *([] if before is None else [before])]
        numbers = (_is_int(block.get(name), *bounds) for name, bounds in _NUMBERS.items())
        _require(all(_is(hash, _HASH) for hash in hashes) and all(numbers), "no block's header")
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
    _require(txid_hex(hash256(raw)) == block["id"], "a header that is not its hash's")
    return raw


def _transactions(body: bytes) -> list[dict[str, Any]]:
    """Each has an id, and says whether it is confirmed."""
    found = _objects_in(body)
    for tx in found:
        status = tx.get("status")
        is_said = isinstance(status, dict) and type(status.get("confirmed")) is bool
        _require(is_said and _is(tx.get("txid"), _HASH), "a transaction without id or status")
    return found


def _mempool(body: bytes, script: str) -> Mempool:
    """Each transaction once, without those that have come into a block meanwhile."""
    txs = _transactions(body)
    waiting: dict[str, list[SeenOutput]] = {}
    for tx in txs:
        paid = _paid(tx, script)
        if not tx["status"]["confirmed"]:
            waiting[tx["txid"]] = paid
    outputs = [output for paid in waiting.values() for output in paid]
    sats = sum(output.amount_sats for output in outputs)
    _require(sats <= MAX_MONEY_SATS, "more money than can exist")
    mempool = Mempool(outputs, len(txs) < WHOLE_BELOW)
    _require(parts_in(mempool) <= MAX_PARTS, f"more than {MAX_PARTS} outputs for one address")
    return mempool


def _paid(tx: dict[str, Any], script: str) -> list[SeenOutput]:
    """Its outputs to the script; 0 satoshis are no money."""
    outputs: list[tuple[Any, Any]] = [
        (one.get("scriptpubkey"), one.get("value")) for one in _objects(tx.get("vout"))
    ]
    coins = [(one.get("txid"), one.get("vout")) for one in _objects(tx.get("vin"))]
    are_outputs = all(_is(to, _HEX) and _is_int(sats, 0, MAX_MONEY_SATS) for to, sats in outputs)
    _require(are_outputs, "an output without a script in hex and an amount in satoshis")
    _require(sum(sats for _, sats in outputs) <= MAX_MONEY_SATS, "outputs of more than can exist")
    are_coins = all(_is(txid, _HASH) and _is_int(vout, 0, 0xFFFFFFFF) for txid, vout in coins)
    _require(are_coins, "an input without txid and vout")
    inputs = tuple(f"{txid}:{vout}" for txid, vout in coins) if len(coins) <= MAX_INPUTS else ()
    return [
        SeenOutput(tx["txid"], vout, sats, inputs=inputs)
        for vout, (to, sats) in enumerate(outputs)
        if to == script and sats
    ]


# The transactions of a page, each with `txid` and `status`.
TRANSACTIONS = Response(_transactions, MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES)
