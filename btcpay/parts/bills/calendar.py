"""The calendar of bills: the days on which a series makes one, and when one is due. Pure."""

from calendar import monthrange
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from btcpay.values.times import date_of, day_of, in_zone, start_of, to_ms

MONTHS = {"month": 1, "year": 12}
EVERY = ("week", *MONTHS)
# Bills made at once, at most: if more are due, that was no short outage, and the owner is asked.
MOST_AT_ONCE = {"week": 52, "month": 12, "year": 1}
NINE = time(9)
SOON_DAYS = 3  # before a bill is due


def local_time(first: datetime, every: str, number: int) -> datetime:
    """The local time of bill `number` of a series; number 0 is the first.

    It has the day and the time of the first, or the month's last day if the month is shorter.
    """
    if every == "week":
        return first + timedelta(weeks=number)
    years, month = divmod(first.month - 1 + MONTHS[every] * number, 12)
    year = first.year + years
    month = month + 1
    return first.replace(year, month, min(first.day, monthrange(year, month)[1]))


def renewal_ms(
    first: datetime, every: str, number: int, until: date | None, zone: ZoneInfo
) -> int | None:
    """When bill `number` is made, in ms; None if that is after the day `until`.

    If clocks in the zone skip that local time, it is an hour later; if they show it twice, it is
    the first of the two.
    """
    local = local_time(first, every, number)
    if until and local.date() > until:
        return None
    return to_ms(in_zone(local, zone))


def due_ms(made_ms: int, days: int, zone: ZoneInfo) -> int:
    """The last millisecond of the day that is `days` after the one on which the bill was made."""
    return start_of(day_of(made_ms, zone) + days + 1, zone) - 1


def reminders_ms(made_ms: int, due_ms: int, zone: ZoneInfo) -> dict[str, int]:
    """When the customer is reminded, by the mail's name: before the bill is due, and after.

    That is three days before and one day after, at nine in the morning. A reminder that would be
    before the bill was made is left out.
    """
    due_day = day_of(due_ms, zone)
    days = {"soon": due_day - SOON_DAYS, "overdue": due_day + 1}
    reminders: dict[str, int] = {}
    for name, day in days.items():
        ms = to_ms(in_zone(datetime.combine(date_of(day), NINE), zone))
        if ms > made_ms:
            reminders[name] = ms
    return reminders
