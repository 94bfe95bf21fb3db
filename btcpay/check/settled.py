"""The consequences of scans: all rows are read at once, and each invoice is decided by itself."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from btcpay.invoices.events import End
from btcpay.invoices.status import invoice_of, known_outputs, rules_for
from btcpay.settings.settings import Settings
from btcpay.settlement.settle import Change, Outcome, settle
from btcpay.settlement.values import Rules, Scan
from btcpay.values.times import to_ms
from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice
from storage.queries import events, invoices

LONG_HISTORY = 1000  # of one invoice; receivers may be sent each of them


class Settled(NamedTuple):
    """An invoice's row, the scan of its address, and what follows from it.

    `noted`: the changes for history and receivers; of a long history, only those in a block.
    """

    row: Invoice
    scan: Scan
    rules: Rules
    outcome: Outcome
    noted: Sequence[Change]

    @property
    def is_covered(self) -> bool:
        """True if the whole sum is seen for the first time."""
        is_open = self.row.status == "open" and self.row.covered_at is None
        return is_open and not self.outcome.verdict.missing_sats

    @property
    def has_ended(self) -> bool:
        return self.outcome.verdict.status != self.row.status

    @property
    def has_changed(self) -> bool:
        out = self.outcome
        came = out.changes or out.forgotten or out.payments or out.settling
        return self.has_ended or bool(came)

    @property
    def settles(self) -> list[Values]:
        return [{"invoice_id": self.row.id, "tx_hash": tx} for tx in self.outcome.settling]

    @property
    def end(self) -> End:
        verdict, explorer = self.outcome.verdict, self.scan.explorer
        paid_at = to_ms(verdict.paid_at) if verdict.paid_at else None
        return End(self.row, verdict.status, verdict.reason, explorer, verdict.tx_hash, paid_at)


def settled(
    db: Database, settings: Settings, scans: Mapping[str, Scan], now: datetime
) -> list[Settled]:
    """The consequences of each scan, by rows that are read behind the locks. Raises BadRow."""
    rows = at_once.rows(db, invoices.WHOLE, [{"id": id} for id in scans])
    known = known_outputs(db, scans)
    lengths = dict(at_once.rows(db, events.LENGTH, [{"invoice_id": id} for id in scans]))
    found = []
    for row in rows:
        scan, rules = scans[row.id], rules_for(settings, row)
        is_long = lengths.get(row.id, 0) >= LONG_HISTORY
        outcome = settle(invoice_of(row), known[row.id], scan, rules, now)
        noted = [one for one in outcome.changes if one.after.block or not is_long]
        found.append(Settled(row, scan, rules, outcome, noted))
    return found
