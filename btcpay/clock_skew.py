"""What time the world says it is: the Date of answers that are asked for anyway."""

import ipaddress
import re
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

# Whole seconds, the way here, and an answer that was cached for a minute come to less; more than
# this before its end no invoice may expire.
CLOCK_OFF = timedelta(minutes=2)
REMEDY = "let the clock be set by NTP: `timedatectl set-ntp true`"
EPOCH = datetime.fromtimestamp(0, UTC)


def told_time(headers: Mapping[str, str]) -> datetime | None:
    """When an answer was sent: its Date and its Age in caches (RFC 9110, RFC 9111).

    None when it does not say, and when it is older than CLOCK_OFF: some caches put the present in
    Date and the Age beside it, which together would be a time to come.
    """
    age = headers.get("Age", "0")
    if not re.fullmatch("[0-9]{1,9}", age) or timedelta(seconds=int(age)) > CLOCK_OFF:
        return None
    try:
        told = parsedate_to_datetime(headers.get("Date", ""))
        return told + timedelta(seconds=int(age)) if told.tzinfo else None
    except (ValueError, OverflowError):
        return None


def has_our_clock(url: str) -> bool:
    """Whether a server is on this machine by its name, so that its Date tells nothing."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def agreed_ahead(aheads: Sequence[timedelta], asked: int) -> timedelta:
    """How far our clock is ahead by the word of more than half of the `asked` servers.

    `aheads` is ours less theirs, of those that told the time. Nought up to CLOCK_OFF, and when
    fewer have told: a minority can neither claim nor, while the others speak, hide that we are.
    """
    needed = asked // 2 + 1
    if len(aheads) < needed:
        return timedelta()
    ahead = sorted(aheads, reverse=True)[needed - 1]
    return ahead if ahead > CLOCK_OFF else timedelta()


class ClockSkew:
    """The latest time that the answers of one run have told. Thread safe.

    It goes on by `time.monotonic()`, which no step of the wall clock moves: so a step in the middle
    of a run is noticed. The latest, since a cached answer is old; an explorer with a late Date can
    hide that our clock is ahead, one with an early Date can but put off what is to end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began: timedelta | None = None  # of the world, since EPOCH, at monotonic nought

    def hear(self, headers: Mapping[str, str]) -> None:
        """Takes note of an answer's head."""
        if told := told_time(headers):
            began = told - EPOCH - timedelta(seconds=time.monotonic())
            with self._lock:
                self._began = max(began, self._began or began)

    def ahead(self, now: datetime, read_s: float) -> timedelta:
        """How far our clock was ahead when it said `now`, at `time.monotonic()` of `read_s`.

        Nought up to CLOCK_OFF, and when nobody has told the time.
        """
        if self._began is None:
            return timedelta()
        ahead = now - EPOCH - self._began - timedelta(seconds=read_s)
        return ahead if ahead > CLOCK_OFF else timedelta()
