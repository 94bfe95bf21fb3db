"""The data types of settlement: invoices, outputs, scans, payments and verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from btcpay.values.statuses import InvoiceStatus


@dataclass(frozen=True)
class Block:
    """The block that contains a transaction. `mined_at` is the time in its header."""

    height: int
    hash: str
    mined_at: datetime


@dataclass(frozen=True, slots=True)
class SeenOutput:
    """An output that pays the invoice's address.

    The output is proven to be in `block`. If `block` is None, a mempool shows the
    output. `position` is the index of its transaction in the block, 0 for the coinbase.
    `inputs` are the outpoints that its transaction spends, as "txid:vout"; empty if
    they are too many to store. `feerate` is the transaction's fee rate in satoshis per
    1,000 vbytes, as an explorer states it; None if it is unknown.
    """

    txid: str
    vout: int
    amount_sats: int
    block: Block | None = None
    position: int | None = None
    inputs: tuple[str, ...] = ()
    feerate: int | None = None

    @property
    def outpoint(self) -> tuple[str, int]:
        return self.txid, self.vout


@dataclass(frozen=True)
class Scan:
    """New facts about an invoice's address, from blocks or from a mempool.

    `asked_at` is the time of the request, by our clock. `confirmed` are outputs to the
    address in blocks, and `proofs` the documents that prove them, by txid. `spent` maps
    each spent outpoint of the address to the height at which it was spent. `replaced`
    maps the txid of an unconfirmed transaction to the height at which another
    transaction spent one of its inputs.

    `waiting` are the mempool's outputs to the address; None if the mempool was not
    queried. `absent_is_gone` is True if every block is read: then an output that
    neither a block nor the mempool shows has vanished. `is_cut` is True if the
    mempool's list may be incomplete.

    An invoice may expire if its deadline is not after `ends_at`. `ends_at` is None if
    no invoice may expire: if a block up to the tip is unread, or if the mempool was not
    queried. `prices` are the prices of one bitcoin by currency. `explorer` is the host
    that returned the data.
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
    """The merchant's conditions for payments.

    `confirmations` is the required number. `tolerance_percent` is the percentage of the
    amount that may be missing. If the full amount was seen in time and then vanished,
    the invoice stays open for `gone_after`, and at least until the mempool is queried
    again.
    """

    confirmations: int
    tolerance_percent: Decimal
    gone_after: timedelta = timedelta(hours=1)


@dataclass(frozen=True)
class Invoice:
    """An invoice, as far as settlement needs it.

    `covered_at` is the time when the full amount was first seen. `at_till` is True if
    the shop hands the goods over as soon as that happens. `of_bill` is True if the
    invoice collects the unpaid rest of a bill; if too little is paid, the bill makes
    another invoice. `overpaid_sats` is the amount received beyond that rest.

    `above_height` is the height of the newest header that we had when the invoice was
    made; None if we had none. Outputs in blocks up to this height are older than the
    invoice. A reorganisation of such blocks lowers the stored height.
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
    """An output to the invoice's address, with its stored state.

    `seen_waiting` is True if it was seen before it was mined. `vanished_at` is the time
    since which no mempool shows it; a vanished output does not count. `replaced_height`
    is the height of the block in which another transaction spent an input of this
    output's transaction. `spent_height` is the height at which the output itself was
    spent. `credited` is True if the output belongs to a payment. `settles` is True if
    that payment settles the invoice.
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
        """True if the output belongs to a coinbase transaction."""
        return self.position == 0


@dataclass(frozen=True)
class Receipt:
    """A payment that results from one transaction's confirmed outputs to the address.

    `received_at` is the block's time, but not before the invoice was created and not in
    the future. `settles` is True if the payment settles the invoice. `may_be_older` is
    True if the transaction was perhaps sent before the invoice was made. `is_older` is
    True if its block was known before the invoice was made, so that it was certainly
    not sent for this invoice.
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
        """True if the payment counts as sent for this invoice.

        False if it is older than the invoice, unless a human has accepted it.
        """
        return self.settles or not self.is_older


@dataclass(frozen=True)
class Verdict:
    """The state of an invoice, computed from its outputs.

    `received_sats` is the sum of all outputs that count towards the amount, and
    `unconfirmed_sats` the part of that sum that lacks confirmations. `missing_sats` is
    still to be sent. `confirmations` is the lowest number of confirmations among the
    outputs that count. `reason` is a sentence for the merchant. `coming_unapplied_sats`
    is the sum of unconfirmed outputs that will settle nothing: they are late, follow a
    cancellation, or exceed the amount.
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
