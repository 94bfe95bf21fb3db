"""Mails that are due by the clock: evening mails, and mails that no check completes."""

from datetime import date, datetime, time, timedelta

from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms, to_ms, zone_of
from storage.database import Database
from storage.queries import deliveries, meta, receivers

OVERDUE = timedelta(hours=1)
# In the shop's time zone. Most shops have closed by then.
EVENING_AT = time(22)
EVENING = "evening "
# An older mail is given up, since its content is out of date.
STALE = timedelta(days=4)


def add_clock_mails(db: Database, now: datetime) -> None:
    """Adds the mails that are due by the clock, each once.

    There is one for each day on which no check has completed for an hour, and one for
    the last evening, if the merchant existed then.
    """
    for merchant in db.rows(receivers.WANT_MAIL):
        if not merchant.address:
            continue
        local_now = _local(now, merchant.timezone)
        is_late = now - unchecked_since(db, merchant.created_ms) >= OVERDUE
        if is_late:
            _add(db, merchant.merchant_id, f"check {local_now.date()}", now)
        day = last_evening(local_now)
        born_at = _local(from_ms(merchant.created_ms), merchant.timezone)
        if merchant.evening and last_evening(born_at) < day:
            _add(db, merchant.merchant_id, f"{EVENING}{day}", now)


def _add(db: Database, merchant_id: int, about: str, now: datetime) -> None:
    mailbox_id = receivers.mail_id(receivers.MAIL, merchant_id)
    db.run(
        deliveries.ADD_MAIL,
        receiver_id=mailbox_id,
        about=about,
        created_ms=to_ms(now),
    )


def last_evening(now: datetime) -> date:
    """Returns the last day whose evening has come; `now` is in the shop's time zone."""
    today = now.date()
    if now.time() < EVENING_AT:
        return today - timedelta(days=1)
    return today


def _local(now: datetime, zone_name: str) -> datetime:
    """Returns the time in that zone; if the zone is unknown here, `now` as it is.

    Then no mail can be composed anyway.
    """
    try:
        return now.astimezone(zone_of(zone_name))
    except BadRow:
        return now


def unchecked_since(db: Database, born_ms: int) -> datetime:
    """Returns the time of the last complete check, or that of the merchant's creation if later."""
    born_at = from_ms(born_ms)
    checked_at = meta.time(db, meta.Key.CHECKED_MS)
    if checked_at is None:
        return born_at
    return max(checked_at, born_at)
