"""Forgets customers' e-mail addresses, and what shops said of them, days after an invoice's end."""

import re
from datetime import datetime, timedelta

from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import idempotency, invoices
from storage.statement import as_dict, changed

# A check a minute erases half a million a day; one transaction holds up nobody for long.
BATCH = 400
# In place, so that the answer's numbers stay as they were first written. Within a JSON string
# every quote has a backslash before it: a description cannot match.
_EMAIL = re.compile(r'"customer_email":"(?:[^"\\]|\\.)*"')


def erase_emails(db: Database, retention_days: int, now: datetime) -> int:
    """Erases those of at most BATCH invoices, oldest first; how many. 0 days: never.

    From the answers that are kept for Idempotency-Keys too.
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
    """1 when it was erased; 0 when the invoice was opened again, or another run was first."""
    with db.write():
        erased = db.run(invoices.ERASE_PERSONAL, id=invoice_id, before=before)
        if erased:
            for kept in db.rows(idempotency.OF_RESOURCE, resource_id=invoice_id):
                answer = _EMAIL.sub('"customer_email":null', kept.response or "")
                db.run(idempotency.REWRITE, **as_dict(changed(kept, response=answer)))
    return erased
