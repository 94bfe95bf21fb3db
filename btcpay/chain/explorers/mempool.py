"""What waits for a block and pays an address, as Esplora tells it: a sighting, never a proof.

Source: Blockstream/esplora API.md, /address/:address/txs/mempool; mempool.space's documentation.
"""

from typing import Any, NamedTuple

from btcpay.chain.explorers.page import values_in
from btcpay.chain.explorers.parts import Parts, parts_of
from btcpay.chain.explorers.shape import shaped
from btcpay.http.http_client import Response
from btcpay.values.errors import FetchError
from btcpay.values.money import MAX_MONEY_SATS

# Servers cap the list: electrs at 50, others lower. A shorter one is all that there is.
WHOLE_BELOW = 25
MAX_PARTS = 15_000  # outputs and inputs of one address
# Of one page. 75 transactions of ordinary size are some 200 kB, and half of it is cut as it comes;
# a single transaction that pays three thousand others is a megabyte.
MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES = 16_000_000, 3_000_000


class Waiting(NamedTuple):
    """An output that pays the address and is in no block yet.

    `inputs` are the outpoints that its transaction spends, as "txid:vout"; empty for a transaction
    of more than a hundred.
    """

    txid: str
    vout: int
    amount_sats: int
    inputs: tuple[str, ...]


class Mempool(NamedTuple):
    """What waits. Unless `is_whole`, there may be more that the explorer did not list."""

    outputs: list[Waiting]
    is_whole: bool


def mempool_page(script: bytes) -> Response[Mempool]:
    """What of an address's mempool page pays `script`, its scriptPubKey."""
    return Response(
        lambda body: _mempool(values_in(body), script.hex()), MAX_PAGE_BYTES, MAX_PAGE_KEPT_BYTES
    )


def transactions_page() -> Response[list[dict[str, Any]]]:
    """The transactions of a page, each with `txid` and `status`."""
    return Response(
        lambda body: [_transaction(tx) for tx in values_in(body)],
        MAX_PAGE_BYTES,
        MAX_PAGE_KEPT_BYTES,
    )


def _transaction(tx: Any) -> dict[str, Any]:
    named = isinstance(tx, dict)
    return shaped(
        "Transaction", {name: tx[name] for name in ("txid", "status") if named and name in tx}
    )


def _mempool(txs: list[Any], script: str) -> Mempool:
    """Each transaction once. One that came into a block meanwhile waits no more: left out."""
    waiting: dict[str, Parts] = {}
    for tx in txs:
        parts, found = parts_of(tx, script), _transaction(tx)
        if not found["status"]["confirmed"]:
            waiting[found["txid"]] = parts
    outputs = [
        Waiting(txid, vout, amount_sats, parts.inputs)
        for txid, parts in waiting.items()
        for vout, amount_sats in parts.paid
    ]
    if sum(output.amount_sats for output in outputs) > MAX_MONEY_SATS:
        raise FetchError("answered more money than can exist")
    mempool = Mempool(outputs, len(txs) < WHOLE_BELOW)
    if parts_in(mempool) > MAX_PARTS:
        raise FetchError(f"answered more than {MAX_PARTS} outputs for one address")
    return mempool


def parts_in(mempool: Mempool) -> int:
    """How many outputs and inputs are held."""
    inputs = {output.txid: len(output.inputs) for output in mempool.outputs}
    return len(mempool.outputs) + sum(inputs.values())
