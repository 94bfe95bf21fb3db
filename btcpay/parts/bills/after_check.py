"""The work of the bills' part after each check (the cron job that reads blocks).

It creates the next bills of series, and erases old e-mail addresses.
"""

import logging
from datetime import datetime, timedelta

from btcpay import hooks
from btcpay.parts.bills import queries
from btcpay.parts.bills.actions import renew_missed
from btcpay.settings.settings import Settings
from btcpay.values.errors import BadRow
from btcpay.values.times import to_ms
from storage.database import Database

log = logging.getLogger(__name__)


def on_check(db: Database, settings: Settings, now: datetime) -> None:
    """Creates a bill for each period that has begun, and erases old e-mail addresses.

    One call creates at most the bills of one year for each series. A series with a
    damaged row is logged and skipped.
    """
    for series in db.rows(queries.TO_RENEW, now=to_ms(now)):
        try:
            renew_missed(db, series, now)
        except BadRow as error:
            log.error("bill %s cannot be renewed: %s", series.id, error)
    retention_days = settings.email_retention_days
    if retention_days:
        db.run(queries.ERASE, before=to_ms(now - timedelta(days=retention_days)))


HOOK = hooks.AfterCheck(on_check=on_check)
