"""What owner and payer do with a refund: it is created, gets an address, loses it, or is canceled.

Each action is one transaction, behind the lock of the merchant's balance.
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
    """A refund to be created.

    `invoice_id` is None if only a shop's plug-in knows what was paid. Then `amount_sats` is given.
    Without `amount_sats` the refund is of what is left to send back of the invoice.
    `id`: given if it follows from a form, so that a form that is sent twice makes one refund.
    `left_sats`: what the form said is left. `made_sats`: the sum of earlier refunds, if they were
    subtracted from `amount_sats`. If either has changed since, no refund is created.
    `store_id`: the plug-in's shop. `shop_texts`: what the plug-in called the refund, as JSON.
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
        """False if the sum follows from what came, by our default or by a plug-in's rule."""
        return self.amount_sats is not None and self.made_sats is None


class Step(NamedTuple):
    """A change of a refund's status.

    `query` is an UPDATE that repeats the expected status. `kind` goes into the invoice's history,
    `event` to the merchant's receivers.
    """

    query: Query
    kind: Kind
    event: RefundKind


GIVEN = Step(queries.GIVE, Kind.REFUND_READY, RefundKind.READY)
CLEARED = Step(queries.CLEAR, Kind.REFUND_CLEARED, RefundKind.REQUESTED)
CANCELED = Step(queries.CANCEL, Kind.REFUND_CANCELED, RefundKind.CANCELED)
SENT = Step(queries.SEND, Kind.REFUND_SENT, RefundKind.SENT)
UNDONE = Step(queries.UNDO, Kind.REFUND_UNDONE, RefundKind.UNDONE)


def make(
    db: Database, settings: Settings, order: RefundRequest, now: datetime
) -> Refund:
    """Stores a refund and publishes it. If its `id` exists already, that refund is returned.

    Raises Refused: `nothing_came`, `amount`, `too_much`, `changed`, and what `give_address` raises.
    """
    with db.write():
        if order.address:
            meta.lock(db)
        balances.lock(db, order.merchant_id)
        existing = None
        if order.id:
            existing = db.row(queries.BY_ID, id=order.id)
        if existing:
            return existing
        total = _sum(db, order)
        reason = None
        if order.reason:
            reason = checked_line("reason", order.reason)
        row = db.only(
            queries.ADD,
            id=order.id or new_id("rfd"),
            merchant_id=order.merchant_id,
            invoice_id=order.invoice_id,
            status=RefundStatus.REQUESTED,
            amount_sats=total.sats,
            basis=total.basis,
            reason=reason,
            store_id=order.store_id,
            shop_texts=order.shop_texts,
            created_ms=to_ms(now),
        )
        note(db, row, Kind.REFUND_MADE, now)
        if order.address:
            return _give_address(db, settings, row, order.address, now)
        return publish_resource(db, RESOURCE, row.id, RefundKind.REQUESTED, now)


class _Sum(NamedTuple):
    """Satoshis of a refund. `basis`: what they follow from; None if the request says the sum."""

    sats: int
    basis: sums.Basis | None


def _sum(db: Database, order: RefundRequest) -> _Sum:
    total = _Sum(order.amount_sats or 0, None)
    if order.invoice_id:
        total = _sum_of_invoice(db, order, order.invoice_id)
    if not 0 < total.sats <= MAX_MONEY_SATS:
        raise Refused("amount", "there is nothing to send back: say how much")
    return total


def _sum_of_invoice(db: Database, order: RefundRequest, invoice_id: str) -> _Sum:
    """The sum of a refund of this invoice. Raises Refused, as `make` does."""
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
        total = _Sum(default.left_sats, default.basis)
    else:
        total = _Sum(order.amount_sats, None)
    most_sats = MOST_TIMES * came_sats
    if made_sats + total.sats > most_sats:
        message = f"refunds may sum to {most_sats} satoshis, twice what came"
        raise Refused("too_much", message)
    return total


def give_address(
    db: Database, settings: Settings, refund_id: str, text: str, now: datetime
) -> Refund:
    """Stores the payer's address: the refund is ready to be sent.

    Raises Refused: `changed`, `taken`, and what `destination.parse` raises.
    """
    with lock_refund(db, refund_id) as row:
        return _give_address(db, settings, row, text, now)


def _give_address(
    db: Database, settings: Settings, row: Refund, text: str, now: datetime
) -> Refund:
    """Stores the address, behind the lock of facts.

    No two merchants' refunds may wait for one address: what one of them sends would count as the
    other's refund. The lock lets only one of them have it.
    """
    to = destination.parse(db, settings.network, text, row.amount_sats)
    others: Values = {"script": to.script.hex(), "merchant_id": row.merchant_id}
    if db.row(queries.WAITS_FOR_OTHERS, **others):
        raise Refused(
            "taken", "another merchant's refund waits for this address: take a new one"
        )
    tip = blocks.tip_height(db)
    values: Values = {"address": to.address, "script": to.script.hex()}
    values["above_height"] = tip
    if tip is None:
        values["above_height"] = -1
    return step(db, row, GIVEN, now, values)


def drop(db: Database, refund_id: str, to: Step, now: datetime) -> Refund:
    """Takes the step CLEARED, after which another address can be given, or CANCELED.

    Raises Refused (`changed`).
    """
    with lock_refund(db, refund_id) as row:
        return step(db, row, to, now)


@contextmanager
def lock_refund(db: Database, refund_id: str) -> Iterator[Refund]:
    """Opens a transaction, locks the facts and the merchant's balance, and reads the refund.

    Raises CommandError if there is no such refund.
    """
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
    """Takes the step, and returns the row after it.

    `values`: the other values of the step's query. `by`: the output that sent the refund.
    Raises Refused (`changed`) if the refund has another status than the step expects.
    """
    values = values or {}
    of_refund: Values = {"id": row.id}
    if db.run(to.query, **of_refund | values) != 1:
        raise Refused("changed", f"the refund is {row.status} already")
    sent_sats = values.get("sent_sats", row.sent_sats)
    note(db, row, to.kind, now, by, sent_sats)
    return publish_resource(db, RESOURCE, row.id, to.event, now)


def note(
    db: Database,
    row: Refund,
    kind: Kind,
    now: datetime,
    by: Outpoint | None = None,
    sent_sats: int | None = None,
) -> None:
    """Adds an event to the history of the refund's invoice, if it has one.

    `by`: the output that sent it. `sent_sats`: what that output pays; kept if it is another sum
    than the refund's.
    """
    if row.invoice_id is None:
        return
    detail: dict[str, Any] = {"id": row.id, "amount_sats": row.amount_sats}
    if by:
        detail |= {"txid": by[0], "vout": by[1]}
    if sent_sats not in (None, row.amount_sats):
        detail["sent_sats"] = sent_sats
    record(db, row.invoice_id, kind, detail, now)
