"""The values that settlement speaks of: what is asked, what was seen, what follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal


@dataclass(frozen=True)
class Block:
    """The block that a transaction is in; `mined_at` is its header's time."""

    height: int
    hash: str
    mined_at: datetime


@dataclass(frozen=True, slots=True)
class SeenOutput:
    """An output that pays the address: proven to be in `block`, or said to wait in the mempool.

    `position` is its transaction's place in the block. `inputs` are the outpoints that the
    transaction spends, as "txid:vout"; empty when they are too many to be kept.
    """

    txid: str
    vout: int
    amount_sats: int
    block: Block | None = None
    position: int | None = None
    inputs: tuple[str, ...] = ()

    @property
    def outpoint(self) -> tuple[str, int]:
        return self.txid, self.vout


@dataclass(frozen=True)
class Scan:
    """News of an invoice's address, and the time by our clock when we learned it.

    `confirmed`: what a block pays to it. `spent`: the blocks in which its coins were spent.
    `replaced`: by txid, the blocks that spend the inputs of waiting transactions otherwise.
    `waiting`: what the mempool shows; None when it was not asked. `misses`: whether what it does
    not show is gone: every block is read. `ends_at`: deadlines up to then may have passed; None
    while a block up to the tip is not read, or the mempool was not asked. `is_cut`: more may wait
    than was listed.
    `prices`: of a bitcoin, by the currencies in which one is known.
    `explorer`: the host that was asked.
    """

    asked_at: datetime
    tip_height: int
    confirmed: Sequence[SeenOutput] = ()
    spent: Mapping[tuple[str, int], int] = field(default_factory=dict)
    replaced: Mapping[str, int] = field(default_factory=dict)
    waiting: Sequence[SeenOutput] | None = None
    misses: bool = False
    ends_at: datetime | None = None
    is_cut: bool = False
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    explorer: str | None = None


@dataclass(frozen=True)
class Rules:
    """The merchant's conditions: confirmations, and percent of the amount that may be missing.

    `gone_after`: what was seen in time, is enough and has vanished keeps an invoice open for so
    long, and at least until another look at the mempool.
    """

    confirmations: int
    tolerance_percent: Decimal
    gone_after: timedelta = timedelta(hours=1)


@dataclass(frozen=True)
class Invoice:
    """A request for money; `covered_at`: when the whole sum was first seen, confirmed or not."""

    id: str
    status: str
    amount_sats: int
    created_at: datetime
    expires_at: datetime | None
    tx_hash: str | None = None
    paid_at: datetime | None = None
    covered_at: datetime | None = None


@dataclass(frozen=True)
class Output:
    """An output to the invoice's address, as we know it.

    `block`: proven to be in it, at that `position`; the first is the coinbase's. `seen_waiting`: we
    saw it before it was in any block. `vanished_at`: since then no mempool shows it, and it is no
    money any more; `replaced_height`: the block that has spent its inputs otherwise. `credited`: it
    is part of a payment already; `settles`: of one that carries the invoice's id.
    """

    txid: str
    vout: int
    amount_sats: int
    first_seen_at: datetime
    seen_waiting: bool = False
    inputs: tuple[str, ...] = ()
    vanished_at: datetime | None = None
    replaced_height: int | None = None
    block: Block | None = None
    position: int | None = None
    spent_height: int | None = None
    credited: bool = False
    settles: bool = False

    @property
    def vanished(self) -> bool:
        return self.vanished_at is not None

    @property
    def coinbase(self) -> bool:
        """True for an output of its block's first transaction."""
        return self.position == 0

    @property
    def outpoint(self) -> tuple[str, int]:
        return self.txid, self.vout


@dataclass(frozen=True)
class Receipt:
    """A payment that should exist: one transaction's confirmed money to this address.

    `received_at` is its block's time, within the invoice's life; `settles`: whether it carries the
    invoice's id.
    """

    txid: str
    amount_sats: int
    block: Block
    received_at: datetime
    settles: bool


@dataclass(frozen=True)
class Verdict:
    """The state of an invoice. Amounts in satoshis; `reason` is a sentence for the merchant.

    `received_sats` is everything that counts towards the amount, `unconfirmed_sats` the part of
    it that is not deep enough. `confirmations` is the least depth among what counts.
    """

    status: str
    tx_hash: str | None
    paid_at: datetime | None
    receipts: tuple[Receipt, ...]
    received_sats: int
    unconfirmed_sats: int
    missing_sats: int
    confirmations: int
    reason: str
