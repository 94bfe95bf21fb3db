"""What happened is not kept for ever."""

from datetime import datetime, timedelta
from itertools import takewhile

from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import public_events

# Longer than any receiver is tried, and than a shop is away over the holidays.
KEPT = timedelta(days=30)


def forget_old(db: Database, now: datetime) -> int:
    """Deletes what is older than KEPT, a batch at most; how many.

    Never what a reader has not taken over, nor the newest: its number is where the next begins.
    """
    public_events.number_new(db)
    before = to_ms(now - KEPT)
    with db.write():
        last = db.only(public_events.LAST)["number"]
        slowest = db.only(public_events.SLOWEST)["number"]
        most = last - 1 if slowest is None else min(last - 1, slowest)
        oldest = db.rows(public_events.OLDEST)
        old = [
            row["number"]
            for row in takewhile(lambda row: row["happened_at"] < before, oldest)
            if row["number"] <= most
        ]
        return db.run(public_events.FORGET, number=old[-1]) if old else 0
