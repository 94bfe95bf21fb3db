"""One way out of the outbox in a run: how many attempts it has at once, and when it is over."""

from collections import deque
from dataclasses import dataclass, field

from btcpay.notify.retries import Answer
from storage.models import Receiver
from storage.queries import deliveries

# In a run, of a receiver that takes others: an event that it never takes stops none behind it.
MOST_REFUSED = 3


@dataclass(eq=False)
class Lane:
    """One way out in this run: a receiver, or the mail server with all who get mail.

    It is given one attempt until it has taken something; so one that hangs holds up one attempt,
    and no other lane.
    """

    receivers: list[Receiver]
    at_once: int
    rows: deque[tuple[Receiver, deliveries.Due]] = field(default_factory=deque)
    tried: set[tuple[str, str]] = field(default_factory=set)
    failures: int = 0
    has_taken: bool = False
    is_over: bool = False

    @property
    def was_failing(self) -> bool:
        return any(one.failing_since for one in self.receivers)

    @property
    def is_failing(self) -> bool:
        return self.was_failing and not self.has_taken

    @property
    def brings_all(self) -> bool:
        """Whether a receiver that failed has come back in this run."""
        return self.was_failing and self.has_taken

    @property
    def allowed(self) -> int:
        return 0 if self.is_over else self.at_once if self.has_taken else 1

    def learn(self, answer: Answer, is_disabled: bool) -> None:
        if answer.is_up:
            if not self.has_taken:
                self.rows.clear()  # they were what was due, and now it may be all
            self.has_taken = True
        else:
            self.failures += 1
            if not self.has_taken or self.failures >= MOST_REFUSED or is_disabled:
                self.is_over = True
