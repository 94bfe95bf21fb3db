"""The calls that each explorer may still get in a rolling hour, counted across runs."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from btcpay.chain.sources import Allowance, BudgetSpent
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import ExplorerUse
from storage.queries import meta, sources

HOUR = timedelta(hours=1)
MINUTE_MS = 60_000
OUT_AFTER_MIN = 61  # a minute that began before the hour counts whole
KEPT_FOR = timedelta(days=1)
# A refusal ends the explorer's use in that run. After the second in a row it rests so long, and
# after each further one twice as long.
FIRST_REST = timedelta(minutes=1)
LONGEST_REST = HOUR  # public explorers count by the hour


def sustainable_per_minute(left: int, used: Mapping[int, int]) -> float:
    """Calls that each of the next sixty minutes may have; `used`: calls by minutes ago."""
    rates = []
    available = left
    for minute in range(60):
        # These calls leave the hour in that minute, and may be spent again.
        available += used.get(OUT_AFTER_MIN - minute, 0)
        rates.append(available / (minute + 1))
    return min(rates)


def endpoint_name(url: str) -> str:
    """An endpoint's host, port and path, which may be stored and shown."""
    parts = urlsplit(url)
    _, _, host_and_port = parts.netloc.rpartition("@")
    return f"{host_and_port}{parts.path}"


@dataclass(frozen=True)
class Quota:
    """Counts all processes' calls to each explorer, `per_hour` at most. Thread-safe."""

    db: Database
    per_hour: int
    now: Callable[[], datetime]

    def take(self, name: str) -> None:
        """Counts one call to this explorer, before it is made. Raises BudgetSpent."""
        now_ms = to_ms(self.now())
        minute_ms = now_ms - now_ms % MINUTE_MS
        with self.db.write():
            meta.lock(self.db)
            used = sum(
                row.calls for row in self._recent_calls(now_ms) if row.root == name
            )
            if used >= self.per_hour:
                raise BudgetSpent(
                    f"was asked {used} times in this hour, its budget is spent"
                )
            self.db.run(sources.SPEND, root=name, minute_ms=minute_ms, calls=1)

    def forget(self, answered: Iterable[str] = ()) -> None:
        """Deletes old minutes, and the refusals of explorers that have `answered` in this run."""
        now = self.now()
        with self.db.write():
            for name in answered:
                self.db.run(sources.ANSWERED, root=name)
            self.db.run(
                sources.FORGET, before=to_ms(now - KEPT_FOR), now=to_ms(now + HOUR)
            )

    def allowance(self, names: Sequence[str]) -> Allowance:
        """The calls that may be spent on these explorers. An explorer that rests has none."""
        now_ms = to_ms(self.now())
        used: dict[str, Counter[int]] = defaultdict(Counter)
        for row in self._recent_calls(now_ms):
            # A clock that was ahead may have counted minutes that are to come.
            minutes_ago = max(0, now_ms - row.minute_ms) // MINUTE_MS
            used[row.root][minutes_ago] += row.calls
        best = Allowance(per_hour=0, left=0, minutely=0.0)
        for name in names:
            if self.rests_until(name):
                continue
            left = max(0, self.per_hour - used[name].total())
            minutely = sustainable_per_minute(left, used[name])
            best = Allowance(
                self.per_hour, max(best.left, left), max(best.minutely, minutely)
            )
        return best

    def rests_until(self, name: str) -> datetime | None:
        """When an explorer that refused may be asked again; None if it may be asked now."""
        row = self.db.row(sources.REFUSAL, root=name)
        if not row:
            return None
        now = self.now()
        until = from_ms(row.rests_until_ms)
        # No rest is longer: if a later time was written, the clock was wrong.
        if now < until <= now + LONGEST_REST:
            return until
        return None

    def note_refusal(self, name: str, retry_after_s: int) -> None:
        """Lets an explorer rest that answered "too many".

        It rests longer each time, or as long as it asked for.
        """
        rest = timedelta()
        row = self.db.row(sources.REFUSAL, root=name)
        if row and row.refusals:
            doublings = min(row.refusals - 1, 10)
            rest = FIRST_REST * 2**doublings
        # Jitter keeps shops that were refused together from coming back together.
        rest = rest * random.uniform(0.8, 1.2)
        rest = max(rest, timedelta(seconds=retry_after_s))
        until = self.now() + min(LONGEST_REST, rest)
        self.db.run(sources.REFUSED, root=name, refusals=1, rests_until_ms=to_ms(until))

    def _recent_calls(self, now_ms: int) -> list[ExplorerUse]:
        """The calls of the past hour by minute and explorer.

        If a clock that was ahead counted calls in the next hour, they count too.
        """
        after_ms = now_ms - OUT_AFTER_MIN * MINUTE_MS
        before_ms = now_ms + HOUR // timedelta(milliseconds=1)
        return self.db.rows(sources.USED, after=after_ms, now=before_ms)
