"""The acts of owner and payer: a refund is made, given its address, cleared of it, or canceled.

Each is one transaction behind the lock of the merchant's balance.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from peewee import Query

from btcpay.invoices.history import record
from btcpay.notify.publish import publish_resource
from btcpay.parts.refunds import destination, queries, sums
from btcpay.parts.refunds.kinds import RESOURCE, RefundKind
from btcpay.parts.refunds.models import Refund
from btcpay.settings.settings import Settings
from btcpay.values.errors import Refused
from btcpay.values.ids import new_id
from btcpay.values.money import MAX_MONEY_SATS
from btcpay.values.statuses import RefundStatus
from btcpay.values.texts import checked_line
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.queries import blocks, invoices, meta
from storage.queries.events import Kind
from storage.queries.totals import balances

MOST_TIMES = 2  # of what came: a refund may be more than was paid, at another price
Outpoint = tuple[str | None, int | None]


class RefundRequest(NamedTuple):
    """A refund to be made; without `amount_sats` it is of what `left_sats` says.

    `invoice_id` is None where only a shop's plug-in knows what was paid: then the sum is said.
    `store_id`: that shop's; `shop_texts`: what its plug-in called the refund, as JSON. `id` is
    given where a form determines it, `left_sats` where a form said what is left, `made_sats` where
    the sum is less the refunds that were made: either may have changed since.
    """

    merchant_id: int
    invoice_id: str | None
    amount_sats: int | None = None
    reason: str | None = None
    address: str | None = None
    id: str | None = None
    store_id: str | None = None
    left_sats: str | None = None
    shop_texts: str | None = None
    made_sats: int | None = None

    @property
    def has_fixed_sum(self) -> bool:
        """False where the sum follows from what came, by our default or by a plug-in's rule."""
        return self.amount_sats is not None and self.made_sats is None


class Step(NamedTuple):
    """A step of a refund's life: an UPDATE that repeats the state before, and what tells of it."""

    query: Query
    kind: Kind
    told: RefundKind


GIVEN = Step(queries.GIVE, Kind.REFUND_READY, RefundKind.READY)
CLEARED = Step(queries.CLEAR, Kind.REFUND_CLEARED, RefundKind.REQUESTED)
CANCELED = Step(queries.CANCEL, Kind.REFUND_CANCELED, RefundKind.CANCELED)
SENT = Step(queries.SEND, Kind.REFUND_SENT, RefundKind.SENT)
UNDONE = Step(queries.UNDO, Kind.REFUND_UNDONE, RefundKind.UNDONE)


def make(
    db: Database, settings: Settings, order: RefundRequest, now: datetime
) -> Refund:
    """Stores a refund, and tells of it; a form's second copy finds the first's.

    Raises Refused: `nothing_came`, `amount`, `too_much`, `changed`, and what `give` raises.
    """
    with db.write():
        if order.address:
            meta.lock(db)
        balances.lock(db, order.merchant_id)
        if order.id and (made := db.row(queries.BY_ID, id=order.id)):
            return made
        found = _sum(db, order)
        row = db.only(
            queries.ADD,
            id=order.id or new_id("rfd"),
            merchant_id=order.merchant_id,
            invoice_id=order.invoice_id,
            status=RefundStatus.REQUESTED,
            amount_sats=found.sats,
            basis=found.basis,
            reason=checked_line("reason", order.reason) if order.reason else None,
            store_id=order.store_id,
            shop_texts=order.shop_texts,
            created_at=to_ms(now),
        )
        note(db, row, Kind.REFUND_MADE, now)
        if order.address:
            return _give_address(db, settings, row, order.address, now)
        return publish_resource(db, RESOURCE, row.id, RefundKind.REQUESTED, now)


class _Sum(NamedTuple):
    """Satoshis of a refund; `basis`: what they were reckoned from, None where they were said."""

    sats: int
    basis: sums.Basis | None


def _sum(db: Database, order: RefundRequest) -> _Sum:
    found = _Sum(order.amount_sats or 0, None)
    if order.invoice_id:
        found = _sum_of_invoice(db, order, order.invoice_id)
    if not 0 < found.sats <= MAX_MONEY_SATS:
        raise Refused("amount", "there is nothing to send back: say how much")
    return found


def _sum_of_invoice(db: Database, order: RefundRequest, invoice_id: str) -> _Sum:
    came_sats = sums.came_sats_of(db, invoice_id)
    if not came_sats:
        raise Refused("nothing_came", "no confirmed payment has come to this invoice")
    refunds = sums.refunds_of(db, invoice_id)
    made_sats = sums.total_sats_of(refunds)
    if order.made_sats not in (None, made_sats):
        raise Refused("changed", f"refunds of {made_sats} satoshis were made meanwhile")
    if not order.has_fixed_sum and sums.is_sent_twice(db, invoice_id):
        raise Refused(
            "changed", "a refund of this invoice was sent twice: say how much"
        )
    if order.amount_sats is None:
        invoice = db.only(invoices.WHOLE, id=invoice_id)
        default = sums.default_of(invoice, came_sats, refunds)
        if order.left_sats not in (None, str(default.left_sats)):
            raise Refused(
                "changed", f"{default.left_sats} satoshis are left to send back"
            )
        found = _Sum(default.left_sats, default.basis)
    else:
        found = _Sum(order.amount_sats, None)
    if made_sats + found.sats > MOST_TIMES * came_sats:
        message = (
            f"refunds may sum to {MOST_TIMES * came_sats} satoshis, twice what came"
        )
        raise Refused("too_much", message)
    return found


def give_address(
    db: Database, settings: Settings, refund_id: str, text: str, now: datetime
) -> Refund:
    """Keeps the payer's address.

    Raises Refused: `changed`, `taken`, and what `destination.parse` raises.
    """
    with lock_refund(db, refund_id) as row:
        return _give_address(db, settings, row, text, now)


def _give_address(
    db: Database, settings: Settings, row: Refund, text: str, now: datetime
) -> Refund:
    """Behind the lock of facts: of two merchants whose refunds name one address, one comes first.

    Else what one of them sends would send the refund of the other, who may have made it for that.
    """
    to = destination.parse(db, settings.network, text, row.amount_sats)
    others: Values = {"script": to.script.hex(), "merchant_id": row.merchant_id}
    if db.row(queries.WAITS_FOR_OTHERS, **others):
        raise Refused(
            "taken", "another merchant's refund waits for this address: take a new one"
        )
    tip = blocks.tip_height(db)
    given: Values = {"address": to.address, "script": to.script.hex()}
    given["above_height"] = -1 if tip is None else tip
    return step(db, row, GIVEN, now, given)


def drop(db: Database, refund_id: str, to: Step, now: datetime) -> Refund:
    """CLEARED of its address, so that another can be given, or CANCELED. Raises Refused."""
    with lock_refund(db, refund_id) as row:
        return step(db, row, to, now)


@contextmanager
def lock_refund(db: Database, refund_id: str) -> Iterator[Refund]:
    """The refund in a transaction behind the locks of facts and of its merchant's balance."""
    with db.write():
        meta.lock(db)
        balances.lock(db, RESOURCE.find(db, refund_id).merchant_id)
        yield RESOURCE.find(db, refund_id)


def step(
    db: Database,
    row: Refund,
    to: Step,
    now: datetime,
    values: Values | None = None,
    by: Outpoint | None = None,
) -> Refund:
    """Takes the step, and returns the row after it. Raises Refused (`changed`) from other states.

    `values`: of the step's query. `by`: the output that sent the refund.
    """
    of: Values = {"id": row.id}
    if db.run(to.query, **of | (values or {})) != 1:
        raise Refused("changed", f"the refund is {row.status} already")
    sent_sats = (
        values["sent_sats"] if values and "sent_sats" in values else row.sent_sats
    )
    note(db, row, to.kind, now, by, sent_sats)
    return publish_resource(db, RESOURCE, row.id, to.told, now)


def note(
    db: Database,
    row: Refund,
    kind: Kind,
    now: datetime,
    by: Outpoint | None = None,
    sent_sats: int | None = None,
) -> None:
    """Adds to the history of its invoice, if it has one.

    `sent_sats`: what the output pays; it is said where it is not the refund's sum.
    """
    if row.invoice_id is None:
        return
    detail: dict[str, Any] = {"id": row.id, "amount_sats": row.amount_sats}
    if by:
        detail |= {"txid": by[0], "vout": by[1]}
    if sent_sats not in (None, row.amount_sats):
        detail["sent_sats"] = sent_sats
    record(db, row.invoice_id, kind, detail, now)
