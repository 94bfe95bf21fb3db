"""A customer's address: given for the receipt of a paid invoice, and erased after a time."""

import re
from datetime import datetime, timedelta

from btcpay.settings.settings import Settings
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Invoice
from storage.queries import deliveries, idempotency, invoices, receivers
from storage.statement import as_dict, changed

# A check a minute erases half a million a day; one transaction holds up nobody for long.
BATCH = 400
# The address is erased in the text itself, so that numbers stay as they were first written. A
# description cannot match, since within a JSON string a backslash stands before every quote.
_EMAIL = re.compile(r'"customer_email":"(?:[^"\\]|\\.)*"')


def may_ask(settings: Settings, row: Invoice, now: datetime) -> bool:
    """True if mail is set up, and the invoice is paid, has no address, and would keep one."""
    if (
        row.status != InvoiceStatus.PAID
        or row.customer_email is not None
        or not settings.has_mail
    ):
        return False
    retention = timedelta(days=settings.email_retention_days)
    is_kept_for_ever = not retention
    return is_kept_for_ever or now < from_ms(row.finished_ms or 0) + retention


def store_address(db: Database, row: Invoice, address: str, now: datetime) -> None:
    """Stores the address and adds the mail, unless the invoice has an address by now."""
    at = to_ms(now)
    with db.write():
        if db.run(invoices.GIVE_ADDRESS, id=row.id, customer_email=address):
            # The receipt has a receiver of its own: the merchant's receiver of receipts for every
            # payment may be switched off.
            own = receivers.add_mailbox(
                db, "asked", receivers.RECEIPT, row.merchant_id, (), at
            )
            db.run(deliveries.ADD_MAIL, receiver_id=own, about=row.id, created_ms=at)


def erase_emails(db: Database, retention_days: int, now: datetime) -> int:
    """Erases the addresses of at most BATCH invoices, the oldest first; returns how many.

    `retention_days` of 0 means never. Answers that are stored for Idempotency-Keys lose the
    address too.
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
    """1 if it was erased; 0 if the invoice was reopened, or another run came first."""
    with db.write():
        erased = db.run(invoices.ERASE_PERSONAL, id=invoice_id, before=before)
        if erased:
            for row in db.rows(idempotency.OF_RESOURCE, resource_id=invoice_id):
                answer = _EMAIL.sub('"customer_email":null', row.response or "")
                db.run(idempotency.REWRITE, **as_dict(changed(row, response=answer)))
    return erased
