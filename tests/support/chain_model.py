"""What blocks and mempool could have taught the service, kept beside it: the oracle of its books.

Nothing here asks the service or its settlement, but which blocks it has read. The rules are those
of docs/settlement.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from databases import tables
from fake_esplora import Json

from btcpay.bitcoin.tx import Tx
from btcpay.sandbox.node.block import Block
from btcpay.sandbox.node.chain import Chain
from btcpay.sandbox.node.script import script_of
from btcpay.values.times import from_ms

Outpoint = tuple[str, int]

# What the shops under test ask: confirmations by USD, and percent that may be missing.
CONFIRMATIONS = {25: 1, 200: 3}
TOLERANCE_PERCENT = 1


class Waiting(NamedTuple):
    """An output as a mempool shows it, and what its transaction spends."""

    sats: int
    inputs: frozenset[Outpoint]


View = dict[Outpoint, Waiting]


def inputs_of(tx: Tx) -> frozenset[Outpoint]:
    return frozenset((spent.outpoint.txid, spent.outpoint.vout) for spent in tx.inputs)


def paid_by(tx: Tx, script: bytes) -> dict[Outpoint, int]:
    outputs = enumerate(tx.outputs)
    return {(tx.txid, vout): o.value_sats for vout, o in outputs if o.script == script}


def waiting_of(chain: Chain, address: str) -> View:
    script = script_of(address)
    return {
        at: Waiting(sats, inputs_of(entry.tx))
        for entry in chain.mempool.entries.values()
        for at, sats in paid_by(entry.tx, script).items()
    }


@dataclass
class Memory:
    """What is known of one output; `payment` is what the service says: the id it counts under."""

    sats: int
    first_seen_at: datetime
    inputs: frozenset[Outpoint] = frozenset()
    height: int | None = None
    block: str | None = None
    mined_at: datetime | None = None
    spent: bool = False
    vanished_at: datetime | None = None
    replaced_by: str | None = None
    payment: str | None = None

    @property
    def alive(self) -> bool:
        return self.vanished_at is None

    def in_time(self, deadline: datetime | None) -> bool:
        """Seen by us before the deadline, or in a block whose time is before it."""
        if deadline is None or self.first_seen_at < deadline:
            return True
        return self.mined_at is not None and self.mined_at < deadline

    def leave_block(self) -> None:
        """Its block was lost: what was in time by it stays in time."""
        assert self.mined_at
        self.first_seen_at = min(self.first_seen_at, self.mined_at)
        self.height = self.block = self.mined_at = self.payment = None
        self.inputs, self.spent = frozenset(), False


@dataclass
class Book:
    script: bytes
    memories: dict[Outpoint, Memory] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def follow(self, chain: Iterable[tuple[int, Block]], now: datetime) -> None:
        """The blocks that are read and on the chain, by height: what is lost, and what is new."""
        blocks = list(chain)
        self.read &= {block.hash for _, block in blocks}
        for memory in self.memories.values():
            if memory.block and memory.block not in self.read:
                memory.leave_block()
            if memory.replaced_by and memory.replaced_by not in self.read:
                memory.replaced_by = None
        for height, block in blocks:
            if block.hash not in self.read:
                self.read.add(block.hash)
                self._take(height, block, now)
        spent = {at for _, block in blocks for tx in block.txs for at in inputs_of(tx)}
        for at, memory in self.memories.items():
            memory.spent = memory.block is not None and at in spent

    def _take(self, height: int, block: Block, now: datetime) -> None:
        mined_at = datetime.fromtimestamp(block.time, UTC)
        for tx in block.txs:
            for at, sats in paid_by(tx, self.script).items():
                memory = self.memories.setdefault(at, Memory(sats, now))
                memory.sats, memory.inputs = sats, frozenset()
                memory.height, memory.block, memory.mined_at = height, block.hash, mined_at
                memory.vanished_at = memory.replaced_by = None
        spent = {at for tx in block.txs for at in inputs_of(tx)}
        for memory in self.memories.values():
            if memory.block is None and memory.replaced_by is None and memory.inputs & spent:
                memory.replaced_by = block.hash
                memory.vanished_at = memory.vanished_at or now

    def look(self, shown: View, now: datetime, misses: bool) -> None:
        """What a mempool shows; `misses`: whether what it does not show is gone."""
        for at, waiting in shown.items():
            memory = self.memories.setdefault(at, Memory(waiting.sats, now))
            if memory.block is None and memory.replaced_by is None:
                memory.sats, memory.inputs = waiting
                memory.vanished_at = None
        for at, memory in self.memories.items():
            if misses and at not in shown and memory.block is None and memory.alive:
                memory.vanished_at = now

    def counted_sats(self, deadline: datetime | None) -> int:
        return sum(m.sats for m in self.memories.values() if m.payment and m.in_time(deadline))

    def alive_sats(self, deadline: datetime | None) -> int:
        return sum(m.sats for m in self.memories.values() if m.alive and m.in_time(deadline))

    def verdict(self, invoice: Json, may_end: bool, now: datetime) -> str:
        """Where news at `now` leave an open invoice; `may_end`: all was asked after its end."""
        deadline, needed = deadline_of(invoice), needed_sats(invoice)
        if self.counted_sats(deadline) >= needed:
            return "paid"
        over = may_end and deadline is not None and now >= deadline
        held = any(
            m.vanished_at and m.vanished_at >= now and not m.replaced_by and m.in_time(deadline)
            for m in self.memories.values()
        )
        return "expired" if over and not held and self.alive_sats(deadline) < needed else "open"

    def deep(self, tip: int, confirmations: int) -> set[Outpoint]:
        return {
            at
            for at, m in self.memories.items()
            if m.height is not None and tip - m.height + 1 >= confirmations
        }

    def unspent_sats(self, counted: bool) -> int:
        """What it adds to the balance: to its total, or to what is confirmed."""
        memories = self.memories.values()
        return sum(
            m.sats for m in memories if m.alive and not m.spent and (m.payment or not counted)
        )


class Rows:
    """The database at one moment, read past the models."""

    def __init__(self, connection: Any) -> None:
        found = tables(connection)
        self.invoices = {row["id"]: row for row in found["invoice"]}
        self.payments = {row["id"]: row for row in found["payment"]}
        self.outputs = found["output"]
        self.proofs = {(row["invoice_id"], row["txid"]) for row in found["proof"]}
        self.chain = sorted(found["block"], key=lambda row: row["height"])

    @property
    def tip(self) -> int:
        return self.chain[-1]["height"] if self.chain else 0

    def read(self, blocks: Mapping[str, Block]) -> list[tuple[int, Block]]:
        return [(row["height"], blocks[row["hash"]]) for row in self.chain if row["read_at"]]


def deadline_of(invoice: Json) -> datetime | None:
    return None if invoice["expires_at"] is None else from_ms(invoice["expires_at"])


def needed_sats(invoice: Json) -> int:
    """The amount less the tolerance, rounded up to a whole satoshi."""
    return -(-invoice["amount_sats"] * (100 - TOLERANCE_PERCENT) // 100)


def confirmations_of(invoice: Json) -> int:
    return CONFIRMATIONS[int(invoice["amount_usd_quote"])]
