"""Stores customers' e-mail addresses for receipts, and erases them after a time."""

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

# The maximum number of invoices in a call of `erase_emails`. If `blocktill check` runs each minute,
# this erases half a million addresses in a day. A larger batch would delay other writers.
BATCH = 400
# The e-mail address in the text of a stored JSON response. The text is not parsed, so that its
# numbers stay as they are. A description cannot match, since JSON escapes the quotes in it.
_EMAIL = re.compile(r'"customer_email":"(?:[^"\\]|\\.)*"')


def may_ask(db: Database, settings: Settings, row: Invoice, now: datetime) -> bool:
    """True if the invoice's page may ask for an e-mail address, to send the receipt.

    All of these are necessary:

    - the invoice is paid, and has no e-mail address yet;
    - the invoice was paid recently enough that the address would not be erased at once;
    - a mail server is set up.
    """
    if row.status != InvoiceStatus.PAID or row.customer_email is not None:
        return False
    retention = timedelta(days=settings.email_retention_days)
    if retention:
        erase_at = from_ms(row.finished_ms or 0) + retention
        if now >= erase_at:
            return False
    return has_mail(settings, db)


def store_address(db: Database, row: Invoice, address: str, now: datetime) -> None:
    """Stores the customer's e-mail address, and puts the receipt into the outbox.

    Does nothing if the invoice already has an e-mail address.
    """
    now_ms = to_ms(now)
    with db.write():
        is_new = db.run(invoices.GIVE_ADDRESS, id=row.id, customer_email=address)
        if not is_new:
            return
        # The receipt gets a separate receiver, since the merchant's receiver of receipts for
        # every payment may be switched off.
        receiver_id = receivers.add_mailbox(
            db,
            name="asked",
            transport=receivers.RECEIPT,
            merchant_id=row.merchant_id,
            kinds=(),
            at_ms=now_ms,
        )
        db.run(
            deliveries.ADD_MAIL,
            receiver_id=receiver_id,
            about=row.id,
            created_ms=now_ms,
        )


def erase_emails(db: Database, retention_days: int, now: datetime) -> int:
    """Erases e-mail addresses of invoices that ended long ago. Returns how many it erased.

    "Long ago" means more than `retention_days` days ago; if that is 0, no address is
    erased. A call erases up to BATCH addresses, the oldest first. It also erases them in
    the API responses that are stored for Idempotency-Keys.
    """
    if not retention_days:
        return 0
    before_ms = to_ms(now - timedelta(days=retention_days))
    due = db.rows(invoices.WITH_PERSONAL, before=before_ms, limit=BATCH)
    if not due:
        return 0
    with db.batch():
        return sum(_erase(db, row.id, before_ms) for row in due)


def _erase(db: Database, invoice_id: str, before_ms: int) -> int:
    """Erases the e-mail address of one invoice that ended before `before_ms`.

    Returns the number of erased addresses. It is 1 unless the invoice was reopened or
    another process has erased the address; then it is 0.
    """
    with db.write():
        erased_count = db.run(invoices.ERASE_PERSONAL, id=invoice_id, before=before_ms)
        if not erased_count:
            return 0
        for row in db.rows(idempotency.OF_RESOURCE, resource_id=invoice_id):
            response = _EMAIL.sub('"customer_email":null', row.response or "")
            db.run(idempotency.REWRITE, **as_dict(replace(row, response=response)))
    return erased_count
