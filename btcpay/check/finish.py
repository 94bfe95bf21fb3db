"""The end of a run: runs scheduled work, and deletes old rows.

A run for a single invoice does not end like this.
"""

import logging
from datetime import datetime, timedelta

from btcpay.chain.belief import judge_clock
from btcpay.check.parts import run_parts
from btcpay.check.report import Report
from btcpay.invoices.emails import erase_emails
from btcpay.notify.events import delete_old_events
from btcpay.settings.settings import Settings
from btcpay.settlement.merge import HISTORY_AFTER
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import idempotency, payments

log = logging.getLogger(__name__)


def renew_and_erase(
    db: Database,
    settings: Settings,
    report: Report,
    mark: str,
    now: datetime,
) -> None:
    """Runs scheduled work and deletes old rows, if the clock is believed.

    The scheduled work is that of the parts (optional plug-ins). Neither this work nor a
    deletion can be undone. The clock may be years off if the machine booted without a
    network, so the block sources must confirm its time. If they do not, the reason is
    stored in `report.doubt`. `mark` is what `boot_mark` (btcpay/values/times.py)
    returns now.
    """
    if not report.has_tip or report.clock_ahead_s or report.stuck_reason:
        return
    report.doubt = judge_clock(db, settings.network, now, mark, report.is_agreed)
    if report.doubt:
        log.error(
            "nothing is renewed or erased until the time is confirmed: %s",
            report.doubt,
        )
        return
    idempotency_life = timedelta(hours=settings.idempotency_ttl_h)
    db.run(idempotency.FORGET, before=to_ms(now - idempotency_life))
    erase_emails(db, settings.email_retention_days, now)
    db.run(payments.FORGET_INPUTS, before=to_ms(now - HISTORY_AFTER))
    delete_old_events(db, now)
    run_parts(db, settings, now)
