"""Totals that outlive the process that counted: checks, and calls to explorers."""

from peewee import EXCLUDED, fn

from storage.database import every, slot
from storage.models import Balance, Invoice, Tally

ADD = Tally.insert(every(Tally)).on_conflict(
    conflict_target=[Tally.name, Tally.label],
    update={Tally.total: Tally.total + EXCLUDED.total},
)
ALL = Tally.select().order_by(Tally.name, Tally.label)

# One reads a row for each merchant, the other an index only: both run at every scrape.
SETTLED = Balance.select(fn.COALESCE(fn.SUM(Balance.settled_sats), 0).alias("sats"))
OPEN_INVOICES = Invoice.select(fn.COUNT(Invoice.status).alias("invoices")).where(
    Invoice.status == slot("status")
)
