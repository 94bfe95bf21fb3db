"""The customer's e-mail address: stored for the receipt, and erased after a time."""

import re
from datetime import datetime, timedelta

from btcpay.notify.mail.server import has_mail
from btcpay.settings.settings import Settings
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Invoice
from storage.queries import deliveries, idempotency, invoices, receivers
from storage.statement import as_dict, replace

# Maximum number of invoices in a run. With a check each minute half a million are erased in a day.
# A larger batch would delay other writers.
BATCH = 400
# The address in the text of a stored JSON response. The text is not parsed, so that its numbers
# stay as they are. A description cannot match, since JSON escapes the quotes in it.
_EMAIL = re.compile(r'"customer_email":"(?:[^"\\]|\\.)*"')


def may_ask(db: Database, settings: Settings, row: Invoice, now: datetime) -> bool:
    """True if the invoice's page may ask for an e-mail address, to send the receipt.

    The invoice must be paid and have no address yet, mail must be set up, and the
    address must not be one to be erased at once.
    """
    if row.status != InvoiceStatus.PAID or row.customer_email is not None:
        return False
    retention = timedelta(days=settings.email_retention_days)
    if retention and now >= from_ms(row.finished_ms or 0) + retention:
        return False
    return has_mail(settings, db)


def store_address(db: Database, row: Invoice, address: str, now: datetime) -> None:
    """Stores the address and adds the mail, unless the invoice has an address."""
    at = to_ms(now)
    with db.write():
        if db.run(invoices.GIVE_ADDRESS, id=row.id, customer_email=address):
            # The receipt gets a separate receiver, since the merchant's receiver of receipts for
            # every payment may be switched off.
            own = receivers.add_mailbox(
                db,
                "asked",
                receivers.RECEIPT,
                row.merchant_id,
                (),
                at,
            )
            db.run(deliveries.ADD_MAIL, receiver_id=own, about=row.id, created_ms=at)


def erase_emails(db: Database, retention_days: int, now: datetime) -> int:
    """Erases the addresses of old invoices, at most BATCH. Returns how many were erased.

    The oldest are erased first. `retention_days` of 0 erases none. An address is also
    erased in the responses that are stored for Idempotency-Keys.
    """
    if not retention_days:
        return 0
    before = to_ms(now - timedelta(days=retention_days))
    due = db.rows(invoices.WITH_PERSONAL, before=before, limit=BATCH)
    if not due:
        return 0
    with db.batch():
        return sum(_erase(db, row.id, before) for row in due)


def _erase(db: Database, invoice_id: str, before: int) -> int:
    """Erases the address of one invoice; returns 1 if it was erased.

    Returns 0 if the invoice was reopened, or if another run has erased it.
    """
    with db.write():
        erased = db.run(invoices.ERASE_PERSONAL, id=invoice_id, before=before)
        if erased:
            for row in db.rows(idempotency.OF_RESOURCE, resource_id=invoice_id):
                answer = _EMAIL.sub('"customer_email":null', row.response or "")
                db.run(idempotency.REWRITE, **as_dict(replace(row, response=answer)))
    return erased
