"""What each explorer may still be asked in a rolling hour, kept in the database across runs."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from btcpay.explorers.allowance import Allowance
from btcpay.http_client import FetchError
from btcpay.times import from_ms, to_ms
from storage.database import Database
from storage.queries import explorers, meta

HOUR = timedelta(hours=1)
MINUTE_MS = 60_000
KEPT = timedelta(days=1)
# Calls are counted before they are made, so many at once: a process that dies loses no more.
CALLS_AT_ONCE = 20
# From the second refusal in a row on, doubled at each further one; the first ends only its run.
FIRST_REST = timedelta(minutes=1)
LONGEST_REST = HOUR  # public explorers count by the hour


class QuotaSpent(FetchError):
    """This explorer's quota of the hour is spent."""


class TooFewCalls(QuotaSpent):
    """This explorer has some calls left, but too few to finish what would be begun."""


def name_of(url: str) -> str:
    """An endpoint's host, port and path: what may be stored and shown."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass
class Quota:
    """Counts the calls of this process to each explorer. Thread safe; `now` reads the wall clock.

    `per_hour` holds for each explorer. Processes share it: the database adds up what they take.
    """

    db: Database
    per_hour: int
    now: Callable[[], datetime]
    _credit: dict[str, int] = field(default_factory=dict)
    _counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _set_aside: threading.local = field(default_factory=threading.local)

    def take(self, name: str) -> None:
        """Counts one call to this explorer. Raises QuotaSpent."""
        if set_aside := getattr(self._set_aside, "calls", 0):
            self._set_aside.calls = set_aside - 1
            return
        with self._lock:
            self._fill(name, 1)
            self._credit[name] -= 1

    @contextmanager
    def set_aside(self, name: str, calls: int) -> Iterator[None]:
        """Holds so many calls for this thread: half a proof is worth nothing.

        Raises TooFewCalls when the explorer has fewer left.
        """
        with self._lock:
            try:
                self._fill(name, calls)
            except QuotaSpent as error:
                raise TooFewCalls(f"has fewer than {calls} calls left in this hour") from error
            self._credit[name] -= calls
        self._set_aside.calls = calls
        try:
            yield
        finally:
            with self._lock:
                self._credit[name] += self._set_aside.calls
            self._set_aside.calls = 0

    def _fill(self, name: str, calls: int) -> None:
        """Counts calls in advance until `calls` of them are there. Raises QuotaSpent."""
        missing = calls - self._credit.setdefault(name, 0)
        if missing > 0:
            self._credit[name] += self._reserve(name, missing)

    def _reserve(self, name: str, least: int) -> int:
        now_ms = to_ms(self.now())
        minute_ms = now_ms - now_ms % MINUTE_MS
        with self.db.write():
            meta.lock(self.db)
            used = self.db.only(explorers.USED_OF_ROOT, root=name, **_last_hour(now_ms))["calls"]
            calls = min(max(CALLS_AT_ONCE, least), self.per_hour - used)
            if calls < least:
                raise QuotaSpent(f"was asked {used} times in this hour, its budget is spent")
            self.db.run(explorers.SPEND, root=name, minute_at=minute_ms, calls=calls, swept=0)
        latest_ms, counted = self._counted.get(name, (minute_ms, 0))
        self._counted[name] = minute_ms, calls + (counted if latest_ms == minute_ms else 0)
        return calls

    def give_back(self) -> None:
        """At the end of a run: returns what was counted and not spent, and drops old minutes.

        Only what was counted in the latest minute is returned. What is left of an earlier one
        stays counted, so that nobody is asked too often.
        """
        now = self.now()
        with self._lock, self.db.write():
            meta.lock(self.db)
            for name, calls in self._credit.items():
                if calls:
                    minute_ms, counted = self._counted[name]
                    unspent = min(calls, counted)
                    self.db.run(explorers.GIVE_BACK, root=name, minute_at=minute_ms, calls=unspent)
            self._credit.clear()
            self._counted.clear()
            self.db.run(explorers.FORGET, before=to_ms(now - KEPT), now=to_ms(now + HOUR))

    def allowance(self, names: Sequence[str]) -> Allowance:
        """What may be spent on these explorers; one that rests has nothing."""
        now_ms = to_ms(self.now())
        rows = self.db.rows(explorers.USED, **_last_hour(now_ms))
        used = {row["root"]: row for row in rows}
        awake = [name for name in names if not self.rests_until(name)]
        left = [self.per_hour - (used[name]["calls"] if name in used else 0) for name in awake]
        minutes = [row["minute_at"] for row in self.db.rows(explorers.MINUTES, now=now_ms)]
        gaps = [(a - b) / 1000 for a, b in zip([now_ms, *minutes], minutes, strict=False)]
        return Allowance(
            per_hour=self.per_hour if awake else 0,
            left=max([0, *left]),
            background=sum(row["swept"] for row in used.values()),
            since_s=gaps[0] if gaps else None,
            rhythm_s=min(gaps) if gaps else None,
        )

    def note_background(self, name: str, calls: int) -> None:
        """Notes that so many calls of this minute go to addresses that nobody waits for."""
        now_ms = to_ms(self.now())
        minute_ms = now_ms - now_ms % MINUTE_MS
        self.db.run(explorers.SPEND, root=name, minute_at=minute_ms, calls=0, swept=calls)

    def rests_until(self, name: str) -> datetime | None:
        """When an explorer that refused us may be asked again; None when it may be now."""
        now = self.now()
        for row in self.db.rows(explorers.RESTS):
            until = from_ms(row["rests_until_at"])
            # No rest is longer: the clock was wrong when a later time was written.
            if row["root"] == name and now < until <= now + LONGEST_REST:
                return until
        return None

    def refusals(self, name: str) -> int:
        """How often it has refused us since it last answered."""
        rows = {row["root"]: row["refusals"] for row in self.db.rows(explorers.RESTS)}
        return rows.get(name, 0)

    def refused(self, name: str, retry_after_s: int) -> None:
        """Lets an explorer rest that said "too many": longer each time, or as long as it asked.

        Jitter keeps shops that were refused together from coming back together.
        """
        before = self.refusals(name)
        doubled = FIRST_REST * 2 ** min(before - 1, 10) if before else timedelta()
        rest = max(doubled * random.uniform(0.8, 1.2), timedelta(seconds=retry_after_s))
        until = self.now() + min(LONGEST_REST, rest)
        self.db.run(explorers.REFUSED, root=name, refusals=1, rests_until_at=to_ms(until))

    def answered(self, name: str) -> None:
        """Forgets an explorer's refusals."""
        self.db.run(explorers.ANSWERED, root=name)


def _last_hour(now_ms: int) -> dict[str, int]:
    # A minute that began before the hour counts whole: calls of its last second are in the hour.
    # A clock that was ahead may have counted minutes of the next hour: they were spent just now.
    hour_ms = HOUR // timedelta(milliseconds=1)
    return {"after": now_ms - hour_ms - MINUTE_MS, "now": now_ms + hour_ms}
