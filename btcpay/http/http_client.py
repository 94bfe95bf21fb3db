"""HTTP calls with limits on time and size, for explorers, price sources and webhooks."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from typing import Any, Generic, TypeVar

Hear = Callable[[Mapping[str, str]], None]
Count = Callable[[int], None]
T = TypeVar("T")


class FetchError(Exception):
    """There was no answer, or it is not what was asked for."""


class Unreachable(FetchError):
    """No complete answer came: no connection, a time-out, or a body that broke off."""


class BadStatus(FetchError):
    """A status other than 200; `retry_after_s` is what the server asked for, 0 if nothing."""

    def __init__(self, status: int, retry_after: str = "") -> None:
        super().__init__(f"answered HTTP {status}")
        self.status = status
        # RFC 9110 also allows a date here, but no server's clock is believed.
        self.retry_after_s = int(retry_after) if re.fullmatch("[0-9]{1,9}", retry_after) else 0


@dataclass(frozen=True)
class Wanted(Generic[T]):
    """How much of an answer is taken in, and what is made of it.

    `max_bytes` may come. With `max_kept`, values that are longer than any that is looked for
    (scripts, witnesses and their texts) are cut as they come, and so many bytes may be left.
    """

    make: Callable[[bytes], T]
    max_bytes: int
    max_kept: int | None = None


class Turn:
    """Lets long answers be held one at a time, from their first bytes until they are parsed.

    So the memory of a run does not grow with the number of calls that it makes at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, until_s: float) -> Iterator[None]:
        """Raises Unreachable when the turn has not come by `until_s` of `time.monotonic()`."""
        if not self._lock.acquire(timeout=max(0.0, until_s - time.monotonic())):
            raise Unreachable("answered at length while others did the same")
        try:
            yield
        finally:
            self._lock.release()


class Session:
    """Asks hosts, with up to `connections` connections kept open to each. Thread safe.

    What is not on this machine or in its network is asked through the `proxy`, if there is one.
    What calls is loaded when it first does (`http_calls`): that takes as long as all the rest of a
    check that has nobody to ask.
    """

    def __init__(self, connections: int = 1, proxy: str = "", takes_cookies: bool = True) -> None:
        self._how = connections, proxy, takes_cookies
        self._caller: Any = None
        self._loading = threading.Lock()

    def get(
        self,
        url: str,
        timeout_s: float,
        wanted: Wanted[T],
        hear: Hear = lambda _headers: None,
        turn: Turn | None = None,
        count: Count = lambda _size: None,
    ) -> T:
        """What `wanted` makes of the body of a 200 answer that is complete within `timeout_s`.

        `hear` gets the headers of any answer, `count` the size of each piece of its body. A long
        answer waits for its `turn`. Raises BadStatus, Unreachable, FetchError for an oversized or
        compressed body, and whatever `wanted.make` raises. The message names the cause, but no part
        of the URL, which may hold secrets.
        """
        made: T = self._loaded().get(url, timeout_s, wanted, hear, turn, count)
        return made

    def post(
        self, url: str, timeout_s: float, body: bytes, headers: Mapping[str, str], kept_bytes: int
    ) -> tuple[int, bytes]:
        """The status of the answer and its first bytes, at most `kept_bytes`; no more is read.

        The head is complete within `timeout_s`. Redirects are not followed. Raises Unreachable,
        whose message names no part of the URL.
        """
        told: tuple[int, bytes] = self._loaded().post(url, timeout_s, body, headers, kept_bytes)
        return told

    def _loaded(self) -> Any:
        with self._loading:
            if self._caller is None:
                self._caller = import_module("btcpay.http.http_calls").Caller(*self._how)
            return self._caller


def parse_json(body: bytes) -> Any:
    """The JSON value, with exact numbers. Raises FetchError when the body is no JSON."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise FetchError("answered no JSON") from error
