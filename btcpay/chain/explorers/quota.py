"""Calls left to each explorer in a rolling hour, counted in the database across runs."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from urllib.parse import urlsplit

from btcpay.chain.sources import Allowance, BudgetSpent
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import ExplorerUse
from storage.queries import meta, sources

HOUR = timedelta(hours=1)
MINUTE_MS = 60_000
OUT_AFTER_MIN = 61  # a minute that began before the hour counts whole
KEPT = timedelta(days=1)
# After the second refusal in a row, doubled at each further one; the first ends only its run.
FIRST_REST = timedelta(minutes=1)
LONGEST_REST = HOUR  # public explorers count by the hour


def sustainable_per_minute(left: int, used: Mapping[int, int]) -> float:
    """Calls that each of the next sixty minutes may have; `used`: calls by minutes ago."""
    back = list(accumulate(used.get(OUT_AFTER_MIN - minute, 0) for minute in range(60)))
    return min((left + back[minute]) / (minute + 1) for minute in range(60))


def endpoint_name(url: str) -> str:
    """An endpoint's host, port and path: what may be stored and shown."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True)
class Quota:
    """Counts calls to each explorer: `per_hour` at most, by all processes. Thread safe."""

    db: Database
    per_hour: int
    now: Callable[[], datetime]

    def take(self, name: str) -> None:
        """Counts one call to this explorer, before it is made. Raises Spent."""
        now_ms = to_ms(self.now())
        minute_ms = now_ms - now_ms % MINUTE_MS
        with self.db.write():
            meta.lock(self.db)
            used = sum(row.calls for row in self._used(now_ms) if row.root == name)
            if used >= self.per_hour:
                raise BudgetSpent(
                    f"was asked {used} times in this hour, its budget is spent"
                )
            self.db.run(sources.SPEND, root=name, minute_at=minute_ms, calls=1)

    def forget(self, answered: Iterable[str] = ()) -> None:
        """Drops old minutes, and the refusals of explorers that have `answered` in this run."""
        now = self.now()
        with self.db.write():
            for name in answered:
                self.db.run(sources.ANSWERED, root=name)
            self.db.run(sources.FORGET, before=to_ms(now - KEPT), now=to_ms(now + HOUR))

    def allowance(self, names: Sequence[str]) -> Allowance:
        """The calls that may be spent on these explorers; a resting one has none."""
        now_ms = to_ms(self.now())
        used: dict[str, Counter[int]] = defaultdict(Counter)
        for row in self._used(now_ms):
            # A clock that was ahead may have counted minutes that are to come.
            minutes_ago = max(0, now_ms - row.minute_at) // MINUTE_MS
            used[row.root][minutes_ago] += row.calls
        awake = [used[name] for name in names if not self.rests_until(name)]
        left = [max(0, self.per_hour - one.total()) for one in awake]
        return Allowance(
            per_hour=self.per_hour if awake else 0,
            left=max([0, *left]),
            minutely=max([0.0, *map(sustainable_per_minute, left, awake)]),
        )

    def rests_until(self, name: str) -> datetime | None:
        """The time until which a refusing explorer rests; None if it may be asked now."""
        now = self.now()
        row = self.db.row(sources.REFUSAL, root=name)
        until = from_ms(row.rests_until_at) if row else now
        # No rest is longer: if a later time was written, the clock was wrong.
        if now < until <= now + LONGEST_REST:
            return until
        return None

    def note_refusal(self, name: str, retry_after_s: int) -> None:
        """Lets an explorer that said "too many" rest, longer each time, or as long as it asked."""
        row = self.db.row(sources.REFUSAL, root=name)
        before = row.refusals if row else 0
        doubled = FIRST_REST * 2 ** min(before - 1, 10) if before else timedelta()
        # Jitter keeps shops that were refused together from coming back together.
        rest = max(doubled * random.uniform(0.8, 1.2), timedelta(seconds=retry_after_s))
        until = self.now() + min(LONGEST_REST, rest)
        self.db.run(sources.REFUSED, root=name, refusals=1, rests_until_at=to_ms(until))

    def _used(self, now_ms: int) -> list[ExplorerUse]:
        # The next hour's minutes, counted by a clock that was ahead, count as just spent.
        after = now_ms - OUT_AFTER_MIN * MINUTE_MS
        now = now_ms + HOUR // timedelta(milliseconds=1)
        return self.db.rows(sources.USED, after=after, now=now)
