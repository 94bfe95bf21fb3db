"""Computes when a series creates its bills, and when a bill is due.

All functions compute their result from their arguments alone.
"""

from calendar import monthrange
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from btcpay.values.times import date_of, day_of, in_zone, start_of, to_ms

MONTHS = {"month": 1, "year": 12}
EVERY = ("week", *MONTHS)
# By period: the maximum number of bills of one series that are created at once. If more
# are due, the outage was long or the clock was wrong, so the owner decides.
MOST_AT_ONCE = {"week": 52, "month": 12, "year": 1}
NINE = time(9)
SOON_DAYS = 3  # the reminder is sent this many days before the bill is due


def local_time(first: datetime, every: str, number: int) -> datetime:
    """Returns the local time at which bill `number` of a series is created.

    The first bill has number 0 and is created at `first`. Monthly and yearly bills are
    created on the same day of the month, or on the last day if the month is shorter.
    The time of day is always that of `first`.
    """
    if every == "week":
        return first + timedelta(weeks=number)
    months_since_january = first.month - 1 + MONTHS[every] * number
    years, month_index = divmod(months_since_january, 12)
    year = first.year + years
    month = month_index + 1
    _, month_length = monthrange(year, month)
    day = min(first.day, month_length)
    return first.replace(year=year, month=month, day=day)


def renewal_ms(
    first: datetime,
    every: str,
    number: int,
    until: date | None,
    zone: ZoneInfo,
) -> int | None:
    """Returns when bill `number` of a series is created, in unix milliseconds.

    `first` is the local time of the first bill. Returns None if bill `number` would be
    created after the day `until`. If `until` is None, the series has no end.

    If the clocks change and skip the local time, the bill is created one hour later. If
    the local time occurs twice, the bill is created at the first of the two.
    """
    local = local_time(first, every, number)
    if until and local.date() > until:
        return None
    return to_ms(in_zone(local, zone))


def due_ms(made_ms: int, days: int, zone: ZoneInfo) -> int:
    """Returns the time at which a bill is due, in unix milliseconds.

    `made_ms` is the time of the bill's creation, in unix milliseconds. The result is the
    last millisecond of the day that is `days` days after the day of creation. Days
    begin at midnight in `zone`.
    """
    return start_of(day_of(made_ms, zone) + days + 1, zone) - 1


def reminders_ms(made_ms: int, due_ms: int, zone: ZoneInfo) -> dict[str, int]:
    """Returns the times of the reminder mails in unix milliseconds, by the mail's name.

    The mail `soon` is sent SOON_DAYS days before the day on which the bill is due. The
    mail `overdue` is sent one day after that day. Both are sent at 9:00 in `zone`. A
    mail is left out if its time is not after the bill's creation.
    """
    due_day = day_of(due_ms, zone)
    days = {"soon": due_day - SOON_DAYS, "overdue": due_day + 1}
    reminders: dict[str, int] = {}
    for name, day in days.items():
        local = datetime.combine(date_of(day), NINE)
        at_ms = to_ms(in_zone(local, zone))
        if at_ms > made_ms:
            reminders[name] = at_ms
    return reminders
