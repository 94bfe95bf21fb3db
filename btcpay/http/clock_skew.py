"""Measures the error of the system clock by the Date headers of HTTP responses.

The responses belong to requests that are sent anyway.
"""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from btcpay.values.times import from_unix_s

# Tolerance of our clock. It covers the rounding of Date, the network delay and a minute in a cache.
# If the clock is further ahead, invoices would expire too early.
CLOCK_OFF = timedelta(minutes=2)
MAX_UNIX_S = (1 << 32) - 1


def time_sent(headers: Mapping[str, str]) -> datetime | None:
    """Returns the time when a response was sent: Date plus Age (RFC 9110, RFC 9111).

    Returns None if there is no valid Date, or if Age is invalid or above CLOCK_OFF.
    Some caches replace Date by the present time but keep Age. The sum would then be in
    the future.
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


def agreed_time_ahead(times_ahead: Sequence[timedelta], server_count: int) -> timedelta:
    """Returns how far our clock is ahead, as more than half of the servers say.

    `times_ahead` has our time minus the server's, for each server that sent its time.
    `server_count` is the number of all servers. The result is the largest difference
    that more than half of all servers reach or exceed. It is zero if half of them or
    fewer sent a time, or if the clock is ahead by CLOCK_OFF or less. So a minority of
    servers can neither fake nor hide that our clock is ahead.
    """
    majority = server_count // 2 + 1
    if len(times_ahead) < majority:
        return timedelta()
    agreed = sorted(times_ahead, reverse=True)[majority - 1]
    return _above_clock_off(agreed)


def _above_clock_off(time_ahead: timedelta) -> timedelta:
    """Returns `time_ahead`, or zero if it is at most CLOCK_OFF."""
    if time_ahead > CLOCK_OFF:
        return time_ahead
    return timedelta()


class ClockSkew:
    """The difference between our clock and the servers' clocks. Thread-safe.

    It uses the latest time that any server has sent, since cached responses have older
    times. So a server whose clock is behind the others' cannot change the result, but
    one whose clock is ahead can hide that our clock is ahead. `time.monotonic()`
    measures the time that has passed since, so that a change of our clock during the
    run is noticed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The servers' time at the moment when the monotonic clock was 0.
        self._monotonic_zero_at: datetime | None = None

    def on_headers(self, headers: Mapping[str, str]) -> None:
        """Records the server's time, if the headers of its response have it."""
        sent_at = time_sent(headers)
        if sent_at:
            self.on_time(int(sent_at.timestamp()))

    def on_time(self, unix_s: int) -> None:
        """Records the present time of a server, in Unix seconds.

        Ignores times that do not fit in 32 bits.
        """
        if not 0 <= unix_s <= MAX_UNIX_S:
            return
        zero_at = from_unix_s(unix_s) - timedelta(seconds=time.monotonic())
        with self._lock:
            latest_zero_at = self._monotonic_zero_at or zero_at
            self._monotonic_zero_at = max(zero_at, latest_zero_at)

    def time_ahead(self, now: datetime, monotonic_s: float) -> timedelta:
        """Returns how far our clock was ahead at `now`.

        `monotonic_s` is `time.monotonic()` at the same moment. Returns zero if no
        server has sent its time, or if the clock was ahead by CLOCK_OFF or less.
        """
        return _above_clock_off(self.offset(now, monotonic_s) or timedelta())

    def offset(self, now: datetime, monotonic_s: float) -> timedelta | None:
        """Returns our clock minus the servers' time, which may be negative.

        The result is for the time `now`, when `time.monotonic()` was `monotonic_s`. It
        is None if no server has sent its time.
        """
        if self._monotonic_zero_at:
            return now - self._monotonic_zero_at - timedelta(seconds=monotonic_s)
        return None
