"""One explorer's endpoint, asked within its quota and its time, and never after a refusal."""

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

REQUEST_TIMEOUT_S = (
    20  # for a whole answer; public explorers take several seconds when busy
)
TEXT = http_client.Response(bytes, max_bytes=4096)  # a height, a hash or a header
# A hundred outputs and inputs of each address are free; one run holds no more than 30,000 others.
FEW_PARTS = 100
MOST_PARTS = 30_000
TOO_MANY = (403, 429)  # some answer "forbidden" to a client that they have banned
MOST_CHAIN_S = 60.0  # of a run, for all questions about the chain: headers and blocks
T = TypeVar("T")


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
        self.network = network
        self.name = endpoint_name(url)
        self.host = str(urlsplit(url).hostname)
        self.calls = self.bytes_read = 0
        self.until_s = math.inf
        until = quota and quota.rests_until(self.name)
        self.exclusion_reason = (
            f"asked to be left alone, and is until {iso(until)}" if until else ""
        )
        self._url = url
        self._session = session
        self._quota = quota
        self._on_headers = on_headers
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
        if self.exclusion_reason:
            raise SourceExcluded(self.exclusion_reason)
        began_s = time.monotonic()
        left_s = min(
            self.until_s - began_s,
            math.inf if is_look else MOST_CHAIN_S - self._chain_s,
        )
        if left_s <= 0:
            raise BudgetSpent("has used up its time in this run")
        if self._quota:
            self._quota.take(self.name)
        with self._lock:
            self.calls += 1
        url = self._url + path
        timeout_s = min(timeout_s, left_s)
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
            known = self.exclusion_reason
            self.exclusion_reason = "asked to be left alone"
        if self._quota and not known:
            self._quota.note_refusal(self.name, error.retry_after_s)

    def _count(self, size: int) -> None:
        with self._lock:
            self.bytes_read += size

    def weigh(self, parts: int) -> None:
        """Counts an address's outputs and inputs: a run stores those of many. Raises FetchError."""
        with self._lock:
            self._parts += max(0, parts - FEW_PARTS)
            if self._parts > MOST_PARTS:
                raise FetchError(f"showed more than {MOST_PARTS} outputs in one run")
