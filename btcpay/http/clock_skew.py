"""The error of our clock, measured by the Date of answers that we fetch anyway."""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from btcpay.values.times import from_unix_s

# More than the sum of a Date's rounding, the time on the way, and a minute in a cache. A clock
# that is further ahead would let invoices expire too early.
CLOCK_OFF = timedelta(minutes=2)


def time_sent(headers: Mapping[str, str]) -> datetime | None:
    """The time when an answer was sent: its Date and its Age in caches (RFC 9110, RFC 9111).

    None without a Date, and for an Age above CLOCK_OFF: some caches put the present into Date, and
    its sum with the Age would be in the future.
    """
    age = headers.get("Age", "0")
    if not re.fullmatch("[0-9]{1,9}", age) or timedelta(seconds=int(age)) > CLOCK_OFF:
        return None
    try:
        sent_at = parsedate_to_datetime(headers.get("Date", ""))
        if sent_at.tzinfo:
            return sent_at + timedelta(seconds=int(age))
        return None
    except (ValueError, OverflowError):
        return None


def agreed_time_ahead(aheads: Sequence[timedelta], asked: int) -> timedelta:
    """The time by which our clock is ahead, if more than half of the `asked` servers agree.

    `aheads`: our time minus theirs, for each server that sent its time. Zero up to CLOCK_OFF, and
    when too few sent theirs. So a minority can neither claim nor hide that we are ahead.
    """
    needed = asked // 2 + 1
    if len(aheads) < needed:
        return timedelta()
    ahead = sorted(aheads, reverse=True)[needed - 1]
    if ahead > CLOCK_OFF:
        return ahead
    return timedelta()


class ClockSkew:
    """Compares our clock with the latest time in the answers of one run. Thread-safe.

    The latest, because cached answers are old. `time.monotonic()` carries it on, so that a step of
    our clock during a run is noticed. An explorer with a late Date can hide that our clock is
    ahead; one with an early Date can only delay the end of invoices.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began: datetime | None = None  # the world's time when monotonic was 0

    def on_headers(self, headers: Mapping[str, str]) -> None:
        if sent_at := time_sent(headers):
            self.on_time(int(sent_at.timestamp()))

    def on_time(self, unix_s: int) -> None:
        """Takes note of the present time of a server; ignores one beyond 32 bits."""
        if 0 <= unix_s < 1 << 32:
            began = from_unix_s(unix_s) - timedelta(seconds=time.monotonic())
            with self._lock:
                self._began = max(began, self._began or began)

    def time_ahead(self, now: datetime, read_s: float) -> timedelta:
        """The time by which our clock was ahead at `now`, when `time.monotonic()` was `read_s`.

        Zero up to CLOCK_OFF, and when no server has sent its time.
        """
        ahead = self.offset(now, read_s) or timedelta()
        if ahead > CLOCK_OFF:
            return ahead
        return timedelta()

    def offset(self, now: datetime, read_s: float) -> timedelta | None:
        """Our clock minus that time, however small; None when no server has sent its time."""
        if self._began:
            return now - self._began - timedelta(seconds=read_s)
        return None
