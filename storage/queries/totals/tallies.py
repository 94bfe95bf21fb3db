"""Counters that survive restarts: checks, and calls to block explorers."""

from peewee import EXCLUDED, fn

from btcpay.values.statuses import InvoiceStatus
from storage.models import Balance, Invoice, Tally
from storage.statement import all_columns, count_of, rows_as

ADD = Tally.insert(all_columns(Tally)).on_conflict(
    conflict_target=[Tally.name, Tally.label],
    update={Tally.total: Tally.total + EXCLUDED.total},
)
ALL = Tally.select().order_by(Tally.name, Tally.label)

# Both queries run at every scrape of the metrics. SETTLED reads one row for each merchant,
# OPEN_INVOICES at most MOST_OPEN entries of an index.
MOST_OPEN = 10_000
SETTLED = rows_as(
    tuple[int], Balance.select(fn.COALESCE(fn.SUM(Balance.settled_sats), 0))
)
_OPEN = Invoice.select(Invoice.status).where(Invoice.status == InvoiceStatus.OPEN)
OPEN_INVOICES = rows_as(tuple[int], count_of(_OPEN, MOST_OPEN))
