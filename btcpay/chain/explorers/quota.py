"""Limits the calls to each explorer in a rolling hour, over all runs and processes."""

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from btcpay.chain.sources import Allowance, BudgetSpent
from btcpay.values.times import from_ms, start_of_hour, to_ms
from storage.database import Database
from storage.models import ExplorerUse
from storage.queries import meta, sources

HOUR = timedelta(hours=1)
MINUTE_MS = 60_000
OUT_AFTER_MIN = 61  # the minute that is only partly in the past hour counts too
KEPT_FOR = timedelta(days=1)
# Back-off after the second refusal in a row. It doubles after each further one. The first refusal
# only excludes the explorer from that run.
FIRST_REST = timedelta(minutes=1)
LONGEST_REST = HOUR  # maximum back-off; public explorers limit calls by the hour


def sustainable_per_minute(calls_left: int, used: Mapping[int, int]) -> float:
    """Returns the highest rate of calls per minute that can be kept up for an hour.

    `calls_left` is the number of calls that may be made now. `used` has the number of
    past calls by their age in minutes. A call stops counting once it is older than an
    hour.
    """
    rates = []
    available = calls_left
    for minute in range(60):
        # These calls are older than an hour by that minute, so they may be made again.
        available += used.get(OUT_AFTER_MIN - minute, 0)
        rates.append(available / (minute + 1))
    return min(rates)


def endpoint_name(url: str) -> str:
    """Returns the host, port and path of a URL.

    The result is safe to store and display, since it contains no credentials.
    """
    parts = urlsplit(url)
    _, _, host_and_port = parts.netloc.rpartition("@")
    return f"{host_and_port}{parts.path}"


class Reserve:
    """Calls that a process has counted in advance, at most `most` to each explorer.

    With a reserve the process need not write to the database before each call. The
    process first counts one call in advance, and then each time twice as many as the
    time before. Calls that are left when the process ends stay counted as used.
    Explorers are named by their `endpoint_name`. Thread-safe.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._left = Counter[str]()
        self._counted = Counter[str]()

    def use(self, name: str) -> bool:
        """Uses one of the calls to this explorer. Returns False if none is left."""
        with self._lock:
            if not self._left[name]:
                return False
            self._left[name] -= 1
            return True

    def next_count(self, name: str, calls_left: int) -> int:
        """Returns how many calls to count now: at most a fourth of `calls_left`, or one.

        `calls_left` is the number of calls that the quota has left.
        """
        most = min(self._most, calls_left // 4)
        return max(1, min(2 * self._counted[name], most))

    def fill(self, name: str, counted: int) -> None:
        """Adds the calls that the caller has just counted in the database, all but one.

        `counted` is their number. The caller makes the first of them at once, so that
        one is not added to the reserve.
        """
        with self._lock:
            self._counted[name] = counted
            self._left[name] += counted - 1


@dataclass(frozen=True)
class Quota:
    """A limit of `per_hour` calls to each explorer, over all processes. Thread-safe.

    Explorers are named by their `endpoint_name`.
    """

    db: Database
    per_hour: int
    now: Callable[[], datetime]
    reserve: Reserve = field(default_factory=Reserve)

    def take(self, name: str) -> None:
        """Counts a call to this explorer, before it is made.

        Raises BudgetSpent if the quota is used up.
        """
        if self.reserve.use(name):
            return
        now_ms = to_ms(self.now())
        minute_ms = now_ms - now_ms % MINUTE_MS
        with self.db.unforced(), self.db.write():
            meta.lock(self.db)
            used = sum(
                row.calls for row in self._recent_calls(now_ms) if row.root == name
            )
            if used >= self.per_hour:
                raise BudgetSpent(
                    f"was asked {used} times in this hour, its budget is spent"
                )
            calls = self.reserve.next_count(name, self.per_hour - used)
            self.db.run(sources.SPEND, root=name, minute_ms=minute_ms, calls=calls)
        self.reserve.fill(name, calls)

    def forget(self, responding: Iterable[str] = ()) -> None:
        """Deletes old counts of calls, and the refusals of the explorers in `responding`.

        `responding` has the names of explorers that were called in this run and did not
        refuse.
        """
        now = self.now()
        # Whole hours, so that an idle shop writes this to the disk only once an hour.
        before = start_of_hour(now - KEPT_FOR)
        with self.db.write():
            for name in responding:
                self.db.run(sources.ANSWERED, root=name)
            self.db.run(sources.FORGET, before=to_ms(before), now=to_ms(now + HOUR))

    def allowance(self, names: Sequence[str]) -> Allowance:
        """Returns the number of calls that may be made to these explorers.

        An explorer in its back-off after refusals has none.
        """
        now_ms = to_ms(self.now())
        used: dict[str, Counter[int]] = defaultdict(Counter)
        for row in self._recent_calls(now_ms):
            # If the clock was ahead, calls may be recorded for future minutes.
            age_ms = max(0, now_ms - row.minute_ms)
            minutes_ago = age_ms // MINUTE_MS
            used[row.root][minutes_ago] += row.calls
        # Each of these stays 0 if every explorer is in its back-off.
        per_hour = 0
        most_left = 0
        most_minutely = 0.0
        for name in names:
            if self.rests_until(name):
                continue
            calls_left = max(0, self.per_hour - used[name].total())
            minutely = sustainable_per_minute(calls_left, used[name])
            most_left = max(most_left, calls_left)
            most_minutely = max(most_minutely, minutely)
            per_hour = self.per_hour
        return Allowance(per_hour, most_left, most_minutely)

    def rests_until(self, name: str) -> datetime | None:
        """Returns the end of an explorer's back-off after it has refused calls.

        Returns None if the explorer may be called now.
        """
        row = self.db.get_or_none(sources.REFUSAL, root=name)
        if not row:
            return None
        now = self.now()
        until = from_ms(row.rests_until_ms)
        # A later end was stored with a wrong clock, since LONGEST_REST is the maximum.
        if now < until <= now + LONGEST_REST:
            return until
        return None

    def note_refusal(self, name: str, retry_after_s: int) -> None:
        """Records that an explorer refused a call, and starts its back-off.

        The back-off is zero after the first refusal in a row and about a minute after
        the second, and doubles with each further one. But it is at least
        `retry_after_s`, the time that the explorer demanded, and at most an hour.
        """
        rest = timedelta()
        row = self.db.get_or_none(sources.REFUSAL, root=name)
        if row and row.refusals:
            doublings = min(row.refusals - 1, 10)  # enough to exceed LONGEST_REST
            rest = FIRST_REST * 2**doublings
        # Jitter prevents that shops which were refused together retry together.
        rest = rest * random.uniform(0.8, 1.2)
        rest = max(rest, timedelta(seconds=retry_after_s))
        until_ms = to_ms(self.now() + min(LONGEST_REST, rest))
        self.db.run(sources.REFUSED, root=name, refusals=1, rests_until_ms=until_ms)

    def _recent_calls(self, now_ms: int) -> list[ExplorerUse]:
        """Returns the calls of the past hour by minute and explorer.

        It includes calls that are recorded in the next hour, since the clock may have
        been ahead then.
        """
        after_ms = now_ms - OUT_AFTER_MIN * MINUTE_MS
        before_ms = now_ms + HOUR // timedelta(milliseconds=1)
        return self.db.rows(sources.USED, after=after_ms, now=before_ms)
