"""An address's history as Esplora tells it: every output that ever paid it, page by page.

Source: Blockstream/esplora API.md; mempool.space's API documentation.
"""

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from btcpay import http_client
from btcpay.explorers.endpoint import Endpoint
from btcpay.settlement.values import Block, SeenOutput
from btcpay.times import from_unix_s
from schemas.esplora import MAX_MONEY_SATS, Parts, Transaction, parts_of

MAX_PAGES = 400  # 10,000 transactions to one address is no invoice any more
MAX_PARTS = 15_000  # outputs and inputs of one address
MAX_S = 120  # for one address: a server that drips pages must not hold up the others
# Of one page. 75 transactions of ordinary size are some 200 kB, and half of it is cut as it comes;
# a single transaction that pays three thousand others is a megabyte.
MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES = 16_000_000, 3_000_000
# What a page's values may take up in memory: an array of empty ones takes thirty times its length.
MAX_PAGE_WEIGHT = 32_000_000
_WEIGHTS = {b"{": 256, b"[": 112, b",": 112, b":": 128}  # bytes at most, for what each begins
_BYTE_WEIGHT = 4  # one character beyond 16 bits makes every character of its text this large

_TRANSACTION = Transaction()


class Entry(NamedTuple):
    """A transaction of the history; what does not concern the address is left out."""

    txid: str
    block: Block | None
    parts: Parts

    @property
    def size(self) -> int:
        return 1 + len(self.parts.paid) + len(self.parts.spent)


def read_outputs(endpoint: Endpoint, address: str, script: bytes) -> list[SeenOutput]:
    """Every output that ever paid `script`, the address's scriptPubKey, spent or not.

    Raises FetchError, or ValidationError for an answer of another form.
    """
    outputs = outputs_in(_history(endpoint, address, script.hex()))
    if sum(output.amount_sats for output in outputs) > MAX_MONEY_SATS:
        raise http_client.FetchError("answered more money than can exist")
    if any(_is_spent_before_it_came(output) for output in outputs):
        raise http_client.FetchError("answered that a coin was spent before it came")
    return outputs


def _is_spent_before_it_came(output: SeenOutput) -> bool:
    """A block may spend what came in it, but never what still waits for a block."""
    if output.spent_height is None:
        return False
    return output.block is None or output.spent_height < output.block.height


def _history(endpoint: Endpoint, address: str, script: str) -> list[Entry]:
    """All transactions of the address, newest first, each txid once.

    A page's length says nothing about what follows: servers differ in their caps. Only a
    page without a new transaction ends the list.
    """
    seen: dict[str, Entry] = {}
    size = 0
    for page in _pages(endpoint, address, script, seen):
        fresh = {entry.txid: entry for entry in page if entry.txid not in seen}
        if not fresh:
            return list(seen.values())
        more = sum(entry.size for entry in fresh.values())
        endpoint.weigh(more, size)
        size += more
        if size > MAX_PARTS:
            raise http_client.FetchError(f"answered more than {MAX_PARTS} outputs for one address")
        seen |= fresh
    raise http_client.FetchError(f"answered more than {MAX_PAGES} pages for one address")


def _pages(
    endpoint: Endpoint, address: str, script: str, seen: dict[str, Entry]
) -> Iterator[list[Entry]]:
    path, wanted = f"/address/{address}/txs", page_for(script)
    until_s = time.monotonic() + MAX_S
    for _ in range(MAX_PAGES):
        page = endpoint.read(path, wanted)
        if time.monotonic() > until_s:
            raise http_client.FetchError("answered too slowly for one address")
        yield page
        last = next(reversed(seen.values()))
        # Behind confirmed ones Esplora continues under /chain; behind a page of unconfirmed
        # ones only mempool.space has more, and other servers answer the first page again.
        after = f"/chain/{last.txid}" if last.block else f"?after_txid={last.txid}"
        path = f"/address/{address}/txs{after}"


def page_for(script: str) -> http_client.Wanted[list[Entry]]:
    """One page of the history of this script, in hex."""
    return http_client.Wanted(
        lambda body: [_entry(tx, script) for tx in _transactions(body)],
        MAX_PAGE_BYTES,
        MAX_PAGE_KEPT_BYTES,
    )


def _transactions(body: bytes) -> list[Any]:
    """The page's values, if memory has room for them. Raises FetchError."""
    weight = _BYTE_WEIGHT * len(body)
    weight += sum(body.count(sign) * each for sign, each in _WEIGHTS.items())
    if weight > MAX_PAGE_WEIGHT:
        raise http_client.FetchError("answered more values than one page can hold")
    try:
        # All that is looked for is ASCII. Read as Latin-1, no other character makes a text larger.
        found = json.loads(body.decode("latin-1"))
    except (ValueError, RecursionError) as error:
        raise http_client.FetchError("answered no JSON") from error
    if not isinstance(found, list):
        raise http_client.FetchError("answered no list of transactions")
    return found


def _entry(tx: Any, script: str) -> Entry:
    """Raises ValidationError."""
    parts = parts_of(tx, script)
    found = _TRANSACTION.load({name: tx.get(name) for name in ("txid", "status") if name in tx})
    return Entry(found["txid"], _block(found["status"]), parts)


def outputs_in(history: list[Entry]) -> list[SeenOutput]:
    """What an address's transactions pay to it, and where that was spent."""
    spent = {
        outpoint: entry.block.height
        for entry in history
        if entry.block
        for outpoint in entry.parts.spent
    }
    return [
        SeenOutput(
            txid=entry.txid,
            vout=vout,
            amount_sats=amount_sats,
            block=entry.block,
            spent_height=spent.get((entry.txid, vout)),
        )
        for entry in history
        for vout, amount_sats in entry.parts.paid
    ]


def _block(status: dict[str, Any]) -> Block | None:
    if not status["confirmed"]:
        return None
    return Block(status["block_height"], status["block_hash"], from_unix_s(status["block_time"]))
