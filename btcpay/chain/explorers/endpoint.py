"""One explorer's endpoint, asked within its time, never after a refusal, and within its quota.

The calls left to each explorer in a rolling hour are counted in the database, across runs.
"""

import math
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TypeVar
from urllib.parse import urlsplit

from btcpay.chain.sources import Allowance, LeftAlone, Spent
from btcpay.http import http_client
from btcpay.values.errors import BadStatus, FetchError
from btcpay.values.networks import Network
from btcpay.values.times import from_ms, iso, to_ms
from storage.database import Database, Values
from storage.queries import meta, sources

T = TypeVar("T")
HOUR = timedelta(hours=1)
MINUTE_MS = 60_000
OUT_AFTER_MIN = 61  # a minute that began before the hour counts whole
KEPT = timedelta(days=1)
# After the second refusal in a row, doubled at each further one; the first ends only its run.
FIRST_REST = timedelta(minutes=1)
LONGEST_REST = HOUR  # public explorers count by the hour


def lasting(left: int, used: Mapping[int, int]) -> float:
    """Calls that each of the next sixty minutes may have; `used`: calls by minutes ago."""
    back = list(accumulate(used.get(OUT_AFTER_MIN - minute, 0) for minute in range(60)))
    return min((left + back[minute]) / (minute + 1) for minute in range(60))


def name_of(url: str) -> str:
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
            rows = self.db.rows(sources.USED, **_last_hour(now_ms))
            used = sum(row.calls for row in rows if row.root == name)
            if used >= self.per_hour:
                raise Spent(f"was asked {used} times in this hour, its budget is spent")
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
        for row in self.db.rows(sources.USED, **_last_hour(now_ms)):
            # A clock that was ahead may have counted minutes that are to come.
            minutes_ago = max(0, now_ms - row.minute_at) // MINUTE_MS
            used[row.root][minutes_ago] += row.calls
        awake = [used[name] for name in names if not self.rests_until(name)]
        left = [max(0, self.per_hour - one.total()) for one in awake]
        return Allowance(
            per_hour=self.per_hour if awake else 0,
            left=max([0, *left]),
            minutely=max([0.0, *map(lasting, left, awake)]),
        )

    def rests_until(self, name: str) -> datetime | None:
        """The time until which a refusing explorer rests; None if it may be asked now."""
        now, row = self.now(), self.db.row(sources.REFUSAL, root=name)
        until = from_ms(row.rests_until_at) if row else now
        # No rest is longer: if a later time was written, the clock was wrong.
        return until if now < until <= now + LONGEST_REST else None

    def refused(self, name: str, retry_after_s: int) -> None:
        """Lets an explorer that said "too many" rest, longer each time, or as long as it asked."""
        row = self.db.row(sources.REFUSAL, root=name)
        before = row.refusals if row else 0
        doubled = FIRST_REST * 2 ** min(before - 1, 10) if before else timedelta()
        # Jitter keeps shops that were refused together from coming back together.
        rest = max(doubled * random.uniform(0.8, 1.2), timedelta(seconds=retry_after_s))
        until = self.now() + min(LONGEST_REST, rest)
        self.db.run(sources.REFUSED, root=name, refusals=1, rests_until_at=to_ms(until))


def _last_hour(now_ms: int) -> Values:
    # A clock that was ahead may have counted minutes of the next hour; they count as just spent.
    hour_ms = HOUR // timedelta(milliseconds=1)
    return {"after": now_ms - OUT_AFTER_MIN * MINUTE_MS, "now": now_ms + hour_ms}


REQUEST_TIMEOUT_S = 20  # for a whole answer; public explorers take several seconds when busy
TEXT = http_client.Response(bytes, max_bytes=4096)  # a height, a hash or a header
# A hundred outputs and inputs of each address are free; one run holds no more than 30,000 others.
FEW_PARTS, MOST_PARTS = 100, 30_000
TOO_MANY = (403, 429)  # some answer "forbidden" to a client that they have banned
MOST_CHAIN_S = 60.0  # of a run, for all questions about the chain: headers and blocks


class Endpoint:
    """One explorer's address for questions. Thread safe.

    `bytes_read` counts bodies, whole or not; `left_alone` is the reason not to ask, or "".
    `on_headers` gets the headers of every answer. For the rest see BlockSource.
    """

    def __init__(
        self,
        network: Network,
        url: str,
        session: http_client.Session,
        quota: Quota | None,
        on_headers: http_client.OnHeaders,
    ) -> None:
        self.network, self.name = network, name_of(url)
        self.host = str(urlsplit(url).hostname)
        self.calls = self.bytes_read = 0
        self.until_s = math.inf
        until = quota and quota.rests_until(self.name)
        self.left_alone = f"asked to be left alone, and is until {iso(until)}" if until else ""
        self._url, self._session, self._quota, self._on_headers = url, session, quota, on_headers
        self._turn = threading.Lock()
        self._parts = 0
        self._chain_s = 0.0
        self._lock = threading.Lock()

    def read(
        self,
        path: str,
        response: http_client.Response[T],
        timeout_s: float = REQUEST_TIMEOUT_S,
        is_look: bool = False,
    ) -> T:
        """The answer, parsed. Raises FetchError, and the errors of `response.parse`.

        `is_look`: the question is about an address, and uses up no time of headers and blocks; a
        restore asks about hundreds.
        """
        if self.left_alone:
            raise LeftAlone(self.left_alone)
        began_s = time.monotonic()
        left_s = min(self.until_s - began_s, math.inf if is_look else MOST_CHAIN_S - self._chain_s)
        if left_s <= 0:
            raise Spent("has used up its time in this run")
        if self._quota:
            self._quota.take(self.name)
        with self._lock:
            self.calls += 1
        url, timeout_s = self._url + path, min(timeout_s, left_s)
        try:
            return self._session.get(
                url, timeout_s, response, self._on_headers, self._turn, self._count
            )
        except BadStatus as error:
            if error.status in TOO_MANY:
                self._refused(error)
            raise
        finally:
            with self._lock:
                self._chain_s += 0 if is_look else time.monotonic() - began_s

    def _refused(self, error: BadStatus) -> None:
        """Notes a refusal, once for all calls that were under way."""
        with self._lock:
            known, self.left_alone = self.left_alone, "asked to be left alone"
        if self._quota and not known:
            self._quota.refused(self.name, error.retry_after_s)

    def _count(self, size: int) -> None:
        with self._lock:
            self.bytes_read += size

    def weigh(self, parts: int) -> None:
        """Counts an address's outputs and inputs: a run stores those of many. Raises FetchError."""
        with self._lock:
            self._parts += max(0, parts - FEW_PARTS)
            if self._parts > MOST_PARTS:
                raise FetchError(f"showed more than {MOST_PARTS} outputs in one run")
