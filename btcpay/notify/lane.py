"""One way out of the outbox in a run: its share of the attempts, and its end."""

from collections import deque
from dataclasses import dataclass, field

from btcpay.notify.outcome import Answer
from storage.models import Receiver
from storage.queries import deliveries

# Failures in a run after which a receiver that takes other events is left for the next run: an
# event that it never takes stops none behind it.
MOST_REFUSED = 3


@dataclass(eq=False)
class Lane:
    """One way out in this run: a receiver, or the mail server with all who get mail.

    It has one attempt at a time until it takes something, so a receiver that hangs holds up one
    attempt and no other lane.
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
        """True once a receiver that failed before has taken something in this run."""
        return self.was_failing and self.has_taken

    @property
    def allowed(self) -> int:
        return 0 if self.is_over else self.at_once if self.has_taken else 1

    def learn(self, answer: Answer, is_disabled: bool) -> None:
        if answer.is_up:
            if not self.has_taken:
                self.rows.clear()  # these were due; now all that waits may be sent
            self.has_taken = True
        else:
            self.failures += 1
            if not self.has_taken or self.failures >= MOST_REFUSED or is_disabled:
                self.is_over = True
