"""Mails that no event brings: of an evening, and of a time without a complete check."""

from datetime import date, datetime, time, timedelta

from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms, to_ms, zone_of
from storage.database import Database
from storage.queries import deliveries, meta, receivers

OVERDUE = timedelta(hours=1)
# Most shops have closed by then.
EVENING_AT = time(22)
EVENING = "evening "
# A mail that is older is no longer news.
STALE = timedelta(days=4)


def add_timed(db: Database, now: datetime) -> None:
    """Adds the mails that no event brings, each once.

    For each day on which no check was complete for an hour, and for the last evening.
    """
    for merchant in db.rows(receivers.WANT_MAIL):
        if not merchant.address:
            continue
        local_now = _local(now, merchant.timezone)
        is_late = now - unchecked_since(db, merchant.created_ms) >= OVERDUE
        if is_late:
            _add(db, merchant.merchant_id, f"check {local_now.date()}", now)
        if merchant.evening:
            about = f"{EVENING}{last_evening(local_now)}"
            _add(db, merchant.merchant_id, about, now)


def _add(db: Database, merchant_id: int, about: str, now: datetime) -> None:
    mailbox_id = receivers.mail_id(receivers.MAIL, merchant_id)
    db.run(
        deliveries.ADD_MAIL,
        receiver_id=mailbox_id,
        about=about,
        created_ms=to_ms(now),
    )


def last_evening(now: datetime) -> date:
    """The last day whose evening has come; `now` in the shop's zone."""
    today = now.date()
    if now.time() < EVENING_AT:
        return today - timedelta(days=1)
    return today


def _local(now: datetime, zone_name: str) -> datetime:
    """The time in that zone, or in UTC if it is unknown here: then no mail can be composed."""
    try:
        return now.astimezone(zone_of(zone_name))
    except BadRow:
        return now


def unchecked_since(db: Database, born_ms: int) -> datetime:
    """The time of the last complete check, or of the merchant's creation if that is later."""
    born_at = from_ms(born_ms)
    checked_at = meta.time(db, meta.Key.CHECKED_MS)
    if checked_at is None:
        return born_at
    return max(checked_at, born_at)
