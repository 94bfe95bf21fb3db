"""Rolling windows that several processes share, in Redis or Valkey; left alone while it is away."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter

T = TypeVar("T")
log = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 0.25  # a counter on the same network answers in a millisecond
PAUSE_S = 5  # while the store hangs, one request in this time waits for a time-out
TOLD_EVERY_S = 60


class StoreAway(Exception):
    """The store was not asked, or did not answer."""


class SharedWindows:
    """Asks a store of the `limits` library, and pauses after each failure. Thread safe.

    `store` is a redis:// URL; `monotonic_s` answers seconds of a clock that never steps.
    """

    def __init__(self, store: str, monotonic_s: Callable[[], float]) -> None:
        # No retries: the library would wait between two.
        storage = storage_from_string(
            store,
            wrap_exceptions=True,
            retry=None,  # type: ignore[arg-type] # handed on to redis
            socket_timeout=ANSWER_TIMEOUT_S,
            socket_connect_timeout=ANSWER_TIMEOUT_S,
        )
        self._windows = MovingWindowRateLimiter(storage)
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._away = False
        self._not_before_s = self._tell_after_s = monotonic_s()

    def ask(self, question: Callable[[MovingWindowRateLimiter], T]) -> T:
        """What `question` makes of the windows. Raises StoreAway, at once during a pause."""
        if self._away and not self._may_try():
            raise StoreAway
        try:
            answer = question(self._windows)
        except StorageError as error:
            self._lost(error)
            raise StoreAway from error
        if self._away:
            self._found()
        return answer

    def is_reachable(self) -> bool:
        """Whether the store answers; False during a pause. Waits no longer than `ask`."""
        try:
            self.ask(lambda windows: windows.storage.get("readyz"))
        except StoreAway:
            return False
        return True

    def _may_try(self) -> bool:
        """Whether this thread may ask again: one thread may, once in a pause."""
        with self._lock:
            now_s = self._monotonic_s()
            if now_s < self._not_before_s:
                return False
            self._not_before_s = now_s + PAUSE_S
            return True

    def _lost(self, error: Exception) -> None:
        with self._lock:
            now_s = self._monotonic_s()
            self._away, self._not_before_s = True, now_s + PAUSE_S
            if now_s < self._tell_after_s:
                return
            self._tell_after_s = now_s + TOLD_EVERY_S
        # Only the kind of error: its text, like the URL, may hold a password.
        log.error(
            "BTCPAY_RATE_LIMIT_STORE cannot be asked (%s): each process counts requests by itself",
            type(error.__cause__).__name__,
        )

    def _found(self) -> None:
        with self._lock:
            was_away, self._away = self._away, False
        if was_away:
            log.warning("BTCPAY_RATE_LIMIT_STORE answers again: processes share their windows")
