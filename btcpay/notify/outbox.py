"""The outbox: sends the deliveries that wait, to all receivers at the same time."""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from btcpay.http.http_client import Session
from btcpay.notify.mail.transport import STALE, Mail, add_timed
from btcpay.notify.outcome import ATTEMPT_S, HELD_MS, PROBE_AFTER, Answer, note
from btcpay.notify.read import Event, event_of
from btcpay.notify.transports import TRANSPORTS
from btcpay.settings.settings import Settings
from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms, to_ms
from schemas.resources import Resources
from storage.database import Database
from storage.models import Receiver
from storage.queries import deliveries, events, receivers

log = logging.getLogger(__name__)

# The length of a run; an attempt begins only while ATTEMPT_S are left of it.
RUN_S = 20
MOST_AT_ONCE, MOST_FAILING, MOST_OF_ONE = 24, 8, 4
# Failures in a run after which a receiver that takes other events is left for the next run, so that
# an event that it never takes stops none behind it.
MOST_REFUSED = 3
PAGE = 100
NO_ANSWER = Answer(False, None, "there was no answer when the run ended", may_go_on=True)
FOR_EVER_MS = (1 << 63) - 1

# One attempt to send an event to a receiver, at that time.
Send = Callable[[Receiver, Event, datetime], Answer]


def new_send(settings: Settings, timeout_s: float = ATTEMPT_S) -> Send:
    """A function that sends over the network or to a program, with connections that are kept."""
    session = Session(MOST_OF_ONE, settings.proxy)

    def send(receiver: Receiver, event: Event, at: datetime) -> Answer:
        transport = TRANSPORTS[receiver.transport]
        return transport.send(session, receiver, event, at, timeout_s)

    return send


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
                self.rows.clear()  # only what was due; now everything that waits may be sent
            self.has_taken = True
        else:
            self.failures += 1
            if not self.has_taken or self.failures >= MOST_REFUSED or is_disabled:
                self.is_over = True


@dataclass
class Delivered:
    delivered: int = 0
    failed: int = 0


_Answers = queue.SimpleQueue[tuple[Lane, Receiver, deliveries.Due, Answer]]


class Outbox:
    """`now` reads the wall clock. Only the caller's thread uses the database."""

    def __init__(
        self, db: Database, settings: Settings, now: Callable[[], datetime], send: Send
    ) -> None:
        self._db, self._settings, self._now, self._send = db, settings, now, send
        self._resources = Resources(settings.base_url)

    def run(self, run_s: float = RUN_S) -> Delivered:
        """Makes the deliveries that are due, for `run_s` at most; the rest waits for the next run.

        An answer that comes later counts as a failure (a name server may take longer), and its
        delivery is made again with the same id.
        """
        # Made anew for each run: nobody reads an answer that comes after its end.
        self._answers: _Answers = queue.SimpleQueue()
        server, sender = self._settings.smtp_url, self._settings.mail_from
        url = self._settings.base_url
        self._mail = Mail(self._db, url, server, sender) if server and sender else None
        self._in_flight: list[tuple[Lane, Receiver, deliveries.Due]] = []
        events.number_new(self._db)
        self._db.run(deliveries.GIVE_UP_MAILS, before=to_ms(self._now() - STALE))
        if self._mail:
            add_timed(self._db, self._now())
        self._result, until_s = Delivered(), time.monotonic() + run_s
        lanes = self._lanes()
        while True:
            self._begin(lanes, until_s - ATTEMPT_S)
            if not self._in_flight:
                break
            try:
                left_s = max(0, until_s - time.monotonic())
                self._on_answer(*self._answers.get(timeout=left_s))
            except queue.Empty:
                break
        for lane, receiver, row in self._in_flight[:]:
            self._on_answer(lane, receiver, row, NO_ANSWER)
        if self._mail:
            self._mail.close()
        return self._result

    def _lanes(self) -> list[Lane]:
        waited_for = self._db.rows(receivers.WAITED_FOR)
        by_mail = [one for one in waited_for if one.transport in receivers.MAILS]
        others = [one for one in waited_for if one not in by_mail]
        lanes = [Lane([one], MOST_OF_ONE) for one in others if one.transport in TRANSPORTS]
        return lanes + ([Lane(by_mail, 1)] if by_mail and self._mail else [])

    def _begin(self, lanes: Sequence[Lane], until_s: float) -> None:
        begun = True
        while begun:
            begun = False
            for lane in lanes:
                if time.monotonic() > until_s:  # even if unreadable rows begin nothing
                    return
                if self._may_begin(lane) and (found := self._next(lane)):
                    self._attempt(lane, *found)
                    begun = True

    def _may_begin(self, lane: Lane) -> bool:
        busy = [other for other, _, _ in self._in_flight]
        if lane.is_failing and sum(other.is_failing for other in busy) >= MOST_FAILING:
            return False
        return busy.count(lane) < lane.allowed and len(busy) < MOST_AT_ONCE

    def _next(self, lane: Lane) -> tuple[Receiver, deliveries.Due] | None:
        """The next delivery that is due; after a recovery, the oldest of all that wait.

        A failing receiver gets one attempt each half hour, even when none is due.
        """
        query = deliveries.OLDEST if lane.brings_all else deliveries.DUE
        for receiver in lane.receivers if not lane.rows else ():
            until_ms = FOR_EVER_MS if lane.brings_all else self._until_ms(receiver)
            found = self._db.rows(query, receiver_id=receiver.id, until=until_ms, limit=PAGE)
            untried = [row for row in found if (receiver.id, row.about) not in lane.tried]
            lane.rows.extend((receiver, row) for row in untried)
        return lane.rows.popleft() if lane.rows else None

    def _until_ms(self, receiver: Receiver) -> int:
        now, failed_at = self._now(), receiver.failed_at
        is_probed = failed_at is not None and now - from_ms(failed_at) >= PROBE_AFTER
        return FOR_EVER_MS if is_probed else to_ms(now)

    def _attempt(self, lane: Lane, receiver: Receiver, row: deliveries.Due) -> None:
        lane.tried.add((receiver.id, row.about))
        try:
            send = self._prepared(receiver, row)
        except BadRow as error:  # the next delivery is made all the same
            log.error("%s cannot be sent to %s: %s", row.about, receiver.id, error)
            spoiled = Answer(False, None, f"cannot be sent: {error}", is_final=True)
            note(self._db, receiver, row, spoiled, self._now())
            return
        if send is None:
            self._db.run(deliveries.DROP, receiver_id=row.receiver_id, about=row.about)
            return
        if not self._is_ours(row):
            return
        self._in_flight.append((lane, receiver, row))

        def attempt(answers: _Answers = self._answers) -> None:
            answers.put((lane, receiver, row, send()))

        threading.Thread(target=attempt, daemon=True).start()

    def _prepared(self, receiver: Receiver, row: deliveries.Due) -> Callable[[], Answer] | None:
        now = self._now()
        if self._mail and receiver.transport in receivers.MAILS:
            return self._mail.prepare(receiver, row, now)
        event = event_of(self._db, self._resources, row)
        event = TRANSPORTS[receiver.transport].told(self._db, receiver, row, event)
        return lambda: self._send(receiver, event, now)

    def _is_ours(self, row: deliveries.Due) -> bool:
        """False while another process sends it: the next of its line must not overtake it."""
        if row.line is None:
            return True
        now = to_ms(self._now())
        held = self._db.run(
            deliveries.HOLD,
            receiver_id=row.receiver_id,
            about=row.about,
            attempts=row.attempts,
            now=now,
            until=now + HELD_MS,
        )
        return held == 1

    def _on_answer(
        self, lane: Lane, receiver: Receiver, row: deliveries.Due, answer: Answer
    ) -> None:
        self._in_flight.remove((lane, receiver, row))
        lane.learn(answer, note(self._db, receiver, row, answer, self._now()))
        self._result.delivered += answer.is_taken
        self._result.failed += not answer.is_taken
