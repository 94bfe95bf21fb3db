"""The values that settlement speaks of: what is asked, what was seen, what follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.spv.verify import Proven


@dataclass(frozen=True)
class Block:
    """The block that a transaction is in; `mined_at` is its header's time."""

    height: int
    hash: str
    mined_at: datetime


@dataclass(frozen=True, slots=True)
class SeenOutput:
    """An output that pays the address; `spent_height` is the block in which it was spent."""

    txid: str
    vout: int
    amount_sats: int
    block: Block | None
    spent_height: int | None

    @property
    def outpoint(self) -> tuple[str, int]:
        """Transaction and index, which name an output."""
        return self.txid, self.vout


@dataclass(frozen=True)
class Proof:
    """What was proven of a transaction, the document that proves it again, and who showed it."""

    proven: Proven
    document: str
    explorer: str | None = None


@dataclass(frozen=True)
class Scan:
    """A complete answer about one address, and when the question was put, by our clock.

    `ahead`: how far that clock is ahead of the explorers'. It puts off an end, and nothing else.
    `proofs` by txid: a confirmed output without one is doubted, and never becomes a payment.
    `unproven`: a proof was wanted and could not be had; `short`: because the budget was spent.
    `explorer`: the host that was asked.
    """

    asked_at: datetime
    tip_height: int
    outputs: Sequence[SeenOutput]
    price_usd: Decimal | None
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    unproven: bool = False
    short: bool = False
    explorer: str | None = None
    ahead: timedelta = timedelta()

    @property
    def ends_at(self) -> datetime:
        """The time by which deadlines are judged: nothing ends before both clocks say so."""
        return self.asked_at - self.ahead


@dataclass(frozen=True)
class Rules:
    """What the merchant asks: blocks of depth, and percent of the amount that may be missing."""

    confirmations: int
    tolerance_percent: Decimal


@dataclass(frozen=True)
class Invoice:
    """What settlement needs to know of an invoice."""

    id: str
    status: str
    amount_sats: int
    created_at: datetime
    expires_at: datetime | None
    tx_hash: str | None = None
    paid_at: datetime | None = None


@dataclass(frozen=True)
class Output:
    """An output to the invoice's address, as we know it.

    `proven`: its block was proven to us, and its `position` in the block. `coinbase`: it is the
    block's first transaction. `seen_waiting`: we saw it before it was in any block. `vanished`: it
    left the mempool and is no money any more. `doubted`: it was proven, and the last scan did not
    show it; it is neither counted nor forgotten. `credited`: it is part of a payment already;
    `settles`: of one that carries the invoice's id.
    """

    txid: str
    vout: int
    amount_sats: int
    first_seen_at: datetime
    coinbase: bool = False
    block: Block | None = None
    spent_height: int | None = None
    proven: bool = False
    vanished: bool = False
    doubted: bool = False
    credited: bool = False
    settles: bool = False
    position: int | None = None
    seen_waiting: bool = False

    @property
    def outpoint(self) -> tuple[str, int]:
        """Transaction and index, which name an output."""
        return self.txid, self.vout


@dataclass(frozen=True)
class Receipt:
    """A payment that should exist: one transaction's confirmed money to this address.

    `mined_at` is its block's time, `received_at` that within the invoice's life; `settles`:
    whether it carries the invoice's id.
    """

    txid: str
    amount_sats: int
    mined_at: datetime
    received_at: datetime
    settles: bool


@dataclass(frozen=True)
class Verdict:
    """Where the invoice stands. Amounts in satoshis; `reason` is a sentence for the merchant.

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
