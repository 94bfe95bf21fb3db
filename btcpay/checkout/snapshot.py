"""Loads the state of an invoice at one moment, for its page and its status."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from btcpay.invoices.status import checked_ms, rules_for
from btcpay.merchants.account import dust_limit_of
from btcpay.settings.settings import Settings
from btcpay.settlement.decide import missing_sats
from btcpay.settlement.values import Rules
from btcpay.values.errors import NotFound
from btcpay.values.ids import is_id
from btcpay.values.statuses import CheckoutState, InvoiceStatus
from btcpay.values.times import iso, iso_ms, to_ms
from btcpay.web.service import Service
from storage.models import Invoice
from storage.queries import invoices
from storage.statement import replace

# In these states new money is late or exceeds the amount.
ENDED = (
    CheckoutState.OVERDUE,
    CheckoutState.EXPIRED,
    CheckoutState.CANCELED,
    CheckoutState.PAID,
)


@dataclass(frozen=True)
class Snapshot:
    """An invoice's row, and the values that follow from it at the time `now`.

    - `missing_sats`: the satoshis that are not paid yet.
    - `confirmations`: the confirmations of the newest payment that counts; 0 if there is
      none, or if it is unconfirmed.
    - `confirmations_needed`: the confirmations that a payment needs.
    - `dust_limit_sats`: the lowest amount that can be sent to the invoice's address.
    """

    row: invoices.InvoiceWith
    missing_sats: int
    confirmations: int
    confirmations_needed: int
    now: datetime
    dust_limit_sats: int

    @property
    def left_ms(self) -> int | None:
        """The milliseconds until the invoice expires; negative after its expiry.

        None if the invoice never expires.
        """
        expires_ms = self.row.expires_ms
        if expires_ms is None:
            return None
        return expires_ms - to_ms(self.now)

    @property
    def came_sats(self) -> int:
        """The satoshis that came for the invoice, including unconfirmed ones.

        In the states ENDED, these are all payments to its address. In other states, only
        payments that can still settle the invoice count.
        """
        row = self.row
        if self.state not in ENDED:
            return row.received_sats
        unapplied_sats = row.unapplied_sats + row.coming_unapplied_sats
        if row.status == InvoiceStatus.PAID:
            return row.received_sats + unapplied_sats
        # Nothing was settled, so the confirmed payments are in `unapplied_sats` already.
        return row.unconfirmed_sats + unapplied_sats

    @property
    def unconfirmed_sats(self) -> int:
        """The part of `came_sats` that does not have enough confirmations yet."""
        row = self.row
        if self.state in ENDED:
            return row.unconfirmed_sats + row.coming_unapplied_sats
        return row.unconfirmed_sats

    @property
    def overpaid_sats(self) -> int:
        """The received satoshis that do not pay the invoice.

        They came too late or in excess, or were too few when the invoice ended. If the
        excess is below the dust limit, the result is 0, since nobody could send it back.
        """
        if self.state in (
            CheckoutState.OVERDUE,
            CheckoutState.EXPIRED,
            CheckoutState.CANCELED,
        ):
            return self.came_sats
        if self.state not in (CheckoutState.SEEN, CheckoutState.PAID):
            return 0
        excess_sats = self.came_sats - self.row.amount_sats
        if excess_sats >= self.dust_limit_sats:
            return excess_sats
        return 0

    @property
    def has_vanished(self) -> bool:
        """True if a payment has vanished, and the others do not cover the invoice.

        Always False for a canceled invoice.
        """
        if self.state in (
            CheckoutState.SEEN,
            CheckoutState.PAID,
            CheckoutState.CANCELED,
        ):
            return False
        return self.row.gone_ms is not None

    @property
    def state(self) -> CheckoutState:
        """The state that the page shows, from the invoice's status and its payments."""
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
    """Loads the state of the invoice with this id.

    Raises NotFound if there is no such invoice, or if it belongs to another merchant
    than `merchant_id`. If `merchant_id` is None, it may belong to any merchant. If the
    invoice is open, notes that somebody looks at it, so that the mempool is soon queried
    for it.
    """
    row = None
    if is_id("inv", id):
        row = service.db.get_or_none(invoices.SEEN, id=id)
    if row is None:
        raise NotFound("there is no such invoice")
    if merchant_id is not None and merchant_id != row.merchant_id:
        raise NotFound("there is no such invoice")
    now = service.now()
    if row.status == InvoiceStatus.OPEN:
        # Somebody has the page open, so the next check looks for payments to this invoice first.
        service.notes.note(invoices.ASKED, row.id, now)
    rules = rules_for(service.settings, row)
    confirmations = 0
    if row.newest_height is not None:
        confirmations = max(0, (row.tip_height or 0) + 1 - row.newest_height)
    return Snapshot(
        row=replace(row, checked_ms=checked_ms(row)),
        missing_sats=_missing_sats(row, rules),
        confirmations=confirmations,
        confirmations_needed=rules.confirmations,
        now=now,
        dust_limit_sats=dust_limit_of(row.script),
    )


def is_taken_back(settings: Settings, row: Invoice) -> bool:
    """True if the full amount was once seen, but some of it is missing again.

    Always False for a canceled invoice.
    """
    if row.status == InvoiceStatus.CANCELED or not row.covered_ms:
        return False
    return _missing_sats(row, rules_for(settings, row)) > 0


def _missing_sats(row: Invoice, rules: Rules) -> int:
    return missing_sats(
        row.status,
        row.amount_sats,
        row.received_sats,
        rules.tolerance_percent,
    )


def status_of(snapshot: Snapshot, returned_sats: int) -> dict[str, Any]:
    """Returns the JSON object of the path /pay/{id}/status.

    Its `missing_sats` may be below the dust limit. No wallet can send such a small
    amount. `returned_sats` are the satoshis that the seller has sent back.
    """
    row = snapshot.row
    return {
        "status": row.status,
        "amount_sats": row.amount_sats,
        "received_sats": snapshot.came_sats,
        "unconfirmed_sats": snapshot.unconfirmed_sats,
        "missing_sats": snapshot.missing_sats,
        "returned_sats": returned_sats,
        "confirmations": snapshot.confirmations,
        "confirmations_needed": snapshot.confirmations_needed,
        "expires_at": _iso_or_none(row.expires_ms),
        "checked_at": _iso_or_none(row.checked_ms),
        "now": iso(snapshot.now),
    }


def _iso_or_none(ms: int | None) -> str | None:
    if ms is None:
        return None
    return iso_ms(ms)
