"""The HTTP endpoint of one explorer, with its quota and time limits."""

import math
import threading
import time
from typing import TypeVar
from urllib.parse import urlsplit

from btcpay.chain.explorers.quota import Quota, endpoint_name
from btcpay.chain.sources import BudgetSpent, SourceExcluded
from btcpay.http import http_client
from btcpay.values.errors import BadStatus, FetchError
from btcpay.values.networks import Network
from btcpay.values.times import iso

# Time-out of a complete response. Busy public explorers take several seconds.
REQUEST_TIMEOUT_S = 20
TEXT = http_client.Response(bytes, max_bytes=4096)  # a height, a hash or a header
# A run stores at most 30,000 outputs and inputs, not counting the first hundred of each address.
FEW_COINS = 100
MOST_COINS = 30_000
REFUSALS = (403, 429)  # some explorers send 403 to a client that they have banned
MOST_CHAIN_S = 60.0  # maximum total time of a run's requests for headers and blocks
T = TypeVar("T")


class Endpoint:
    """The HTTP endpoint of one explorer. Thread-safe.

    `bytes_read` counts bytes of response bodies, also of incomplete ones.
    `exclusion_reason` says why the endpoint must not be used; "" if it may be used.
    `on_headers` is called with the HTTP headers of every response. `BlockSource` of
    btcpay/chain/sources.py explains the other fields.
    """

    def __init__(
        self,
        network: Network,
        url: str,
        session: http_client.Session,
        quota: Quota | None,
        on_headers: http_client.OnHeaders,
    ) -> None:
        self.network = network
        self.name = endpoint_name(url)
        self.host = str(urlsplit(url).hostname)
        self.calls = 0
        self.bytes_read = 0
        self.until_s = math.inf
        self.exclusion_reason = ""
        if quota:
            rests_until = quota.rests_until(self.name)
            if rests_until:
                self.exclusion_reason = (
                    f"asked to be left alone, and is until {iso(rests_until)}"
                )
        self._url = url
        self._session = session
        self._quota = quota
        self._on_headers = on_headers
        self._long_answers = threading.Lock()
        self._coins = 0
        self._chain_s = 0.0
        self._lock = threading.Lock()

    def fetch(
        self,
        path: str,
        response: http_client.Response[T],
        timeout_s: float = REQUEST_TIMEOUT_S,
        is_look: bool = False,
    ) -> T:
        """Sends a GET request, and returns the parsed response.

        `is_look` is True for a look-up of an address. The time of a look-up does not
        count towards MOST_CHAIN_S, since a restore makes hundreds of look-ups.

        Raises SourceExcluded if `exclusion_reason` is set, BudgetSpent if no calls or no
        time are left, and another FetchError if the request fails. Also raises the
        errors of `response.parse`.
        """
        if self.exclusion_reason:
            raise SourceExcluded(self.exclusion_reason)
        began_s = time.monotonic()
        left_s = self._seconds_left(is_look)
        self._count_call()
        try:
            return self._session.get(
                self._url + path,
                min(timeout_s, left_s),
                response,
                self._on_headers,
                self._long_answers,
                self._count_bytes,
            )
        except BadStatus as error:
            if error.status in REFUSALS:
                self._note_refusal(error)
            raise
        finally:
            if not is_look:
                with self._lock:
                    self._chain_s += time.monotonic() - began_s

    def _seconds_left(self, is_look: bool) -> float:
        """Returns the time that requests have left in this run.

        Requests other than look-ups of addresses (`is_look`) have at most MOST_CHAIN_S
        together. Raises BudgetSpent if no time is left.
        """
        left_s = self.until_s - time.monotonic()
        if not is_look:
            left_s = min(left_s, MOST_CHAIN_S - self._chain_s)
        if left_s <= 0:
            raise BudgetSpent("has used up its time in this run")
        return left_s

    def _count_call(self) -> None:
        """Counts a call before it is made. Raises BudgetSpent if the quota is used up."""
        if self._quota:
            self._quota.take(self.name)
        with self._lock:
            self.calls += 1

    def _note_refusal(self, error: BadStatus) -> None:
        """Excludes the explorer from this run, and stores the refusal.

        Refusals of several parallel requests are stored once.
        """
        with self._lock:
            earlier_reason = self.exclusion_reason
            self.exclusion_reason = "asked to be left alone"
        if self._quota and not earlier_reason:
            self._quota.note_refusal(self.name, error.retry_after_s)

    def _count_bytes(self, size: int) -> None:
        with self._lock:
            self.bytes_read += size

    def count_coins(self, coins: int) -> None:
        """Counts outputs and inputs of one address towards the limit of this run.

        The first FEW_COINS outputs and inputs of each address do not count. The limit
        bounds the number of rows that a run stores. Raises FetchError if the total of
        the run exceeds MOST_COINS.
        """
        with self._lock:
            self._coins += max(0, coins - FEW_COINS)
            if self._coins > MOST_COINS:
                raise FetchError(f"showed more than {MOST_COINS} outputs in one run")
