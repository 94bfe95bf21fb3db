"""Lanes: the ways out in a run of the outbox, each with as many attempts at once as it earns."""

from collections import deque
from dataclasses import dataclass, field
from zlib import crc32

from btcpay.notify.outcome import Answer
from storage.models import Receiver
from storage.queries import deliveries, receivers

# Failures in a run after which a receiver that takes other events is left for the next run, so that
# an event that it never takes stops none behind it.
MOST_REFUSED = 3
# Parts of the receivers, by the names of their locks: each is one process's while it delivers.
# SQLite's are one part, since it has one writer.
PARTS = {False: ["outbox"], True: [f"outbox{number:x}" for number in range(16)]}


def part_of(receiver: Receiver, is_server: bool) -> str:
    """The receiver's part; all mail is in one, since it goes out one after another."""
    name = "mail" if receiver.transport in receivers.MAILS else receiver.id
    return PARTS[is_server][crc32(name.encode()) % len(PARTS[is_server])]


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
    may_have_more: bool = True
    has_taken: bool = False
    is_over: bool = False

    @property
    def was_failing(self) -> bool:
        return any(one.failing_since for one in self.receivers)

    @property
    def is_failing(self) -> bool:
        return self.was_failing and not self.has_taken

    @property
    def allowed(self) -> int:
        if self.is_over or not (self.rows or self.may_have_more):
            return 0
        return self.at_once if self.has_taken else 1

    def learn(self, row: deliveries.Due, answer: Answer, is_disabled: bool) -> None:
        if row.line is not None:
            self.may_have_more = True  # the next of its line is due
        if answer.is_up:
            if self.is_failing:
                self.rows.clear()  # only what was due; now everything that waits may be sent
                self.may_have_more = True
            self.has_taken = True
        else:
            self.failures += 1
            if not self.has_taken or self.failures >= MOST_REFUSED or is_disabled:
                self.is_over = True


@dataclass
class Delivered:
    """The number of attempts of a run that were taken, and that were not."""

    delivered: int = 0
    failed: int = 0
