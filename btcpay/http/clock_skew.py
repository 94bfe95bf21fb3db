"""The error of our clock, measured by the Date of answers that we fetch anyway."""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from btcpay.values.times import from_unix_s

# More than a Date's rounding, the time on the way and a minute in a cache together. A clock that
# is further ahead would let invoices expire too early.
CLOCK_OFF = timedelta(minutes=2)
MAX_UNIX_S = (1 << 32) - 1


def time_sent(headers: Mapping[str, str]) -> datetime | None:
    """The time when an answer was sent: its Date plus its Age in caches (RFC 9110, RFC 9111).

    None without a Date. None for an Age above CLOCK_OFF too: some caches put the present time into
    Date, and the sum would be in the future.
    """
    age_text = headers.get("Age", "0")
    if not re.fullmatch("[0-9]{1,9}", age_text):
        return None
    age = timedelta(seconds=int(age_text))
    if age > CLOCK_OFF:
        return None
    try:
        date = parsedate_to_datetime(headers.get("Date", ""))
        if date.tzinfo:
            return date + age
        return None
    except (ValueError, OverflowError):
        return None


def agreed_time_ahead(times_ahead: Sequence[timedelta], asked: int) -> timedelta:
    """The time by which our clock is ahead, if more than half of the `asked` servers agree.

    `times_ahead`: our time minus theirs, for each server that sent its time. The answer is zero up
    to CLOCK_OFF, and if too few sent their time. So a minority can neither claim nor hide that our
    clock is ahead.
    """
    needed = asked // 2 + 1
    if len(times_ahead) < needed:
        return timedelta()
    agreed = sorted(times_ahead, reverse=True)[needed - 1]
    return _above_clock_off(agreed)


def _above_clock_off(time_ahead: timedelta) -> timedelta:
    """This time; zero up to CLOCK_OFF."""
    if time_ahead > CLOCK_OFF:
        return time_ahead
    return timedelta()


class ClockSkew:
    """Compares our clock with the latest time that servers sent in one run. Thread-safe.

    It takes the latest time because cached answers are old. `time.monotonic()` carries that time
    on, so that a step of our clock during a run is noticed. An explorer with a late Date can hide
    that our clock is ahead; one with an early Date can only delay the end of invoices.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The servers' time when the monotonic clock was 0.
        self._monotonic_zero_at: datetime | None = None

    def on_headers(self, headers: Mapping[str, str]) -> None:
        sent_at = time_sent(headers)
        if sent_at:
            self.on_time(int(sent_at.timestamp()))

    def on_time(self, unix_s: int) -> None:
        """Notes a server's present time; ignores one beyond 32 bits."""
        if not 0 <= unix_s <= MAX_UNIX_S:
            return
        zero_at = from_unix_s(unix_s) - timedelta(seconds=time.monotonic())
        with self._lock:
            latest = self._monotonic_zero_at or zero_at
            self._monotonic_zero_at = max(zero_at, latest)

    def time_ahead(self, now: datetime, monotonic_s: float) -> timedelta:
        """The time by which our clock was ahead at `now`.

        `monotonic_s` is `time.monotonic()` at that moment. Zero up to CLOCK_OFF, and if no server
        has sent its time.
        """
        return _above_clock_off(self.offset(now, monotonic_s) or timedelta())

    def offset(self, now: datetime, monotonic_s: float) -> timedelta | None:
        """Our clock minus the servers' time, however small; None if none has sent its time."""
        if self._monotonic_zero_at:
            return now - self._monotonic_zero_at - timedelta(seconds=monotonic_s)
        return None
