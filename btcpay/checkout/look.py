"""A look at an invoice for a page: where it stands now, and the note that somebody waits for it."""

from btcpay.checkout.invoice_page import Standing
from btcpay.errors import NotFound
from btcpay.ids import is_id
from btcpay.invoices.status import checked_ms, rules_for, verdict_of
from btcpay.server.service import Service
from btcpay.wallet.account import least_sats_of
from storage.database import Row
from storage.queries import invoices


def whole_invoice(service: Service, id: str) -> Row:
    """The whole row, of whichever merchant. Raises NotFound."""
    row = service.db.row(invoices.WHOLE, id=id) if is_id("inv", id) else None
    if row is None:
        raise NotFound("there is no such invoice")
    return row


def standing_of(service: Service, row: Row) -> Standing:
    """Where the invoice stands; while it is open, a check is told that somebody looks."""
    row["checked_at"] = checked_ms(service.db, row)
    now = service.now()
    if row["status"] == "open":
        service.notes.note(invoices.ASKED, row["id"], now)
    verdict = verdict_of(service.db, service.settings, row, now)
    needed = rules_for(service.settings, row).confirmations
    least_sats = least_sats_of(row["deposit_address"], service.settings.network)
    return Standing(row, verdict, needed, now, least_sats)
