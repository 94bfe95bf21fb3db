"""An invoice at one moment, for its page and its status: the facts, gathered once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from btcpay import hooks
from btcpay.chain.progress import hours_to_read, progress_of
from btcpay.invoices.status import checked_ms, rules_for
from btcpay.merchants.account import dust_limit_of
from btcpay.settings.settings import Settings
from btcpay.settlement.decide import missing_sats
from btcpay.settlement.values import Rules
from btcpay.values.errors import NotFound
from btcpay.values.ids import is_id
from btcpay.values.statuses import CheckoutState, InvoiceStatus, LinkStatus
from btcpay.values.times import iso, iso_ms, to_ms
from btcpay.web.service import Service
from storage.models import Invoice
from storage.queries import attentions, invoices, links
from storage.statement import changed

# What comes now is late, or on top.
ENDED = (
    CheckoutState.OVERDUE,
    CheckoutState.EXPIRED,
    CheckoutState.CANCELED,
    CheckoutState.PAID,
)
FEW_BLOCKS = 6  # as many as come in an hour: the next checks read them


@dataclass(frozen=True)
class Notices:
    """Facts that only the page shows, beside the state."""

    was_undone: bool = False  # a reorganisation took its payment back
    has_vanished: bool = (
        False  # a payment that no mempool shows any more, and none came since
    )
    link_is_active: bool = False  # its payment link makes another one
    blocks_behind: int = 0  # that are still to be read, when there are many
    hours_behind: int = 0  # to read them, roughly
    receipt_lines: Sequence[hooks.ReceiptLine] = ()  # of parts


@dataclass(frozen=True)
class Snapshot:
    """An invoice's row, with the sums that came, and the consequences at that time."""

    row: invoices.InvoiceWith
    missing_sats: int
    confirmations: int  # of the least confirmed payment that counts
    needed: int  # confirmations
    now: datetime
    dust_limit_sats: int  # that can be sent to its address

    @property
    def left_ms(self) -> int | None:
        """Milliseconds until the deadline; None without a deadline."""
        expires_at = self.row.expires_at
        if expires_at is None:
            return None
        return expires_at - to_ms(self.now)

    @property
    def came_sats(self) -> int:
        """Satoshis that came or are coming: while it can be paid those that count, then all.

        What settles a paid invoice counts; of every other one each payment is beside it.
        """
        row = self.row
        if self.state not in ENDED:
            return row.received_sats
        counted_sats = (
            row.received_sats
            if row.status == InvoiceStatus.PAID
            else row.unconfirmed_sats
        )
        return counted_sats + row.beside_sats + row.coming_beside_sats

    @property
    def unconfirmed_sats(self) -> int:
        """The part of `came_sats` that is not deep enough in the chain yet."""
        row = self.row
        beside_sats = row.coming_beside_sats if self.state in ENDED else 0
        return row.unconfirmed_sats + beside_sats

    @property
    def has_vanished(self) -> bool:
        """True where a payment was seen and has gone, and the rest does not pay the invoice."""
        is_settled = self.state in (
            CheckoutState.SEEN,
            CheckoutState.PAID,
            CheckoutState.CANCELED,
        )
        return not is_settled and self.row.gone_at is not None

    @property
    def state(self) -> CheckoutState:
        """The status; instead of open it is seen, overdue, partial or waiting."""
        if self.row.status != InvoiceStatus.OPEN:
            return CheckoutState(self.row.status)
        if self.missing_sats == 0:
            return CheckoutState.SEEN
        if self.left_ms is not None and self.left_ms <= 0:
            return CheckoutState.OVERDUE
        if self.row.received_sats:
            return CheckoutState.PARTIAL
        return CheckoutState.WAITING


def snapshot_of(service: Service, id: str, merchant_id: int | None = None) -> Snapshot:
    """The snapshot of any merchant's invoice, or of this merchant's only. Raises NotFound."""
    row = service.db.row(invoices.SEEN, id=id) if is_id("inv", id) else None
    if row is None or merchant_id not in (None, row.merchant_id):
        raise NotFound("there is no such invoice")
    now = service.now()
    if (
        row.status == InvoiceStatus.OPEN
    ):  # somebody is looking, so the next check asks for it sooner
        service.notes.note(invoices.ASKED, row.id, now)
    rules = rules_for(service.settings, row)
    newest = row.newest_height
    return Snapshot(
        row=changed(row, checked_at=checked_ms(row)),
        missing_sats=_missing_sats(row, rules),
        confirmations=0
        if newest is None
        else max(0, (row.tip_height or 0) + 1 - newest),
        needed=rules.confirmations,
        now=now,
        dust_limit_sats=dust_limit_of(row.script),
    )


def is_taken_back(settings: Settings, row: Invoice) -> bool:
    """True where the whole sum was seen once, and a part of it has gone."""
    was_covered = row.status != InvoiceStatus.CANCELED and row.covered_at
    return bool(was_covered and _missing_sats(row, rules_for(settings, row)))


def _missing_sats(row: Invoice, rules: Rules) -> int:
    sums = row.status, row.amount_sats, row.received_sats
    return missing_sats(*sums, rules.tolerance_percent)


def notices_of(service: Service, snapshot: Snapshot) -> Notices:
    """The notices; rows are read only in states that show them."""
    row = snapshot.row
    db = service.db
    state = snapshot.state
    if state == CheckoutState.PAID:
        lines = [
            line
            for part in hooks.of(hooks.Receipts)
            for line in part.receipt_lines(db, row.id)
        ]
        return Notices(receipt_lines=lines)
    if state == CheckoutState.CANCELED:
        return Notices()
    attention = db.row(attentions.OF_INVOICE, invoice_id=row.id)
    link_id = (
        row.payment_link_id
        if state in (CheckoutState.OVERDUE, CheckoutState.EXPIRED)
        else None
    )
    link = db.row(links.ANY_BY_ID, id=link_id) if link_id else None
    progress = progress_of(db, snapshot.now)
    behind = progress.behind if progress and progress.behind > FEW_BLOCKS else 0
    return Notices(
        was_undone=bool(attention and attention.reason == "reorganised"),
        has_vanished=snapshot.has_vanished,
        link_is_active=bool(link and link.status == LinkStatus.ACTIVE),
        blocks_behind=behind,
        hours_behind=hours_to_read(behind, service.settings.explorer_calls_per_hour),
    )


def status_of(snapshot: Snapshot) -> dict[str, Any]:
    """All that /pay/{invoice}/status answers; `missing_sats` may be less than can be sent."""
    row = snapshot.row
    return {
        "status": row.status,
        "amount_sats": row.amount_sats,
        "received_sats": snapshot.came_sats,
        "unconfirmed_sats": snapshot.unconfirmed_sats,
        "missing_sats": snapshot.missing_sats,
        "confirmations": snapshot.confirmations,
        "confirmations_needed": snapshot.needed,
        "expires_at": row.expires_at and iso_ms(row.expires_at),
        "checked_at": row.checked_at and iso_ms(row.checked_at),
        "now": iso(snapshot.now),
    }
