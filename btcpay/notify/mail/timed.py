"""Adds the mails that are due by the clock, and not because of an event.

These are the evening mails about the day's sales, and the warnings that payments are
not being found because no check (`blocktill check`) completes.
"""

from datetime import date, datetime, time, timedelta

from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms, to_ms, zone_of
from storage.database import Database
from storage.queries import deliveries, meta, receivers

OVERDUE = timedelta(hours=1)
# In the shop's time zone. Most shops have closed by then.
EVENING_AT = time(22)
EVENING = "evening "
# A mail that could not be sent for this time is given up, since its content is out of date.
STALE = timedelta(days=4)


def add_clock_mails(db: Database, now: datetime) -> None:
    """Adds the mails that are due by the clock to the outbox, each only once.

    A merchant gets a warning if no check (`blocktill check`) has completed for an hour,
    at most once a day. A merchant who wants evening mails gets one about the last
    evening, unless the merchant was created after that evening.
    """
    for merchant in db.rows(receivers.WANT_MAIL):
        if not merchant.address:
            continue
        local_now = _local(now, merchant.timezone)
        unchecked_for = now - unchecked_since(db, merchant.created_ms)
        if unchecked_for >= OVERDUE:
            _add(db, merchant.merchant_id, f"check {local_now.date()}", now)
        day = last_evening(local_now)
        born_at = _local(from_ms(merchant.created_ms), merchant.timezone)
        was_born_before_evening = last_evening(born_at) < day
        if merchant.evening and was_born_before_evening:
            _add(db, merchant.merchant_id, f"{EVENING}{day}", now)


def _add(db: Database, merchant_id: int, about: str, now: datetime) -> None:
    """Adds a mail to the merchant's mailbox, unless that mailbox has one with this `about`."""
    mailbox_id = receivers.mail_id(receivers.MAIL, merchant_id)
    db.run(
        deliveries.ADD_MAIL,
        receiver_id=mailbox_id,
        about=about,
        created_ms=to_ms(now),
    )


def last_evening(now: datetime) -> date:
    """Returns the date of the last evening: today at EVENING_AT or later, else yesterday.

    `now` is in the shop's time zone.
    """
    today = now.date()
    if now.time() < EVENING_AT:
        return today - timedelta(days=1)
    return today


def _local(now: datetime, zone_name: str) -> datetime:
    """Returns the time in that zone; unchanged if this machine does not know the zone.

    Without the zone, no mail can be composed anyway.
    """
    try:
        return now.astimezone(zone_of(zone_name))
    except BadRow:
        return now


def unchecked_since(db: Database, born_ms: int) -> datetime:
    """Returns the time of the last complete check (`blocktill check`).

    Payments may have been missed since then. If the merchant was created later, or if no
    check has ever completed, returns the time at which the merchant was created. That
    time is `born_ms`, in Unix milliseconds.
    """
    born_at = from_ms(born_ms)
    checked_at = meta.time(db, meta.Key.CHECKED_MS)
    if checked_at is None:
        return born_at
    return max(checked_at, born_at)
