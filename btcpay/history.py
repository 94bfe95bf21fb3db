"""An address's history as Esplora tells it: every output that ever paid it, page by page.

Source: Blockstream/esplora API.md; mempool.space's API documentation.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from btcpay import fetch
from btcpay.instants import from_unix_s
from schemas.esplora import MAX_MONEY_SATS, Transaction

Get = Callable[[str], bytes]

MAX_PAGES = 400  # 10,000 transactions to one address is no invoice any more
MAX_BYTES = 64_000_000  # of one address's pages together
MAX_S = 120  # for one address: a server that drips pages must not hold up the others

_HISTORY = Transaction(many=True)


@dataclass(frozen=True)
class Block:
    """The block that a transaction is in; `mined_at` is its header's time."""

    height: int
    hash: str
    mined_at: datetime


@dataclass(frozen=True)
class SeenOutput:
    """An output that pays the address; `spent_height` is the block in which it was spent."""

    txid: str
    vout: int
    amount_sats: int
    block: Block | None
    spent_height: int | None


def read_outputs(get: Get, address: str, script: bytes) -> list[SeenOutput]:
    """Every output that ever paid `script`, the address's scriptPubKey, spent or not.

    Raises FetchError, or ValidationError for an answer of another form.
    """
    outputs = outputs_in(_history(get, address), script)
    if sum(output.amount_sats for output in outputs) > MAX_MONEY_SATS:
        raise fetch.FetchError("answered more money than can exist")
    if any(_is_spent_before_it_came(output) for output in outputs):
        raise fetch.FetchError("answered that a coin was spent before it came")
    return outputs


def _is_spent_before_it_came(output: SeenOutput) -> bool:
    """A block may spend what came in it; nothing spends in a block what waits."""
    if output.spent_height is None:
        return False
    return output.block is None or output.spent_height < output.block.height


def is_used(get: Get, address: str) -> bool:
    """Whether any transaction, an unconfirmed one too, has paid or spent from the address.

    One call. Raises FetchError, or ValidationError for an answer of another form.
    """
    return bool(_HISTORY.load(fetch.parse_json(get(f"/address/{address}/txs"))))


def _history(get: Get, address: str) -> list[dict[str, Any]]:
    """All transactions of the address, by txid once, newest first.

    A page's length says nothing about what follows: servers differ in their caps. Only a
    page without a new transaction ends the list.
    """
    seen: dict[str, dict[str, Any]] = {}
    for page in _pages(get, address, seen):
        fresh = {tx["txid"]: tx for tx in page if tx["txid"] not in seen}
        if not fresh:
            return list(seen.values())
        seen |= fresh
    raise fetch.FetchError(f"answered more than {MAX_PAGES} pages for one address")


def _pages(
    get: Get, address: str, seen: dict[str, dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    path = f"/address/{address}/txs"
    size, until_s = 0, time.monotonic() + MAX_S
    for _ in range(MAX_PAGES):
        body = get(path)
        size += len(body)
        if size > MAX_BYTES or time.monotonic() > until_s:
            raise fetch.FetchError("answered too much, or too slowly, for one address")
        yield _HISTORY.load(fetch.parse_json(body))
        last = next(reversed(seen.values()))
        # Behind confirmed ones Esplora continues under /chain; behind a page of unconfirmed
        # ones only mempool.space has more, and other servers answer the first page again.
        after = f"/chain/{last['txid']}" if _block(last) else f"?after_txid={last['txid']}"
        path = f"/address/{address}/txs{after}"


def outputs_in(history: list[dict[str, Any]], script: bytes) -> list[SeenOutput]:
    """What an address's transactions pay to `script` (0 satoshis are no money), and where spent."""
    spent = {
        (spending["txid"], spending["vout"]): block.height
        for tx in history
        if (block := _block(tx))
        for spending in tx["vin"]
    }
    return [
        SeenOutput(
            txid=tx["txid"],
            vout=vout,
            amount_sats=output["value"],
            block=_block(tx),
            spent_height=spent.get((tx["txid"], vout)),
        )
        for tx in history
        for vout, output in enumerate(tx["vout"])
        if output["scriptpubkey"] == script.hex() and output["value"] > 0
    ]


def _block(tx: dict[str, Any]) -> Block | None:
    status = tx["status"]
    if not status["confirmed"]:
        return None
    return Block(status["block_height"], status["block_hash"], from_unix_s(status["block_time"]))
