"""Esplora's JSON, read as far as it is used: pages of headers, and of an address's transactions.

Any other shape is refused. Source: Blockstream/esplora API.md; mempool.space adds `extras` to
blocks.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from btcpay.bitcoin.header import build_header, parse_header
from btcpay.bitcoin.tx import NULL_TXID
from btcpay.chain.sources import MAX_INPUTS, Mempool
from btcpay.http.http_client import Response
from btcpay.settlement.values import SeenOutput
from btcpay.values.errors import FetchError
from btcpay.values.money import MAX_MONEY_SATS

T = TypeVar("T")
_HASH = re.compile("[0-9a-f]{64}")
_HEX = re.compile("[0-9a-f]*")
MAX_HEIGHT = 100_000_000
MAX_VOUT = 0xFFFFFFFF
# Bytes of a page's values in memory: an array of empty ones takes thirty times its length.
MAX_PAGE_WEIGHT = 32_000_000
_WEIGHTS = {
    b"{": 256,
    b"[": 112,
    b",": 112,
    b":": 128,
}  # at most, for the value that each begins
_BYTE_WEIGHT = 4  # one character beyond 16 bits makes all of its text so large
# electrs shows ten blocks in 4 kB, mempool.space fifteen with `extras` in 100 kB.
MAX_HEADERS_BYTES = 1_000_000
# Of a page of transactions: 75 of ordinary size are some 200 kB, half of which is cut as it comes.
# A single one that pays three thousand others is a megabyte.
MAX_PAGE_BYTES = 16_000_000
MAX_PAGE_KEPT_BYTES = 3_000_000
# Servers cap the list, electrs at 50, others lower; a shorter list is complete.
WHOLE_BELOW = 25
MAX_PARTS = 15_000  # outputs and inputs of one address


class ShownHeader(NamedTuple):
    """The 80 bytes of a header, and its height by the explorer's word."""

    height: int
    raw: bytes


def headers_to(height: int | None) -> Response[list[ShownHeader]]:
    """A page of headers that ends at `height`, or anywhere when None: ascending, and linked."""
    return Response(partial(_parse, partial(_headers, height)), MAX_HEADERS_BYTES)


def mempool_page(script: bytes) -> Response[Mempool]:
    """A page of an address's mempool: the outputs that pay `script`, its scriptPubKey."""
    read = partial(_mempool, script.hex())
    return Response(partial(_parse, read), MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES)


def count_coins(mempool: Mempool) -> int:
    inputs = {output.txid: len(output.inputs) for output in mempool.outputs}
    return len(mempool.outputs) + sum(inputs.values())


def _require(holds: bool, answered: str) -> None:
    if not holds:
        raise FetchError(f"answered {answered}")


def _parse(read: Callable[[list[Any]], T], body: bytes) -> T:
    """The result of `read` for a list of values, if memory has room for them."""
    weight = _BYTE_WEIGHT * len(body)
    weight += sum(body.count(sign) * each for sign, each in _WEIGHTS.items())
    _require(weight <= MAX_PAGE_WEIGHT, "more values than one page can hold")
    try:
        # Only ASCII is looked for. Read as Latin-1, no other character makes a text larger.
        return read(_list(json.loads(body.decode("latin-1"))))
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise FetchError("answered something else than an Esplora does") from error


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError("no list")
    return value


def _text(value: Any, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(value):
        raise ValueError("another text")
    return str(value)


def _number(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("no such number")
    return value


def _headers(height: int | None, blocks: list[Any]) -> list[ShownHeader]:
    """Each has the hash that is shown, so that its other values need no look."""
    shown = list[ShownHeader]()
    before = ""
    for block in sorted(blocks, key=lambda block: _number(block["height"], MAX_HEIGHT)):
        links = block.get("previousblockhash") or NULL_TXID, block["merkle_root"]
        numbers = (block[name] for name in ("timestamp", "bits", "nonce"))
        raw = build_header(block["version"], *links, *numbers)
        header = parse_header(raw)
        _require(header.hash == block["id"], "a header that is not its hash's")
        follows = not shown or (shown[-1].height + 1, before) == (
            block["height"],
            header.previous,
        )
        _require(follows, "headers that are no chain")
        shown.append(ShownHeader(block["height"], raw))
        before = header.hash
    is_asked = bool(shown) and height in (None, shown[-1].height)
    _require(is_asked, "other headers than were asked for")
    return shown


def _waits(tx: Any) -> bool:
    """True unless it is in a block; every transaction has an id, and says that."""
    _text(tx["txid"], _HASH)
    is_confirmed = tx["status"]["confirmed"]
    if type(is_confirmed) is not bool:
        raise TypeError("no status")
    return not is_confirmed


def _mempool(script: str, txs: list[Any]) -> Mempool:
    """Each transaction once, without those that have come into a block meanwhile."""
    waiting = {tx["txid"]: _paid(tx, script) for tx in txs if _waits(tx)}
    outputs = [output for paid in waiting.values() for output in paid]
    sats = sum(output.amount_sats for output in outputs)
    _require(sats <= MAX_MONEY_SATS, "more money than can exist")
    mempool = Mempool(outputs, len(txs) < WHOLE_BELOW)
    _require(
        count_coins(mempool) <= MAX_PARTS,
        f"more than {MAX_PARTS} outputs for one address",
    )
    return mempool


def _paid(tx: Any, script: str) -> list[SeenOutput]:
    """Its outputs to the script; 0 satoshis are no money."""
    outputs = [
        (_text(one["scriptpubkey"], _HEX), _number(one["value"], MAX_MONEY_SATS))
        for one in _list(tx["vout"])
    ]
    _require(
        sum(sats for _, sats in outputs) <= MAX_MONEY_SATS,
        "outputs of more than can exist",
    )
    coins = [
        f"{_text(one['txid'], _HASH)}:{_number(one['vout'], MAX_VOUT)}"
        for one in _list(tx["vin"])
    ]
    inputs = tuple(coins) if len(coins) <= MAX_INPUTS else ()
    return [
        SeenOutput(tx["txid"], vout, sats, inputs=inputs)
        for vout, (to, sats) in enumerate(outputs)
        if to == script and sats
    ]


# A page of an address's transactions: True for each that waits.
_history = partial(_parse, lambda txs: [_waits(tx) for tx in txs])
HISTORY = Response(_history, MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES)
