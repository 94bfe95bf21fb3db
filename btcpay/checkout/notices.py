"""The messages that an invoice's page shows in addition to its state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from btcpay import hooks
from btcpay.chain.progress import hours_to_read, minutes_to_read, progress_of
from btcpay.checkout.snapshot import ENDED, Snapshot
from btcpay.invoices.stuck import Stuck, stuck_of
from btcpay.values.statuses import CheckoutState, LinkStatus
from btcpay.web.service import Service
from storage.database import Database
from storage.queries import attentions, links
from storage.queries.lists import mempool_watch

FEW_BLOCKS = 6  # about an hour of blocks, which the next checks read
# If the unread blocks are read within this time, payers are not told. For example, a new shop
# begins with a few unread blocks.
SOON_MIN = 15


@dataclass(frozen=True)
class Notices:
    """The messages that an invoice's page shows in addition to its state.

    - `was_undone`: a reorganisation has removed the payment from the best chain.
    - `has_vanished`: a payment has vanished from the mempool, and other payments do not
      cover the invoice.
    - `link_is_active`: the invoice has expired, and its payment link can create another.
    - `blocks_behind`: the number of blocks that the service has not searched for payments
      yet; 0 if they are few, or are soon read.
    - `hours_behind`: the estimated number of hours until these blocks are searched.
    - `receipt_lines`: the receipt lines of parts (optional plug-ins).
    - `returned_sats`: the satoshis that the seller has sent back.
    - `link_title`: the title of the invoice's payment link.
    - `stuck`: how long the oldest unconfirmed payment has waited for a block; None if no
      payment has waited for long.
    """

    was_undone: bool = False
    has_vanished: bool = False
    link_is_active: bool = False
    blocks_behind: int = 0
    hours_behind: int = 0
    receipt_lines: Sequence[hooks.ReceiptLine] = ()
    returned_sats: int = 0
    link_title: str | None = None
    stuck: Stuck | None = None


def notices_of(service: Service, snapshot: Snapshot) -> Notices:
    """Returns the messages for an invoice's page.

    Queries the database only for messages that a page in this state shows.
    """
    row = snapshot.row
    db = service.db
    state = snapshot.state
    link = None
    link_title = None
    if row.payment_link_id:
        link = db.get_or_none(links.ANY_BY_ID, id=row.payment_link_id)
    if link:
        link_title = link.title
    notices = Notices(
        link_title=link_title,
        returned_sats=returned_sats(db, snapshot),
        stuck=_stuck(db, snapshot),
    )
    if state == CheckoutState.PAID:
        return replace(notices, receipt_lines=_receipt_lines(db, row.id))
    if state == CheckoutState.CANCELED:
        return notices
    attention = db.get_or_none(attentions.OF_INVOICE, invoice_id=row.id)
    has_expired = state in (CheckoutState.OVERDUE, CheckoutState.EXPIRED)
    is_active = link is not None and link.status == LinkStatus.ACTIVE
    per_hour = service.settings.explorer_calls_per_hour
    behind = _blocks_behind(db, snapshot.now, per_hour)
    return replace(
        notices,
        was_undone=bool(attention and attention.reason == "reorganised"),
        has_vanished=snapshot.has_vanished,
        link_is_active=has_expired and is_active,
        blocks_behind=behind,
        hours_behind=hours_to_read(behind, per_hour),
    )


def _receipt_lines(db: Database, invoice_id: str) -> list[hooks.ReceiptLine]:
    """Returns the lines that parts (optional plug-ins) add to the receipt of an invoice."""
    lines: list[hooks.ReceiptLine] = []
    for part in hooks.of(hooks.Receipts):
        lines += part.receipt_lines(db, invoice_id)
    return lines


def _blocks_behind(db: Database, now: datetime, per_hour: int) -> int:
    """Returns the number of unread blocks; 0 if they are few, or are soon read.

    `per_hour` is the quota: the maximum of calls to explorers in an hour.
    """
    progress = progress_of(db, now)
    if progress is None or progress.behind <= FEW_BLOCKS:
        return 0
    if minutes_to_read(progress.behind, per_hour) <= SOON_MIN:
        return 0
    return progress.behind


def _stuck(db: Database, snapshot: Snapshot) -> Stuck | None:
    """Returns how long the oldest unconfirmed payment has waited for a block.

    Returns None if no payment has waited for long.
    """
    if not snapshot.unconfirmed_sats:
        return None
    waiting = db.rows(mempool_watch.WAITING, invoice_id=snapshot.row.id)
    return stuck_of(waiting, snapshot.now)


def returned_sats(db: Database, snapshot: Snapshot) -> int:
    """Returns the satoshis that the seller has sent back to the payer.

    Returns 0 without a query if nothing can have been sent back.
    """
    if not snapshot.came_sats:
        return 0
    has_ended = snapshot.state in ENDED
    if not has_ended and not snapshot.overpaid_sats:
        return 0
    parts = hooks.of(hooks.Receipts)
    return sum(part.returned_sats(db, snapshot.row.id) for part in parts)
