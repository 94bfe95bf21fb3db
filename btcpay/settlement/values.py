"""The values of settlement: the request, the sightings, and the verdict that follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.values.statuses import InvoiceStatus


@dataclass(frozen=True)
class Block:
    """The block that a transaction is in; `mined_at` is its header's time."""

    height: int
    hash: str
    mined_at: datetime


@dataclass(frozen=True, slots=True)
class SeenOutput:
    """An output that pays the address: proven to be in `block`, or said to wait in the mempool.

    `position` is its transaction's place in the block, 0 for the coinbase. `inputs` are the
    outpoints that the transaction spends, as "txid:vout"; empty when they are too many to be kept.
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

    `confirmed`: outputs of blocks to the address; `proofs`: the documents that prove them, by txid.
    `spent`: the heights at which its coins were spent, by outpoint. `replaced`: the heights at
    which other transactions spent the inputs of waiting ones, by the waiting ones' txid.
    `waiting`: the mempool's outputs to the address; None if the mempool was not asked.
    `absent_is_gone`: true if every block is read, so that an output which neither a block nor the
    mempool shows is gone. `is_cut`: true if the mempool's list may be incomplete.
    `ends_at`: deadlines up to this time may have passed; None while a block up to the tip is not
    read, or the mempool was not asked.
    `prices`: the price of a bitcoin, by currency. `explorer`: the host that was asked.
    """

    asked_at: datetime
    tip_height: int
    confirmed: list[SeenOutput] = field(default_factory=list)
    proofs: dict[str, str] = field(default_factory=dict)
    spent: dict[tuple[str, int], int] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)
    waiting: Sequence[SeenOutput] | None = None
    absent_is_gone: bool = False
    ends_at: datetime | None = None
    is_cut: bool = False
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    explorer: str | None = None


@dataclass(frozen=True)
class Rules:
    """The merchant's conditions: confirmations, and the percentage that may be missing.

    `gone_after`: if the whole sum was seen in time and has vanished, the invoice stays open for
    this long, and at least until another look at the mempool.
    """

    confirmations: int
    tolerance_percent: Decimal
    gone_after: timedelta = timedelta(hours=1)


@dataclass(frozen=True)
class Invoice:
    """A request for money. `covered_at`: the time when the whole sum was first seen.

    `at_till`: goods go over the counter as soon as that is so. `of_bill`: it asks for the rest of a
    bill, which will ask again if this is too little. `overpaid_sats`: what came to it beyond what
    its bill lacked. `above_height`: we had the headers of our chain up to this height when the
    invoice was made, so outputs in blocks up to there are older; None if no header was known. A
    reorganisation lowers it.
    """

    id: str
    status: InvoiceStatus
    amount_sats: int
    created_at: datetime
    expires_at: datetime | None
    tx_hash: str | None = None
    paid_at: datetime | None = None
    covered_at: datetime | None = None
    at_till: bool = False
    of_bill: bool = False
    overpaid_sats: int = 0
    above_height: int | None = None


@dataclass(frozen=True, kw_only=True)
class Output(SeenOutput):
    """An output to the invoice's address, as we know it.

    `seen_waiting`: we saw it before it was in any block. `vanished_at`: no mempool shows it since
    then, so that it is not money. `replaced_height`: the height at which another transaction has
    spent its inputs. `credited`: it is part of a payment already. `settles`: that payment carries
    the invoice's id.
    """

    first_seen_at: datetime
    seen_waiting: bool = False
    vanished_at: datetime | None = None
    replaced_height: int | None = None
    spent_height: int | None = None
    credited: bool = False
    settles: bool = False

    @property
    def coinbase(self) -> bool:
        """True for an output of its block's first transaction."""
        return self.position == 0


@dataclass(frozen=True)
class Receipt:
    """A payment that should exist: one transaction's confirmed money to this address.

    `received_at`: its block's time, but not before the invoice was made, nor in the future.
    `settles`: true if the payment carries the invoice's id. `may_be_older`: by all that we know,
    the money may have been sent before the invoice was made. `is_older`: its block was known
    before the invoice, so nobody sent it for this invoice.
    """

    txid: str
    amount_sats: int
    block: Block
    received_at: datetime
    settles: bool
    may_be_older: bool = False
    is_older: bool = False

    @property
    def came_for_it(self) -> bool:
        """False for older money, unless a human has accepted it for the invoice."""
        return self.settles or not self.is_older


@dataclass(frozen=True)
class Verdict:
    """The state of an invoice. Amounts in satoshis; `reason` is a sentence for the merchant.

    `received_sats`: all that counts towards the amount; `unconfirmed_sats`: the part of this sum
    that lacks confirmations. `confirmations`: the fewest of any output that counts.
    `coming_unapplied_sats`: money on its way that will count for nothing, as it is late, comes
    after a cancellation, or exceeds the amount.
    """

    status: InvoiceStatus
    tx_hash: str | None
    paid_at: datetime | None
    receipts: tuple[Receipt, ...]
    received_sats: int
    unconfirmed_sats: int
    missing_sats: int
    confirmations: int
    reason: str
    coming_unapplied_sats: int = 0
