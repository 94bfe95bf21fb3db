"""The erasure of customers' addresses, once they were kept long enough."""

import re
from datetime import datetime, timedelta

from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import idempotency, invoices
from storage.statement import as_dict, changed

# A check a minute erases half a million a day; one transaction holds up nobody for long.
BATCH = 400
# Erased in the text itself, so that its numbers stay as first written. A description cannot match,
# since within a JSON string a backslash stands before every quote.
_EMAIL = re.compile(r'"customer_email":"(?:[^"\\]|\\.)*"')


def erase_emails(db: Database, retention_days: int, now: datetime) -> int:
    """Erases those of at most BATCH invoices, oldest first; returns how many. 0 days means never.

    Answers that are kept for Idempotency-Keys lose the address too.
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
            for kept in db.rows(idempotency.OF_RESOURCE, resource_id=invoice_id):
                answer = _EMAIL.sub('"customer_email":null', kept.response or "")
                db.run(idempotency.REWRITE, **as_dict(changed(kept, response=answer)))
    return erased
