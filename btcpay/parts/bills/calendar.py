"""The calendar of bills: the days on which a series makes one, and when one is due. Pure."""

from calendar import monthrange
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from btcpay.values.times import date_of, day_of, in_zone, start_of, to_ms

MONTHS = {"month": 1, "year": 12}
EVERY = ("week", *MONTHS)
# More than a year's bills at once are no outage that anybody would want made up without a word.
MOST_AT_ONCE = {"week": 52, "month": 12, "year": 1}
NINE = time(9)
SOON_DAYS = 3  # before a bill is due


def local_time(first: datetime, every: str, number: int) -> datetime:
    """The local time of a series' bill of that number, 0 for the first.

    It is that of the first, on the last day of a month that lacks its day.
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
    """The time of that bill in this zone; None beyond `until`, whose own day is included.

    A time that the clocks leave out is an hour later, one that they show twice is the first.
    """
    local = local_time(first, every, number)
    if until and local.date() > until:
        return None
    return to_ms(in_zone(local, zone))


def due_ms(made_ms: int, days: int, zone: ZoneInfo) -> int:
    """The end of the day so many days after the one on which it was made: its last millisecond."""
    return start_of(day_of(made_ms, zone) + days + 1, zone) - 1


def recalls(made_ms: int, due_ms: int, zone: ZoneInfo) -> dict[str, int]:
    """Times of the customer's reminders: three days before the bill is due, and the day after.

    Both are at nine in the morning, and only those later than the making of the bill.
    """
    due_day = day_of(due_ms, zone)
    days = {"soon": due_day - SOON_DAYS, "overdue": due_day + 1}
    at = {
        n: to_ms(in_zone(datetime.combine(date_of(d), NINE), zone))
        for n, d in days.items()
    }
    return {name: ms for name, ms in at.items() if ms > made_ms}
