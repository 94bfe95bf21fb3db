"""The running attempts to send deliveries, and the limits on their number."""

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
    """The running attempts of one run of the outbox.

    `ends_s` returns when a running attempt to deliver from a queue is given up, in
    seconds of the monotonic clock.
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
        """Removes an attempt, and returns it. `future` is the result of its thread."""
        return self._attempts.pop(future)

    def may_begin(self, queue: DeliveryQueue) -> bool:
        """True if this queue may begin one more attempt now.

        Each queue has a limit on its attempts at the same time. The queues of failing
        receivers also share the limit MOST_FAILING.
        """
        if not queue.most_attempts:
            return False
        queues_of_attempts = [attempt.queue for attempt in self._attempts.values()]
        failing = [other for other in queues_of_attempts if other.is_failing]
        if queue.is_failing and len(failing) >= MOST_FAILING:
            return False
        return queues_of_attempts.count(queue) < queue.most_attempts

    def lines_of(self, queue: DeliveryQueue) -> set[tuple[str, str]]:
        """Returns the (receiver id, line) pairs of this queue's running attempts.

        A line is a sequence of deliveries that are sent in order.
        """
        lines = set()
        for attempt in self._attempts.values():
            line = attempt.row.line
            if attempt.queue is queue and line is not None:
                lines.add((attempt.receiver.id, line))
        return lines

    def await_answers(self) -> Iterable[Future[Answer]]:
        """Waits until an attempt ends, or until the time for one is over.

        Returns the futures of the attempts that have ended. If none has ended, returns
        the futures of the attempts whose time is over.
        """
        first_end_s = min(
            self._ends_s(attempt.queue) for attempt in self._attempts.values()
        )
        left_s = max(0, first_end_s - time.monotonic())
        done, _ = wait(self._attempts, left_s, FIRST_COMPLETED)
        if done:
            return done
        now_s = time.monotonic()
        return [
            future
            for future, attempt in self._attempts.items()
            if self._ends_s(attempt.queue) <= now_s
        ]
