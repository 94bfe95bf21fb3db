"""Addresses that are scanned: while they are watched, and where a coin may have moved since."""

from peewee import Case, fn

from storage.database import slot
from storage.models import Invoice, Output

# What the schedule must know of an address.
_SCHEDULED = (
    Invoice.id,
    Invoice.status,
    Invoice.amount_sats,
    Invoice.amount_usd_quote,
    Invoice.created_at,
    Invoice.looks,
    Invoice.checked_at,
    Invoice.asked_at,
    Invoice.asked_since,
    Invoice.expires_at,
    Invoice.doubted_at,
    Invoice.failures,
    Invoice.failed_at,
    Invoice.begun,
    Invoice.begun_at,
    # When money was last seen to come.
    Output.select(fn.MAX(Output.first_seen_at))
    .where(Output.invoice_id == Invoice.id)
    .alias("came_at"),
)
# Addresses to look at: of open invoices, of finished ones for a while, and any with money coming.
WATCHED = (
    Invoice.select(*_SCHEDULED)
    .where(
        (Invoice.status == "open")
        | (
            # The statuses are named so that the index on both columns serves.
            Invoice.status.in_(("paid", "expired", "canceled"))
            & (Invoice.finished_at > slot("finished_after"))
        )
        | Invoice.id.in_(
            Output.select(Output.invoice_id).where(
                Output.vanished_at.is_null() & Output.payment_id.is_null()
            )
        )
    )
    .order_by(fn.COALESCE(Invoice.checked_at, 0), Invoice.seq)
)
# Addresses whose watch has ended while they hold a coin, longest unseen first: has it moved?
_FUNDED = (
    Invoice.select(*_SCHEDULED)
    .where(
        (Invoice.status != "open")
        & (Invoice.finished_at <= slot("finished_after"))
        & Invoice.id.in_(
            Output.select(Output.invoice_id).where(
                (Output.merchant_id == slot("merchant_id"))
                & Output.payment_id.is_null(False)
                & Output.vanished_at.is_null()
                & Output.spent_height.is_null()
            )
        )
    )
    .order_by(fn.COALESCE(Invoice.checked_at, 0), Invoice.seq)
)
FUNDED = _FUNDED.where(fn.COALESCE(Invoice.checked_at, 0) < slot("checked_before"))
PROBE = _FUNDED.limit(1)

# Addresses whose coin an explorer called spent, which nobody proved: first what was said last and
# not asked again since, then the longest unseen.
_SAID_SPENT = (
    Invoice.select(*_SCHEDULED)
    .join(Output, on=(Output.invoice_id == Invoice.id))
    .where(
        (Invoice.status != "open")
        & (Invoice.finished_at <= slot("finished_after"))
        & (Output.merchant_id == slot("merchant_id"))
        & Output.payment_id.is_null(False)
        & Output.spent_height.is_null(False)
    )
    .order_by(
        Case(
            None,
            [(Invoice.checked_at <= Output.spent_at, Output.spent_at * -1)],
            Invoice.checked_at,
        ),
        Invoice.seq,
    )
)
SAID_SPENT = _SAID_SPENT.where(
    (Invoice.checked_at < slot("checked_before")) & (Output.spent_at >= slot("spent_after"))
)
PROBE_SPENT = _SAID_SPENT.limit(1)
