"""Rate limits with rolling windows in Redis or Valkey, which several processes share.

Only this module needs the Redis driver, which is optional. It is imported only if the
settings name a Redis server.
"""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from redis import Redis, RedisError

from btcpay.web.rate_windows import Bucket, Window

T = TypeVar("T")
log = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 0.25  # a store on the same network responds in a millisecond
PAUSE_S = 5  # while the store hangs, one request per pause waits for a time-out
US_PER_S = 1_000_000

# The script counts a request. Redis runs one script at a time, so no other request
# interferes.
#
# - KEYS[1]: a list of the times of the counted requests, the oldest first. They are in
#   microseconds of the store's clock, which is the same for all processes.
# - KEYS[2]: only for a request with a mark: it exists if the mark was already counted.
# - ARGV: the limit, the period in seconds, and 1 if the request is to be counted.
#
# It returns 1 if the request is allowed, else 0; the number of counted requests; and the
# time of the oldest one, or now if there is none.
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
    """Rolling windows in Redis 5 or newer. Thread-safe.

    After a failed call this object sends nothing to Redis for PAUSE_S seconds. `store`
    is the redis:// URL. `monotonic_s` returns the time of a monotonic clock in seconds.
    """

    def __init__(self, store: str, monotonic_s: Callable[[], float]) -> None:
        # No retries, since the library would wait before each one.
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
        bucket: Bucket,
        key: str,
        is_counted: bool,
        mark: str = "",
    ) -> Window | None:
        """Returns the key's window after this request.

        The request is counted if `is_counted` is True and the limit allows it. Several
        requests with the same `mark`, unless it is empty, count as one request. Returns
        None if Redis is unavailable, or if a call failed less than PAUSE_S seconds ago.
        """
        keys = [f"blocktill:{bucket.name}:{key}"]
        if mark:
            keys.append(f"blocktill:{bucket.name}:{key}:{mark}")
        values = [bucket.limit, bucket.period_s, int(is_counted)]
        answer = self._try(lambda: self._script(keys, values))
        if answer is None:
            return None
        allowed, hits, oldest_us = answer
        return Window(
            bucket.limit,
            # More requests than the limit may be stored if the limit was higher before.
            remaining=max(0, bucket.limit - hits),
            exact_reset_s=oldest_us / US_PER_S + bucket.period_s,
            allowed=bool(allowed),
        )

    def is_reachable(self) -> bool:
        """True if Redis responds to a ping.

        Returns False without a ping if a call failed less than PAUSE_S seconds ago.
        """
        return self._try(self._redis.ping) is not None

    def _try(self, call: Callable[[], T]) -> T | None:
        """Calls Redis. Returns None if the call fails, or if none may be made now."""
        if self._away and not self._claim_try():
            return None
        try:
            answer = call()
        except RedisError as error:
            if self._note_state(is_away=True):
                # Only the error's type is logged: its text, like the URL, may contain a
                # password.
                log.error(
                    "BLOCKTILL_RATE_LIMIT_STORE cannot be asked (%s): each process counts"
                    " by itself",
                    type(error).__name__,
                )
            return None
        if self._away and self._note_state(is_away=False):
            log.warning(
                "BLOCKTILL_RATE_LIMIT_STORE answers again: processes share their windows"
            )
        return answer

    def _claim_try(self) -> bool:
        """Returns True if the pause after a failed call is over, and begins the next pause.

        So only one thread gets True after each pause.
        """
        with self._lock:
            now_s = self._monotonic_s()
            if now_s < self._not_before_s:
                return False
            self._not_before_s = now_s + PAUSE_S
            return True

    def _note_state(self, is_away: bool) -> bool:
        """Remembers whether Redis is unavailable. Returns True if this is a change.

        If Redis is unavailable, a pause without calls begins.
        """
        with self._lock:
            was_away = self._away
            self._away = is_away
            if is_away:
                self._not_before_s = self._monotonic_s() + PAUSE_S
        return is_away != was_away
