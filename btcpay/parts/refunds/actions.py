"""Actions on a refund: create or cancel it, and store or delete its address.

Each action is one database transaction, in which the merchant's balance is locked.
"""

from datetime import datetime
from typing import NamedTuple

from btcpay.notify.publish import publish_resource
from btcpay.parts.refunds import destination, queries, sums
from btcpay.parts.refunds.kinds import RESOURCE, RefundKind
from btcpay.parts.refunds.models import Refund
from btcpay.parts.refunds.steps import GIVEN, Step, lock_refund, note, step
from btcpay.settings.settings import Settings
from btcpay.values.errors import ChangeRefused
from btcpay.values.ids import new_id
from btcpay.values.money import MAX_MONEY_SATS, Money
from btcpay.values.statuses import RefundStatus
from btcpay.values.texts import checked_line
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.queries import blocks, invoices, meta
from storage.queries.events import Kind
from storage.queries.totals import balances

MOST_TIMES = 2  # more than this multiple of the received sum is not refunded


class RefundRequest(NamedTuple):
    """A request to create a refund.

    - `invoice_id`: None if only a shop's plug-in knows what was paid. Then
      `amount_sats` is required.
    - `amount_sats`: the sum of the refund. None means the sum that is left to send back.
    - `reason`: a text that the payer sees.
    - `address`: the payer's address; None if the payer shall give it on the refund's page.
    - `id`: the refund's id, derived from a form's id, so that a form that is sent twice
      creates one refund; None if there is no form.
    - `left_sats`: the number of satoshis that were left to send back when the form was
      shown, as text. If this number has changed, the request is refused.
    - `subtracted_sats`: the sum of earlier refunds, if the caller has subtracted it to get
      `amount_sats`; otherwise None. If this sum has changed, the request is refused.
    - `asked`: the money that was converted to `amount_sats`; None if nothing was
      converted.
    - `store_id`: the id of the plug-in's shop.
    - `shop_texts`: the plug-in's name and description of the refund, as JSON.
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
    subtracted_sats: int | None = None
    asked: Money | None = None

    @property
    def has_fixed_sum(self) -> bool:
        """True if the request states the sum of the refund.

        Otherwise the sum is computed from the payments: it is the default sum, or the
        result of a rule that a plug-in has named.
        """
        return self.amount_sats is not None and self.subtracted_sats is None


def make(
    db: Database,
    settings: Settings,
    request: RefundRequest,
    now: datetime,
) -> Refund:
    """Stores a refund and publishes it. If a refund has the request's id already, returns that one.

    Raises ChangeRefused with the code `nothing_came`, `amount`, `too_much` or
    `changed`, or with another code if the request has an address that cannot be used.
    Raises CommandError if the reason is invalid.
    """
    with db.write():
        if request.address:
            # `_give_address` needs this lock, which is always taken before the balance's.
            meta.lock(db)
        balances.lock(db, request.merchant_id)
        if request.id:
            existing = db.get_or_none(queries.BY_ID, id=request.id)
            if existing:
                return existing
        row = _add(db, request, now)
        note(db, row, Kind.REFUND_MADE, now)
        if request.address:
            return _give_address(db, settings, row, request.address, now)
        return publish_resource(db, RESOURCE, row.id, RefundKind.REQUESTED, now)


def _add(db: Database, request: RefundRequest, now: datetime) -> Refund:
    """Stores the row of a new refund.

    Raises ChangeRefused with the code `nothing_came`, `amount`, `too_much` or
    `changed`, and CommandError if the reason is invalid.
    """
    total = _sum(db, request)
    reason = None
    if request.reason:
        reason = checked_line("reason", request.reason)
    asked_amount = None
    asked_currency = None
    if request.asked:
        asked_amount = f"{request.asked.amount:f}"
        asked_currency = request.asked.currency
    return db.get(
        queries.ADD,
        id=request.id or new_id("rfd"),
        merchant_id=request.merchant_id,
        invoice_id=request.invoice_id,
        status=RefundStatus.REQUESTED,
        amount_sats=total.sats,
        basis=total.basis,
        asked_amount=asked_amount,
        asked_currency=asked_currency,
        reason=reason,
        store_id=request.store_id,
        shop_texts=request.shop_texts,
        created_ms=to_ms(now),
    )


class _Sum(NamedTuple):
    """The sum of a refund in satoshis.

    `basis` names the sum from which this one is computed; None if the request states
    it.
    """

    sats: int
    basis: sums.Basis | None


def _sum(db: Database, request: RefundRequest) -> _Sum:
    if request.invoice_id:
        total = _sum_of_invoice(db, request, request.invoice_id)
    else:
        total = _Sum(request.amount_sats or 0, basis=None)
    if not 0 < total.sats <= MAX_MONEY_SATS:
        raise ChangeRefused("amount", "there is nothing to send back: say how much")
    return total


def _sum_of_invoice(db: Database, request: RefundRequest, invoice_id: str) -> _Sum:
    """Returns the sum of a refund of this invoice.

    Raises ChangeRefused with one of these codes:

    - `nothing_came`: the invoice has no confirmed payment.
    - `changed`: other refunds were made since the caller read their sum, the sum that is
      left is not the one that the caller has shown, or an earlier refund was sent twice,
      so that the caller must say how much.
    - `too_much`: with this refund, all refunds would be more than MOST_TIMES what came.
    """
    came_sats = sums.came_sats_of(db, invoice_id)
    if not came_sats:
        raise ChangeRefused(
            "nothing_came", "no confirmed payment has come to this invoice"
        )
    refunds = sums.refunds_of(db, invoice_id)
    made_sats = sums.total_sats_of(refunds)
    if request.subtracted_sats not in (None, made_sats):
        raise ChangeRefused(
            "changed", f"refunds of {made_sats} satoshis were made meanwhile"
        )
    if not request.has_fixed_sum and sums.is_sent_twice(db, invoice_id):
        raise ChangeRefused(
            "changed", "a refund of this invoice was sent twice: say how much"
        )
    if request.amount_sats is None:
        invoice = db.get(invoices.WHOLE, id=invoice_id)
        default = sums.default_of(invoice, came_sats, refunds)
        total = _default_sum(request, default)
    else:
        total = _Sum(request.amount_sats, basis=None)
    most_sats = MOST_TIMES * came_sats
    if made_sats + total.sats > most_sats:
        message = f"refunds may sum to {most_sats} satoshis, twice what came"
        raise ChangeRefused("too_much", message)
    return total


def _default_sum(request: RefundRequest, default: sums.Default) -> _Sum:
    """Returns the sum that is left to send back.

    Raises ChangeRefused with the code `changed` if the form has shown another sum.
    """
    shown = request.left_sats
    if shown is not None and shown != str(default.left_sats):
        raise ChangeRefused(
            "changed", f"{default.left_sats} satoshis are left to send back"
        )
    return _Sum(default.left_sats, default.basis)


def give_address(
    db: Database,
    settings: Settings,
    refund_id: str,
    text: str,
    now: datetime,
) -> Refund:
    """Stores the payer's address. After that, the refund is ready to be sent.

    Raises ChangeRefused with the code `changed` if the refund waits for no address now,
    `taken` if another merchant's refund waits for the same one, or another code if the
    text has no address that can be used. Raises CommandError if no refund has this id.
    """
    with lock_refund(db, refund_id) as row:
        return _give_address(db, settings, row, text, now)


def _give_address(
    db: Database,
    settings: Settings,
    row: Refund,
    text: str,
    now: datetime,
) -> Refund:
    """Stores the payer's address. The caller must hold the lock `meta.lock`.

    Refunds of two merchants must not wait for the same address: a payment by one
    merchant would count as the other's refund. The lock keeps two requests from storing
    the same address at the same time.
    """
    to = destination.parse(db, settings.network, text, row.amount_sats)
    script = to.script.hex()
    refund_of_other = db.get_or_none(
        queries.WAITS_FOR_OTHERS, script=script, merchant_id=row.merchant_id
    )
    if refund_of_other:
        raise ChangeRefused(
            "taken", "another merchant's refund waits for this address: take a new one"
        )
    above_height = blocks.tip_height(db)
    if above_height is None:  # no block is known yet, so any block can have the refund
        above_height = -1
    values: Values = {
        "address": to.address,
        "script": script,
        "above_height": above_height,
    }
    return step(db, row, GIVEN, now, values)


def drop(db: Database, refund_id: str, to: Step, now: datetime) -> Refund:
    """Applies one of two steps to a refund, and returns the changed refund.

    CLEARED deletes the payer's address, so that the payer can give a new one. CANCELED
    cancels the refund. Raises ChangeRefused with the code `changed` if the refund's
    status does not allow the step. Raises CommandError if no refund has this id.
    """
    with lock_refund(db, refund_id) as row:
        return step(db, row, to, now)
