"""The steps: changes of a refund from one status to the next.

Each step is recorded in the invoice's history, and published as an event.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from peewee import Query

from btcpay.invoices.history import record
from btcpay.notify.publish import publish_resource
from btcpay.parts.refunds import queries
from btcpay.parts.refunds.kinds import RESOURCE, RefundKind
from btcpay.parts.refunds.models import Refund
from btcpay.values.errors import ChangeRefused
from storage.database import Database, Values
from storage.queries import meta
from storage.queries.events import Kind
from storage.queries.totals import balances

Outpoint = tuple[str | None, int | None]


class Step(NamedTuple):
    """A change of a refund's status.

    - `query`: an UPDATE that applies only if the refund has a status that allows the
      step.
    - `kind`: the kind of the entry in the invoice's history.
    - `event`: the kind of the event for the merchant's webhooks and other receivers.
    """

    query: Query
    kind: Kind
    event: RefundKind


GIVEN = Step(queries.GIVE, Kind.REFUND_READY, RefundKind.READY)
CLEARED = Step(queries.CLEAR, Kind.REFUND_CLEARED, RefundKind.REQUESTED)
CANCELED = Step(queries.CANCEL, Kind.REFUND_CANCELED, RefundKind.CANCELED)
SENT = Step(queries.SEND, Kind.REFUND_SENT, RefundKind.SENT)
UNDONE = Step(queries.UNDO, Kind.REFUND_UNDONE, RefundKind.UNDONE)


@contextmanager
def lock_refund(db: Database, refund_id: str) -> Iterator[Refund]:
    """Opens a database transaction, takes two locks, and yields the refund.

    The locks are `meta.lock`, which changes of the stored chain take too, and the lock
    of the merchant's balance. Raises CommandError if no refund has this id.
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
    """Applies a step to a refund, records and publishes it, and returns the changed refund.

    `values` are further parameters of the step's query. `by` is the output that sent
    the refund. Raises ChangeRefused with the code `changed` if the refund's status does
    not allow the step.
    """
    values = values or {}
    parameters: Values = {"id": row.id, **values}
    if db.run(to.query, **parameters) != 1:
        raise ChangeRefused("changed", f"the refund is {row.status} already")
    # `row` was read before the step, so SENT has the sum in its parameters only.
    sent_sats = values.get("sent_sats", row.sent_sats)
    note(db, row, to.kind, now, by=by, sent_sats=sent_sats)
    return publish_resource(db, RESOURCE, row.id, to.event, now)


def note(
    db: Database,
    row: Refund,
    kind: Kind,
    now: datetime,
    by: Outpoint | None = None,
    sent_sats: int | None = None,
) -> None:
    """Adds an entry about the refund to its invoice's history, if it has an invoice.

    `by` is the output that sent the refund. `sent_sats` is the sum of this output; it
    is recorded only if it differs from the refund's sum.
    """
    if row.invoice_id is None:
        return
    detail: dict[str, Any] = {"id": row.id, "amount_sats": row.amount_sats}
    if by:
        detail["txid"], detail["vout"] = by
    if sent_sats not in (None, row.amount_sats):
        detail["sent_sats"] = sent_sats
    record(db, row.invoice_id, kind, detail, now)
