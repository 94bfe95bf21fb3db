"""Rolling windows in Redis or Valkey, which several processes share.

This module alone needs the extra `redis`. It is imported only if a setting asks for it.
"""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from redis import Redis, RedisError

T = TypeVar("T")
log = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 0.25  # a counter on the same network answers in a millisecond
PAUSE_S = 5  # while the store hangs, one request in this time waits for a time-out

# Keeps the times of a window's requests, the oldest first, in microseconds of the store's clock,
# which is the same for all processes. Redis runs one script at a time: no other request comes
# between.
_HIT = """
local limit, period, counts = tonumber(ARGV[1]), ARGV[2] * 1000000, ARGV[3] == '1'
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local oldest = tonumber(redis.call('LINDEX', KEYS[1], 0))
while oldest and (oldest < now - period or oldest > now) do
  redis.call('LPOP', KEYS[1])
  oldest = tonumber(redis.call('LINDEX', KEYS[1], 0))
end
local hits = redis.call('LLEN', KEYS[1])
local again = KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1
local fits = again or hits < limit
if fits and counts and not again then
  if KEYS[2] then
    redis.call('SET', KEYS[2], '1', 'EX', ARGV[2])
  end
  hits = redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
  redis.call('EXPIRE', KEYS[1], ARGV[2] + 1)
end
return {fits and 1 or 0, hits, oldest or now}
"""


class SharedWindows:
    """Asks Redis 5 or newer, and pauses after each failure. Thread safe.

    `store`: a redis:// URL. `monotonic_s`: the seconds of a clock that never steps.
    """

    def __init__(self, store: str, monotonic_s: Callable[[], float]) -> None:
        # No retries: the library would wait before each.
        self._redis = Redis.from_url(
            store,
            retry=None,
            socket_timeout=ANSWER_TIMEOUT_S,
            socket_connect_timeout=ANSWER_TIMEOUT_S,
        )
        self._script = self._redis.register_script(_HIT)
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._away = False
        self._not_before_s = monotonic_s()

    def hit(
        self,
        name: str,
        limit: int,
        period_s: int,
        key: str,
        is_counted: bool,
        mark: str = "",
    ) -> tuple[int, int, float, bool] | None:
        """The fields of this key's `Window`, with the request in it if it `is_counted` and fits.

        Requests with the same `mark` are one. None while the store is away; during a pause this
        takes no time.
        """
        keys = [f"blocktill:{name}:{key}"]
        if mark:
            keys.append(f"blocktill:{name}:{key}:{mark}")
        values = [limit, period_s, int(is_counted)]
        answer = self._try(lambda: self._script(keys, values))
        if answer is None:
            return None
        fits, hits, oldest_us = answer
        # More may be stored than fit, from a time with a higher limit.
        remaining = max(0, limit - hits)
        return limit, remaining, oldest_us / 1_000_000 + period_s, bool(fits)

    def is_reachable(self) -> bool:
        """True if the store answers; False during a pause. It waits no longer than `hit`."""
        return self._try(self._redis.ping) is not None

    def _try(self, question: Callable[[], T]) -> T | None:
        if self._away and not self._may_try():
            return None
        try:
            answer = question()
        except RedisError as error:
            if self._is_news(away=True):
                # Only the kind of error: its text, like the URL, may hold a password.
                log.error(
                    "BLOCKTILL_RATE_LIMIT_STORE cannot be asked (%s): each process counts"
                    " by itself",
                    type(error).__name__,
                )
            return None
        if self._away and self._is_news(away=False):
            log.warning(
                "BLOCKTILL_RATE_LIMIT_STORE answers again: processes share their windows"
            )
        return answer

    def _may_try(self) -> bool:
        """True if this thread may ask again: one thread may, once in a pause."""
        with self._lock:
            now_s = self._monotonic_s()
            if now_s < self._not_before_s:
                return False
            self._not_before_s = now_s + PAUSE_S
            return True

    def _is_news(self, away: bool) -> bool:
        """Notes whether the store is away, and begins a pause if it is; False if that was known."""
        with self._lock:
            was_away = self._away
            self._away = away
            if away:
                self._not_before_s = self._monotonic_s() + PAUSE_S
        return away != was_away
