"""What the chain itself says, block by block, and what a look at it could have taught the service.

Nothing here asks the service or its settlement. The rules are those of docs/settlement.md.
"""

import itertools
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from databases import tables
from fake_esplora import Json

from btcpay.bitcoin.tx import Tx
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.script import script_of
from btcpay.times import from_ms

Outpoint = tuple[str, int]

# What the shops under test ask: confirmations by USD, and percent that may be missing.
CONFIRMATIONS = {25: 1, 200: 3}
TOLERANCE_PERCENT = 1


@dataclass(frozen=True)
class Sight:
    """An output as an explorer shows it; without a block it waits."""

    sats: int
    height: int | None = None
    block: str | None = None
    mined_at: datetime | None = None
    spent: bool = False


View = dict[Outpoint, Sight]


def view_of(chain: Chain, address: str) -> View:
    """Every output to the address, on the best branch or waiting for it."""
    script, ledger, view = script_of(address), chain.ledger, View()
    branch = [ledger.blocks[hash] for hash in ledger.hashes]
    spent = {tuple(i.outpoint) for block in branch for tx in block.txs for i in tx.inputs}

    def add(tx: Tx, height: int | None, block: str | None, mined_at: datetime | None) -> None:
        for vout, output in enumerate(tx.outputs):
            if output.script == script:
                at = (tx.txid, vout)
                view[at] = Sight(output.value_sats, height, block, mined_at, at in spent)

    for height, block in enumerate(branch):
        for tx in block.txs:
            add(tx, height, block.hash, datetime.fromtimestamp(block.time, UTC))
    for entry in chain.mempool.entries.values():
        add(entry.tx, None, None, None)
    return view


def deep(view: View, tip: int, confirmations: int) -> View:
    """What has at least so many confirmations."""
    return {
        at: sight
        for at, sight in view.items()
        if sight.height is not None and tip - sight.height + 1 >= confirmations
    }


def as_waiting(view: View) -> View:
    """What an explorer shows that has not heard of any block."""
    return {at: Sight(sight.sats) for at, sight in view.items()}


@dataclass
class Memory:
    """What looks have taught of one output.

    `proven` and `payment` are what the service says; `payment` is the id that it counts under.
    """

    first_seen_at: datetime
    sight: Sight
    alive: bool = True
    proven: bool = False
    payment: str | None = None

    def in_time(self, deadline: datetime | None) -> bool:
        """Seen by us before the deadline, or in a block whose time is before it."""
        if deadline is None or self.first_seen_at < deadline:
            return True
        return self.sight.mined_at is not None and self.sight.mined_at < deadline

    def leave_block(self) -> None:
        """Its block was lost: what was proven to be in time by it stays in time."""
        if self.proven and self.sight.mined_at:
            self.first_seen_at = min(self.first_seen_at, self.sight.mined_at)
        self.payment, self.proven = None, False
        self.sight = Sight(self.sight.sats)


class Book:
    """What is remembered of one address."""

    def __init__(self) -> None:
        self.memories: dict[Outpoint, Memory] = {}

    def look(self, view: View, now: datetime) -> bool:
        """Takes a complete answer in; whether it misses money that waited."""
        misses = False
        for at, memory in self.memories.items():
            sight = view.get(at)
            memory.first_seen_at = min(memory.first_seen_at, now)  # a clock may be set back
            if sight and memory.payment:  # stands, as only evidence undoes it
                memory.sight = replace(memory.sight, spent=sight.spent)
            elif sight and memory.proven and sight.block is None:
                pass  # what is proven to be in a block is not said away
            elif sight:
                if sight.block != memory.sight.block:
                    memory.leave_block()
                memory.sight, memory.alive = sight, True
            elif memory.alive and not memory.proven:
                memory.alive, misses = False, True
                memory.sight = Sight(memory.sight.sats)
        for at in view.keys() - self.memories.keys():
            self.memories[at] = Memory(now, view[at])
        return misses

    def undo(self, payment: str) -> None:
        """The block of this payment was lost."""
        for memory in self.memories.values():
            if memory.payment == payment:
                memory.leave_block()

    def counted_sats(self, deadline: datetime | None) -> int:
        """What came in time and is a payment."""
        return sum(
            m.sight.sats for m in self.memories.values() if m.payment and m.in_time(deadline)
        )

    def alive_sats(self, deadline: datetime | None) -> int:
        """What came in time and is money still: waiting, confirmed, or proven once."""
        return sum(m.sight.sats for m in self.memories.values() if m.alive and m.in_time(deadline))

    def verdict(self, invoice: Json, misses: bool, now: datetime) -> str:
        """Where a look at `now` leaves an open invoice."""
        deadline, needed = deadline_of(invoice), needed_sats(invoice)
        if self.counted_sats(deadline) >= needed:
            return "paid"
        over = deadline is not None and now >= deadline
        return "expired" if over and not misses and self.alive_sats(deadline) < needed else "open"

    def unspent_sats(self) -> int:
        """What an honest look adds to the total of the balance."""
        alive = (memory for memory in self.memories.values() if memory.alive)
        return sum(memory.sight.sats for memory in alive if not memory.sight.spent)


class Rows:
    """The database at one moment, read past the models."""

    def __init__(self, connection: Any) -> None:
        found = tables(connection)
        self.invoices = {row["id"]: row for row in found["invoice"]}
        self.payments = {row["id"]: row for row in found["payment"]}
        self.outputs = found["output"]
        self.proofs = [row["payment_id"] for row in found["proof"]]

    def blocks_of(self, payment_id: str) -> set[str]:
        return {row["block_hash"] for row in self.outputs if row["payment_id"] == payment_id}


def deadline_of(invoice: Json) -> datetime | None:
    return None if invoice["expires_at"] is None else from_ms(invoice["expires_at"])


def needed_sats(invoice: Json) -> int:
    """The amount less the tolerance, rounded up to a whole satoshi."""
    return -(-invoice["amount_sats"] * (100 - TOLERANCE_PERCENT) // 100)


def confirmations_of(invoice: Json) -> int:
    return CONFIRMATIONS[int(invoice["amount_usd_quote"])]


def completing(settled: View, needed: int) -> set[str]:
    """The transactions of the block in which the sum is reached, in the chain's order."""
    ordered = sorted(settled.items(), key=lambda item: item[1].height or 0)
    sums = itertools.accumulate(sight.sats for _, sight in ordered)
    height = next(
        s.height for (_, s), sum_sats in zip(ordered, sums, strict=True) if sum_sats >= needed
    )
    return {txid for (txid, _), sight in ordered if sight.height == height}
