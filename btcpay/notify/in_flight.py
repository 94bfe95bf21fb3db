"""The attempts under way in a run of the outbox, and the limits on their number."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

from btcpay.http.deadline import run_in_thread
from btcpay.notify.delivery_queue import DeliveryQueue
from btcpay.notify.outcome import Answer
from storage.models import Receiver
from storage.queries import deliveries

MOST_AT_ONCE = 24  # attempts
MOST_FAILING = 8  # attempts of queues that are failing


class Attempt(NamedTuple):
    """One attempt to make a delivery to a receiver."""

    queue: DeliveryQueue
    receiver: Receiver
    row: deliveries.Due


class InFlight:
    """The attempts under way.

    `ends_s` returns when an attempt of a queue is abandoned, as a monotonic time in
    seconds.
    """

    def __init__(self, ends_s: Callable[[DeliveryQueue], float]) -> None:
        self._ends_s = ends_s
        self._attempts: dict[Future[Answer], Attempt] = {}

    def __bool__(self) -> bool:
        return bool(self._attempts)

    @property
    def is_full(self) -> bool:
        return len(self._attempts) >= MOST_AT_ONCE

    def begin(self, send: Callable[[], Answer], attempt: Attempt) -> None:
        self._attempts[run_in_thread(send)] = attempt

    def end(self, future: Future[Answer]) -> Attempt:
        """Removes the attempt of this future and returns it."""
        return self._attempts.pop(future)

    def may_begin(self, queue: DeliveryQueue) -> bool:
        """True if this queue may begin one more attempt now."""
        if not queue.most_attempts:
            return False
        busy = [attempt.queue for attempt in self._attempts.values()]
        if queue.is_failing and sum(other.is_failing for other in busy) >= MOST_FAILING:
            return False
        return busy.count(queue) < queue.most_attempts

    def lines_of(self, queue: DeliveryQueue) -> set[tuple[str, str]]:
        """Returns the (receiver id, line) pairs of this queue's attempts under way.

        A line is a sequence of deliveries that are sent in order.
        """
        lines = set()
        for attempt in self._attempts.values():
            line = attempt.row.line
            if attempt.queue is queue and line is not None:
                lines.add((attempt.receiver.id, line))
        return lines

    def await_answers(self) -> Iterable[Future[Answer]]:
        """Waits until an attempt has ended or has timed out.

        Returns the futures that are done. If none is done, returns those that have
        timed out.
        """
        ends_s = min(self._ends_s(attempt.queue) for attempt in self._attempts.values())
        left_s = max(0, ends_s - time.monotonic())
        done, _ = wait(self._attempts, left_s, FIRST_COMPLETED)
        if done:
            return done
        now_s = time.monotonic()
        return [
            future
            for future, attempt in self._attempts.items()
            if self._ends_s(attempt.queue) <= now_s
        ]
