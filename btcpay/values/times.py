"""Times: aware UTC datetimes in the program, whole milliseconds since 1970 in the database.

A name in `_at` is an int in a row, as it is stored, and a datetime in a value of the rules:
`btcpay/invoices/status.py` makes these from rows, and writers of rows use `to_ms`. Only entry
points read the clock; everything below takes `now` as an argument.
"""

import functools
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from btcpay.values.errors import BadRow

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_ms(at: datetime) -> int:
    """Whole milliseconds since 1970 UTC, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def from_ms(ms: int) -> datetime:
    """The aware UTC datetime of a stored time. Raises BadRow."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except (TypeError, OverflowError):
        raise BadRow(f"{ms!r} is no stored time") from None


def from_ms_or_none(ms: int | None) -> datetime | None:
    return None if ms is None else from_ms(ms)


def from_unix_s(seconds: int) -> datetime:
    """The aware UTC datetime of a block header's time."""
    return _EPOCH + timedelta(seconds=seconds)


def iso(at: datetime) -> str:
    """ISO 8601 with milliseconds and a trailing Z, as responses carry it."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@functools.lru_cache(maxsize=4096)  # lists and polls repeat the same times
def iso_ms(ms: int) -> str:
    return iso(from_ms(ms))


def utc_now() -> datetime:
    return datetime.now(UTC)


def boot_mark() -> str:
    """The seconds since the start of this machine, and the start's id, which Linux alone has.

    No step of the clock changes them.
    """
    start = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return f"{time.clock_gettime_ns(clock) // 10**9} {start}"


def elapsed(since: str, mark: str) -> timedelta | None:
    """The time between two such marks; None when the machine was started between them."""
    (began, _, start), (at, _, same) = since.partition(" "), mark.partition(" ")
    if not began or start != same or int(at) < int(began):
        return None
    return timedelta(seconds=int(at) - int(began))
