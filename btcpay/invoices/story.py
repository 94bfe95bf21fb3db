"""All that is known of an invoice, gathered once for the command line and the merchant's pages."""

from dataclasses import dataclass
from datetime import datetime

from btcpay.invoices.status import checked_ms, rules_for, verdict_on
from btcpay.settings.settings import Settings
from btcpay.settlement.values import Verdict
from btcpay.values.errors import CommandError
from storage.database import Database
from storage.models import Event
from storage.queries import attentions, events, invoices, payments


@dataclass(frozen=True)
class Story:
    """An invoice's row with the verdict, outputs and history.

    The row's `attention` is the reason why it needs a human, a key of settlement's REASONS.
    """

    row: invoices.InvoiceWith
    verdict: Verdict
    needed: int  # confirmations
    outputs: list[payments.OutputWith]  # vanished ones too
    events: list[Event]  # the oldest first
    checked_at: int | None  # the last complete look


def story_of(db: Database, settings: Settings, invoice_id: str, now: datetime) -> Story:
    """Three statements. Raises CommandError when there is no such invoice."""
    row = db.row(attentions.INVOICE, id=invoice_id)
    if row is None:
        raise CommandError(f"there is no invoice {invoice_id!r}")
    outputs = db.rows(payments.OUTPUTS, invoice_id=invoice_id)
    return Story(
        row=row,
        verdict=verdict_on(outputs, settings, row, now, row.tip_height),
        needed=rules_for(settings, row).confirmations,
        outputs=outputs,
        events=db.rows(events.OF_INVOICE, invoice_id=invoice_id),
        checked_at=checked_ms(row),
    )
