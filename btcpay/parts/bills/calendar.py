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
    """Returns when bill `number` of a series is created, in local time. The first has number 0.

    Monthly and yearly bills have the day of the month of `first`; in a shorter month,
    they have its last day. The time of day is that of `first`.
    """
    if every == "week":
        return first + timedelta(weeks=number)
    months = first.month - 1 + MONTHS[every] * number
    years, month_index = divmod(months, 12)
    year = first.year + years
    month = month_index + 1
    _, month_length = monthrange(year, month)
    return first.replace(year, month, min(first.day, month_length))


def renewal_ms(
    first: datetime,
    every: str,
    number: int,
    until: date | None,
    zone: ZoneInfo,
) -> int | None:
    """Returns when bill `number` is created, in unix milliseconds; None if after `until`.

    If a change of the clocks skips the local time, the bill is created one hour later.
    If the local time occurs twice, the bill is created at the first of the two.
    """
    local = local_time(first, every, number)
    if until and local.date() > until:
        return None
    return to_ms(in_zone(local, zone))


def due_ms(made_ms: int, days: int, zone: ZoneInfo) -> int:
    """Returns the end of the day that is `days` days after the day of creation.

    `made_ms` is the time of creation. It and the result, the last millisecond of a day,
    are in unix milliseconds. Days begin at midnight in `zone`.
    """
    return start_of(day_of(made_ms, zone) + days + 1, zone) - 1


def reminders_ms(made_ms: int, due_ms: int, zone: ZoneInfo) -> dict[str, int]:
    """Returns the times of the reminder mails in unix milliseconds, by the mail's name.

    The mail `soon` is sent SOON_DAYS days before the day on which the bill is due, the
    mail `overdue` one day after it, both at 9:00 in `zone`. A reminder whose time is
    not after the bill's creation is left out.
    """
    due_day = day_of(due_ms, zone)
    days = {"soon": due_day - SOON_DAYS, "overdue": due_day + 1}
    reminders: dict[str, int] = {}
    for name, day in days.items():
        local = datetime.combine(date_of(day), NINE)
        ms = to_ms(in_zone(local, zone))
        if ms > made_ms:
            reminders[name] = ms
    return reminders
