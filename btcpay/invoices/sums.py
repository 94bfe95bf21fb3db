"""What has come to an invoice, for its page: of thousands of outputs their sums, and those kept."""

from datetime import datetime

from btcpay.settlement.values import Block, Output
from btcpay.values.times import from_ms, to_ms
from storage.database import Database, Row
from storage.queries import payments

NEVER_MS = 2**62
KEPT = 1_000  # invoices whose page may be open
MINUTE_MS = 60_000  # whatever else has changed them, a restore too, shows by then

Stamp = tuple[str, int, int]


class Sums:
    """Reads them anew when the check has changed an output of the invoice, and once a minute."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._kept: dict[str, tuple[Stamp, list[Output]]] = {}

    def of(self, row: Row, now: datetime) -> list[Output]:
        """For a verdict; each stands for what is in one block (or in none) and counts alike."""
        stamp = (row["status"], row["changes"], to_ms(now) // MINUTE_MS)
        kept = self._kept.get(row["id"])
        if kept and kept[0] == stamp:
            return kept[1]
        outputs = _read(self._db, row)
        if len(self._kept) >= KEPT:
            self._kept.clear()
        self._kept[row["id"]] = stamp, outputs
        return outputs


def _read(db: Database, row: Row) -> list[Output]:
    ends_ms = NEVER_MS if row["expires_at"] is None else row["expires_at"]
    return [
        Output(
            txid=str(number),
            vout=0,
            amount_sats=one["amount_sats"],
            first_seen_at=from_ms(row["created_at"] if one["is_early"] else ends_ms),
            seen_waiting=bool(one["seen_waiting"]),
            block=_block(one),
            credited=bool(one["credited"]),
            settles=bool(one["settles"]),
        )
        for number, one in enumerate(db.rows(payments.SUMS, invoice_id=row["id"], before=ends_ms))
    ]


def _block(one: Row) -> Block | None:
    height = one["block_height"]
    return None if height is None else Block(height, "", from_ms(one["block_time_at"]))
