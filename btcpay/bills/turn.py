"""The bills' turn in each complete check: series are renewed, old addresses erased."""

import logging
from datetime import datetime, timedelta

from btcpay.bills import queries
from btcpay.bills.acts import renew
from btcpay.settings.settings import Settings
from btcpay.values.errors import BadRow
from btcpay.values.times import to_ms
from storage.database import Database

AT_ONCE = 100  # series whose next bill is made before the others' one after it
log = logging.getLogger(__name__)


def take_turn(db: Database, settings: Settings, now: datetime) -> None:
    """Makes a bill for each period that has begun, however many were missed."""
    spoiled: set[str] = set()
    while due := [
        first
        for first in db.rows(queries.TO_RENEW, now=to_ms(now), limit=AT_ONCE + len(spoiled))
        if first.id not in spoiled
    ]:
        for first in due:
            try:
                renew(db, first, now)
            except BadRow as error:
                log.error("bill %s cannot be renewed: %s", first.id, error)
                spoiled.add(first.id)
    if days := settings.email_retention_days:
        db.run(queries.ERASE, before=to_ms(now - timedelta(days=days)))
