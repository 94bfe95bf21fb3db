"""The queues of deliveries to receivers, in one run of the outbox.

A receiver is a webhook, a command or a mailbox. A delivery is an event, or a mail, that
is to be sent to one receiver. A run of the outbox sends the waiting deliveries.
"""

from collections import deque
from collections.abc import Set
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from btcpay.notify.outcome import Answer
from storage.models import Receiver
from storage.queries import deliveries, receivers

# After this many failures a queue sends nothing more in this run. After fewer failures it goes on
# if its receiver accepts other events, since an event that is never accepted must not block later
# ones.
MOST_REFUSED = 3
# Receivers are divided into shards. A process locks a shard while it sends to its receivers. These
# are the names of the shards: one for mailboxes, and others for webhooks and commands.
MAIL_SHARD = "mail"
SQLITE_SHARDS = ["outbox"]  # SQLite has one writer, so more would not help
POSTGRESQL_SHARDS = [f"outbox{number:x}" for number in range(16)]


def program_shards(is_server: bool) -> list[str]:
    """Returns the names of the shards of webhooks and commands.

    A shard is a group of receivers. `is_server` is True for PostgreSQL.
    """
    if is_server:
        return POSTGRESQL_SHARDS
    return SQLITE_SHARDS


def all_shards(is_server: bool) -> list[str]:
    """Returns the names of all shards. `is_server` is True for PostgreSQL."""
    return [MAIL_SHARD, *program_shards(is_server)]


def shard_of(receiver: Receiver, is_server: bool) -> str:
    """Returns the name of the receiver's shard, which a process locks while it sends.

    All mailboxes are in one shard, since mails are sent one after another. `is_server`
    is True for PostgreSQL, False for SQLite.
    """
    if receiver.transport in receivers.MAILS:
        return MAIL_SHARD
    shards = program_shards(is_server)
    return shards[crc32(receiver.id.encode()) % len(shards)]


class QueuedDelivery(NamedTuple):
    """A waiting delivery, and the receiver that it is sent to."""

    receiver: Receiver
    row: deliveries.Due

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the delivery among all deliveries of all receivers."""
        return self.receiver.id, self.row.about


@dataclass(eq=False)
class DeliveryQueue:
    """The deliveries to one receiver in a run of the outbox, or to all mailboxes.

    All mailboxes share one queue, since they share the mail server. A queue makes one
    attempt at a time until an attempt shows that the receiver is up (`Answer.is_up`).
    Then it makes up to `at_once` attempts at the same time. So a receiver that does not
    respond occupies only one attempt, and delays no other queue.
    """

    receivers: list[Receiver]
    at_once: int
    rows: deque[QueuedDelivery] = field(default_factory=deque)
    # The keys of the deliveries that were attempted in this run.
    tried: set[tuple[str, str]] = field(default_factory=set)
    # The (receiver id, line) pairs in which a delivery failed. A line is a sequence of deliveries
    # that are sent in order: the later deliveries of these lines wait for the next run.
    stopped: set[tuple[str, str]] = field(default_factory=set)
    # The last delivery that was loaded of each receiver, by its id. It is used when all waiting
    # deliveries are loaded page by page.
    last: dict[str, deliveries.Due] = field(default_factory=dict)
    failures: int = 0
    # True if the database may have deliveries that are not in `rows` yet.
    may_have_more: bool = True
    # True if an attempt in this run has shown that the receiver is up.
    has_taken: bool = False
    # True if the queue sends nothing more in this run.
    is_over: bool = False
    # The key of the oldest delivery, once a failing queue has used that delivery as a probe.
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
        """The maximum number of attempts at the same time; 0 if nothing is left to send."""
        has_deliveries = bool(self.rows) or self.may_have_more
        if self.is_over or not has_deliveries:
            return 0
        if self.has_taken:
            return self.at_once
        return 1

    def stop_line(self, receiver: Receiver, row: deliveries.Due) -> None:
        """Makes the deliveries that follow this one in its line wait for the next run.

        A line is a sequence of deliveries that are sent in order. Does nothing if the
        delivery is in no line.
        """
        if row.line is not None:
            self.stopped.add((receiver.id, row.line))

    def skip(self) -> None:
        """Makes the queue load further deliveries, after one was dropped without being sent."""
        self.oldest = None
        self.may_have_more = True

    def take_next(
        self,
        in_flight: Set[tuple[str, str]],
    ) -> QueuedDelivery | None:
        """Removes the next delivery from the queue, and returns it.

        Returns None if there is no delivery, or if the next one must wait.

        A line is a sequence of deliveries that are sent in order. `in_flight` has the
        lines in which an attempt is running, as (receiver id, line) pairs. The next
        delivery must wait if it belongs to such a line. Deliveries of a line in which an
        earlier delivery has failed in this run are dropped from the queue.
        """
        while self.rows:
            first = self.rows[0]
            line = (first.receiver.id, first.row.line or "")
            if line in in_flight:
                return None
            self.rows.popleft()
            if line not in self.stopped:
                return first
        return None

    def learn(
        self,
        receiver: Receiver,
        row: deliveries.Due,
        answer: Answer,
        is_disabled: bool,
    ) -> None:
        """Updates the queue after an attempt.

        - If the receiver is up, the queue may make several attempts at the same time. If
          the queue was only testing the receiver, all waiting deliveries are loaded.
        - If the receiver is not up, the queue sends nothing more in this run, unless the
          receiver may accept other deliveries.

        `is_disabled` is True if this attempt has disabled the receiver.
        """
        if row.line is not None:
            self.may_have_more = True  # the next delivery of its line is due now
        if not (answer.is_taken or answer.is_final):
            self.stop_line(receiver, row)
        if answer.is_up:
            if self.is_failing:
                # The rows were only probes. Now all waiting deliveries may be sent.
                self.rows.clear()
                self.may_have_more = True
            self.has_taken = True
            return
        self.failures += 1
        if self.failures >= MOST_REFUSED or is_disabled:
            self.is_over = True
        elif not self.has_taken:
            may_take_others = self._may_take_others(receiver, row, answer)
            self.is_over = not may_take_others
            self.may_have_more = may_take_others

    def _may_take_others(
        self,
        receiver: Receiver,
        row: deliveries.Due,
        answer: Answer,
    ) -> bool:
        """True if the receiver may accept other deliveries, although this one has failed.

        This one must be the oldest, and must have failed in earlier runs: at least once
        if the receiver has now responded with a status, at least twice if it has not
        responded, since it is then more likely down.
        """
        is_oldest = self.oldest == (receiver.id, row.about)
        failures_before = 2
        if answer.status is not None:
            failures_before = 1
        return is_oldest and row.attempts >= failures_before


@dataclass
class DeliveryCounts:
    """The numbers of successful and of failed attempts in a run."""

    delivered: int = 0
    failed: int = 0
