"""One Esplora root: asked within its budget, left alone while it fails, given up in the end."""

import logging
import random
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests

from btcpay import http_client
from btcpay.explorers.quota import Budget, BudgetSpent, TooDear, name_of
from btcpay.times import iso

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 20  # for a whole answer; public explorers take several seconds when busy
# A height, a hash, a header, the branch of the largest tree; histories and transactions say more.
TEXT = http_client.Wanted(bytes, max_bytes=4096)
# Of one run: beyond a hundred outputs and inputs an address, what an explorer may tell of them.
FEW_PARTS, MOST_PARTS = 100, 30_000
MOST_KEPT_BYTES = 8_000_000  # of what a hash names: some 3000 blocks, or eight absurd coinbases
PATIENCE = 6  # failures in a row, then it is not asked again in this run
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 8.0  # doubled at each failure in a row
TOO_MANY = (403, 429)  # some answer "forbidden" to whom they have banned
T = TypeVar("T")


class Root:
    """Called with a path it returns a short answer's body. Raises FetchError. Thread safe.

    `calls` counts requests, `failures` questions that were not answered as they should be; `host`
    is what may be shown. `hear` gets the headers of every answer; roots that are asked at once
    share a `turn` for the long ones.
    """

    def __init__(
        self,
        url: str,
        session: requests.Session,
        budget: Budget | None,
        hear: http_client.Hear,
        turn: http_client.Turn | None = None,
    ) -> None:
        self.name = name_of(url)
        self.host = str(urlsplit(url).hostname)
        self.calls = self.failures = 0
        self.is_fresh = False
        self._url, self._session, self._budget, self._hear = url, session, budget, hear
        self._turn = turn or http_client.Turn()
        self._parts = 0
        self._lock = threading.Lock()
        self._failures = 0
        self._not_before_s = 0.0
        self.is_spent = False
        self.given_up = ""
        self._had_refused = budget is not None and budget.refusals(self.name) > 0
        self._kept: dict[str, Any] = {}
        self._kept_bytes = 0
        self._keeping: dict[str, threading.Lock] = {}
        if budget and (until := budget.rests_until(self.name)):
            self.given_up = f"asked to be left alone, and is until {iso(until)}"

    def __call__(self, path: str) -> bytes:
        return self.read(path, TEXT)

    def read(self, path: str, wanted: http_client.Wanted[T]) -> T:
        """What is made of the answer. Raises FetchError, and what making it raises."""
        if self.given_up:
            raise http_client.FetchError(self.given_up)
        if self._budget:
            self._budget.take(self.name)
        with self._lock:
            self.calls += 1
        url = self._url + path
        return http_client.get(
            self._session, url, REQUEST_TIMEOUT_S, wanted, self._hear, self._turn
        )

    def keep(self, path: str, wanted: http_client.Wanted[Any] = TEXT) -> Any:
        """Like `read`, once in a run: for what a hash names, which cannot change."""
        with self._keeping.setdefault(path, threading.Lock()):
            found = self._kept.get(path)
            if found is None:
                found = self.read(path, wanted)
                with self._lock:
                    self._make_room(len(found) if isinstance(found, bytes) else TEXT.max_bytes)
                    self._kept[path] = found
            return found

    def _make_room(self, size: int) -> None:
        """What is forgotten is only asked for again."""
        self._kept_bytes += size
        if self._kept_bytes > MOST_KEPT_BYTES:
            self._kept.clear()
            self._kept_bytes = size

    def weigh(self, parts: int, before: int) -> None:
        """Counts outputs and inputs of an address of which `before` were told. Raises FetchError.

        What many addresses have is held at once, and written down: an explorer that tells
        thousands of each is believed no further in this run.
        """
        beyond = max(0, before + parts - FEW_PARTS) - max(0, before - FEW_PARTS)
        with self._lock:
            self._parts += beyond
            if self._parts > MOST_PARTS:
                raise http_client.FetchError(f"told of more than {MOST_PARTS} outputs in one run")

    def claim(self, calls: int) -> AbstractContextManager[None]:
        """Sets so many calls aside. Raises TooDear."""
        return self._budget.claim(self.name, calls) if self._budget else nullcontext()

    @property
    def is_usable(self) -> bool:
        """Whether it may still be asked in this run; if not, `given_up` says why."""
        return not self.given_up

    def pause_s(self) -> float:
        """For how long it should be left alone after its last failure."""
        return max(0.0, self._not_before_s - time.monotonic())

    def succeeded(self) -> None:
        """It has answered a whole question."""
        with self._lock:
            self._failures = 0

    def close(self) -> None:
        """At the end of a run: one without a refusal forgets those before it."""
        if self._budget and self._had_refused and self.calls and not self.given_up:
            self._budget.answered(self.name)

    def failed(self, error: Exception) -> bool:
        """Takes note of a failure; whether the same question is worth asking here once more."""
        if isinstance(error, TooDear):
            return False
        if isinstance(error, BudgetSpent):
            self.is_spent, self.given_up = True, str(error)
            return False
        with self._lock:
            self.failures += 1
        if isinstance(error, http_client.BadStatus) and error.status in TOO_MANY:
            self._refused(error.retry_after_s)
        elif isinstance(error, http_client.Unreachable) or _is_down(error):
            self._back_off()
            return self.is_usable
        return False

    def _back_off(self) -> None:
        """Doubles the pause; calls that were under way when it began fail for the same reason."""
        with self._lock:
            if self.pause_s():
                return
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**self._failures)
            self._not_before_s = time.monotonic() + pause_s * random.uniform(0.5, 1.5)
            self._failures += 1
            if self._failures >= PATIENCE:
                self.given_up = f"failed {PATIENCE} times in a row"

    def _refused(self, retry_after_s: int) -> None:
        with self._lock:
            known, self.given_up = self.given_up, "asked to be left alone"
        if self._budget and not known:
            self._budget.refused(self.name, retry_after_s)


def _is_down(error: Exception) -> bool:
    return isinstance(error, http_client.BadStatus) and error.status >= 500
