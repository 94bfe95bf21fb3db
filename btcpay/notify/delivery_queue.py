"""The queues of a run of the outbox, each with as many attempts at once as it earns."""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field
from zlib import crc32

from btcpay.notify.outcome import Answer
from storage.models import Receiver
from storage.queries import deliveries, receivers

# After this many failures a receiver that takes other events is left for the next run, so that an
# event that it never takes does not stop those behind it.
MOST_REFUSED = 3
# Shards of the receivers, by the names of their locks: each is one process's while it delivers.
# On SQLite all programs are in one, since it has one writer.
MAIL_SHARD = "mail"
PROGRAM_SHARDS = {
    False: ["outbox"],
    True: [f"outbox{number:x}" for number in range(16)],
}


def all_shards(is_server: bool) -> list[str]:
    return [MAIL_SHARD, *PROGRAM_SHARDS[is_server]]


def shard_of(receiver: Receiver, is_server: bool) -> str:
    """The receiver's shard; all mail is in one, since it goes out one after another."""
    if receiver.transport in receivers.MAILS:
        return MAIL_SHARD
    shards = PROGRAM_SHARDS[is_server]
    return shards[crc32(receiver.id.encode()) % len(shards)]


@dataclass(eq=False)
class DeliveryQueue:
    """What one receiver may get in this run, or the mail server with all who get mail.

    It has one attempt at a time until something is taken, so a receiver that hangs holds up one
    attempt and no other queue.
    """

    receivers: list[Receiver]
    at_once: int
    rows: deque[tuple[Receiver, deliveries.Due]] = field(default_factory=deque)
    tried: set[tuple[str, str]] = field(default_factory=set)
    # Lines with a delivery that was not taken in this run: what follows it waits for the next run.
    stopped: set[tuple[str, str]] = field(default_factory=set)
    # By receiver, the last row of the page before, while all that wait are read.
    last: dict[str, deliveries.Due] = field(default_factory=dict)
    failures: int = 0
    may_have_more: bool = True
    has_taken: bool = False
    is_over: bool = False
    # The oldest delivery, if a failing queue has begun with it.
    oldest: tuple[str, str] | None = None

    @property
    def is_of_mail(self) -> bool:
        return self.receivers[0].transport in receivers.MAILS

    @property
    def was_failing(self) -> bool:
        return any(receiver.failing_since for receiver in self.receivers)

    @property
    def is_failing(self) -> bool:
        return self.was_failing and not self.has_taken

    @property
    def most_attempts(self) -> int:
        if self.is_over or not (self.rows or self.may_have_more):
            return 0
        if self.has_taken:
            return self.at_once
        return 1

    def stop_line(self, receiver: Receiver, row: deliveries.Due) -> None:
        if row.line is not None:
            self.stopped.add((receiver.id, row.line))

    def skip(self) -> None:
        """Goes on with the next delivery: this one was not sent and waits no longer."""
        self.oldest = None
        self.may_have_more = True

    def take_next(
        self, in_flight: Set[tuple[str, str]]
    ) -> tuple[Receiver, deliveries.Due] | None:
        """The next row; None if its line is among those that are `in_flight`."""
        while self.rows:
            receiver, row = self.rows[0]
            line = (receiver.id, row.line or "")
            if line in in_flight:
                return None
            self.rows.popleft()
            if line not in self.stopped:
                return receiver, row
        return None

    def learn(
        self, receiver: Receiver, row: deliveries.Due, answer: Answer, is_disabled: bool
    ) -> None:
        if row.line is not None:
            self.may_have_more = True  # the next of its line is due
        if not (answer.is_taken or answer.is_final):
            self.stop_line(receiver, row)
        if answer.is_up:
            if self.is_failing:
                # They were only its probe; now all that waits may be sent.
                self.rows.clear()
                self.may_have_more = True
            self.has_taken = True
            return
        self.failures += 1
        if self.failures >= MOST_REFUSED or is_disabled:
            self.is_over = True
        elif not self.has_taken:
            may_be_alone = self._may_be_alone(receiver, row, answer)
            self.is_over = not may_be_alone
            self.may_have_more = may_be_alone

    def _may_be_alone(
        self, receiver: Receiver, row: deliveries.Due, answer: Answer
    ) -> bool:
        """True if the oldest, refused twice in a row, may be the only one that is refused.

        A receiver that does not answer at all is more likely away: it gets the oldest once more.
        """
        is_oldest = self.oldest == (receiver.id, row.about)
        failures_before = 2
        if answer.status is not None:
            failures_before = 1
        return is_oldest and row.attempts >= failures_before


@dataclass
class DeliveryCounts:
    """The number of attempts of a run that were taken, and that were not."""

    delivered: int = 0
    failed: int = 0
