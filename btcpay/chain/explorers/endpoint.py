"""One explorer's endpoint: asked within its quota, paused while it fails, given up in the end."""

import math
import random
import threading
import time
from typing import TypeVar
from urllib.parse import urlsplit

from btcpay.chain.explorers.quota import Quota, QuotaSpent, name_of
from btcpay.http import http_client
from btcpay.values.errors import BadStatus, FetchError, Unreachable
from btcpay.values.networks import Network
from btcpay.values.times import iso

REQUEST_TIMEOUT_S = 20  # for a whole answer; public explorers take several seconds when busy
TEXT = http_client.Response(bytes, max_bytes=4096)  # a height, a hash or a header
# A hundred outputs and inputs of each address are free; one run holds no more than 30,000 others.
FEW_PARTS, MOST_PARTS = 100, 30_000
PATIENCE = 6  # failures in a row, then it is not asked again in this run
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 8.0  # doubled at each failure in a row
TOO_MANY = (403, 429)  # some answer "forbidden" to whom they have banned
MOST_CHAIN_S = 60.0  # of a run, for all that it is asked of the chain: headers and blocks
T = TypeVar("T")


class TimeSpent(FetchError):
    """This explorer has had its time of this run."""


class Endpoint:
    """Where one explorer is asked, and how it has done in this run. Thread safe.

    `host` is what may be shown; `calls` counts requests, `bytes_read` the bodies that came, whole
    or not, `failures` questions that were not answered as they should be. `given_up`: why it is
    asked no more in this run. `on_headers` gets the headers of every answer.
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
        self.calls = self.bytes_read = self.failures = 0
        self.is_fresh = False
        self._url, self._session, self._quota, self._on_headers = url, session, quota, on_headers
        self._turn = http_client.Turn()
        self._parts = 0
        self._chain_s = 0.0
        self.until_s = math.inf
        self._lock = threading.Lock()
        self._failures = 0
        self._not_before_s = 0.0
        self.is_spent = False
        self.given_up = ""
        self._had_refused = quota is not None and quota.refusals(self.name) > 0
        if quota and (until := quota.rests_until(self.name)):
            self.given_up = f"asked to be left alone, and is until {iso(until)}"

    def read(
        self,
        path: str,
        response: http_client.Response[T],
        timeout_s: float = REQUEST_TIMEOUT_S,
        is_look: bool = False,
    ) -> T:
        """What the answer says. Raises FetchError, and what `response.parse` raises.

        `is_look`: it is asked of the mempool, so that slow headers and blocks keep no time from it.
        """
        if self.given_up:
            raise FetchError(self.given_up)
        began_s = time.monotonic()
        left_s = min(self.until_s - began_s, math.inf if is_look else MOST_CHAIN_S - self._chain_s)
        if left_s <= 0:
            raise TimeSpent("has had its time of this run")
        if self._quota:
            self._quota.take(self.name)
        with self._lock:
            self.calls += 1
        url, timeout_s = self._url + path, min(timeout_s, left_s)
        try:
            return self._session.get(
                url, timeout_s, response, self._on_headers, self._turn, self._count
            )
        finally:
            with self._lock:
                self._chain_s += 0 if is_look else time.monotonic() - began_s

    def _count(self, size: int) -> None:
        with self._lock:
            self.bytes_read += size

    def weigh(self, parts: int) -> None:
        """Counts an address's outputs and inputs: a run stores those of many. Raises FetchError."""
        with self._lock:
            self._parts += max(0, parts - FEW_PARTS)
            if self._parts > MOST_PARTS:
                raise FetchError(f"showed more than {MOST_PARTS} outputs in one run")

    def pause_s(self) -> float:
        return max(0.0, self._not_before_s - time.monotonic())

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def close(self) -> None:
        """At the end of a run: when it refused nothing in it, earlier refusals are forgotten."""
        if self._quota and self._had_refused and self.calls and not self.given_up:
            self._quota.answered(self.name)
        self.until_s = 0.0  # nor does a question go on that nobody waits for any more

    def failed(self, error: Exception) -> bool:
        if isinstance(error, QuotaSpent):
            self.is_spent, self.given_up = True, str(error)
            return False
        if isinstance(error, TimeSpent):
            return False
        with self._lock:
            self.failures += 1
        is_down = isinstance(error, BadStatus) and error.status >= 500
        if isinstance(error, BadStatus) and error.status in TOO_MANY:
            with self._lock:
                known, self.given_up = self.given_up, "asked to be left alone"
            if self._quota and not known:
                self._quota.refused(self.name, error.retry_after_s)
        elif is_down or isinstance(error, Unreachable):
            self._back_off()
            return not self.given_up
        return False

    def _back_off(self) -> None:
        """Doubles the pause, but once for all calls that were under way when it began."""
        with self._lock:
            if self.pause_s():
                return
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**self._failures)
            self._not_before_s = time.monotonic() + pause_s * random.uniform(0.5, 1.5)
            self._failures += 1
            if self._failures >= PATIENCE:
                self.given_up = f"failed {PATIENCE} times in a row"
