"""The outbox: sends the deliveries that wait, to all receivers at the same time."""

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import datetime

from btcpay.http.deadline import run_in_thread
from btcpay.http.http_client import Session
from btcpay.notify.delivery_queue import (
    MAIL_PART,
    Delivered,
    DeliveryQueue,
    all_parts,
    part_of,
)
from btcpay.notify.events import Event, event_of
from btcpay.notify.mail.replies import USUAL, Times
from btcpay.notify.mail.transport import STALE, Mail, add_timed
from btcpay.notify.outcome import ATTEMPT_S, HELD_MS, Answer, note
from btcpay.notify.transports import TRANSPORTS
from btcpay.notify.waiting import fill
from btcpay.settings.settings import Settings
from btcpay.values.errors import BadRow
from btcpay.values.times import to_ms
from schemas.resources import Resources
from storage.database import Database, Values
from storage.models import Receiver
from storage.queries import deliveries, events, meta, receivers
from storage.queries.totals import tallies

log = logging.getLogger(__name__)

# The length of a run; an attempt begins only while ATTEMPT_S are left of it.
RUN_S = 20
MOST_AT_ONCE = 24
MOST_FAILING = 8
MOST_OF_ONE = 4
# A mail's name look-up and connecting, beside its server's answers.
AROUND_MAIL_S = 20
NO_ANSWER = Answer(
    False, None, "there was no answer when the run ended", may_go_on=True
)

# One attempt to send an event to a receiver, at that time.
Send = Callable[[Receiver, Event, datetime], Answer]


def new_send(settings: Settings, timeout_s: float = ATTEMPT_S) -> Send:
    """A function that sends over the network or to a program, with connections that are kept."""
    session = Session(MOST_OF_ONE, settings.proxy)

    def send(receiver: Receiver, event: Event, at: datetime) -> Answer:
        return TRANSPORTS[receiver.transport].send(
            session, receiver, event, at, timeout_s
        )

    return send


class Outbox:
    """`now` reads the wall clock. Only the caller's thread uses the database."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        now: Callable[[], datetime],
        send: Send,
        mail_times: Times = USUAL,
    ) -> None:
        self._db = db
        self._settings = settings
        self._now = now
        self._send = send
        self._mail_times = mail_times
        self._resources = Resources(settings.base_url)

    def run(
        self,
        run_s: float = RUN_S,
        take: Callable[[str], bool] = lambda part: True,
        only: Sequence[str] = (),
    ) -> Delivered:
        """Makes the deliveries that are due, for `run_s` at most; the rest waits for the next run.

        A mail that was begun in that time has longer. `take` takes one of the parts for this
        process until the run has ended, unless another has it; `only` these parts are served.
        An answer that comes later counts as a failure (a name server may take longer), and its
        delivery is made again with the same id.
        """
        parts = [*(only or all_parts(self._db.is_server))]
        self._mail = self._new_mail()
        self._in_flight: dict[
            Future[Answer], tuple[DeliveryQueue, Receiver, deliveries.Due]
        ] = {}
        events.number_new(self._db)
        # What the calendar alone has due waits while the clock is doubted (chain/leap.py).
        self._is_time_doubted = bool(meta.get(self._db, meta.Key.TIME_LEAP))
        if MAIL_PART in parts and not self._is_time_doubted:
            self._db.run(deliveries.GIVE_UP_MAILS, before=to_ms(self._now() - STALE))
            if self._mail:
                add_timed(self._db, self._now())
        self._result = Delivered()
        self._until_s = time.monotonic() + run_s
        self._labels = Counter[tuple[str, str]]()
        queues = list[DeliveryQueue]()
        random.shuffle(parts)
        while True:
            self._begin(queues, self._until_s - ATTEMPT_S)
            if parts and len(self._in_flight) < MOST_AT_ONCE:
                if take(part := parts.pop()):
                    queues = sorted(
                        queues + self._lanes(part), key=lambda queue: queue.was_failing
                    )
                continue
            if not self._in_flight:
                break
            ends_s = min(
                self._ends_s(queue) for queue, _, _ in self._in_flight.values()
            )
            left_s = max(0, ends_s - time.monotonic())
            done, _ = wait(self._in_flight, left_s, FIRST_COMPLETED)
            for answer in done or self._overdue():
                self._on_answer(answer)
        if self._mail:
            self._mail.close()
        for (name, label), total in self._labels.items():
            self._db.run(tallies.ADD, name=name, label=label, total=total)
        return self._result

    def _new_mail(self) -> Mail | None:
        server = self._settings.smtp_url
        sender = self._settings.mail_from
        if not (server and sender):
            return None
        return Mail(self._db, self._settings.base_url, server, sender, self._mail_times)

    def _ends_s(self, queue: DeliveryQueue) -> float:
        """When an answer is waited for no longer. No mail begins in the last seconds of a run."""
        if queue.is_of_mail:
            return self._until_s - ATTEMPT_S + self._mail_times.mail_s + AROUND_MAIL_S
        return self._until_s

    def _overdue(self) -> list[Future[Answer]]:
        now_s = time.monotonic()
        return [
            one for one, of in self._in_flight.items() if self._ends_s(of[0]) <= now_s
        ]

    def _lanes(self, part: str) -> list[DeliveryQueue]:
        """The ways out in this part, read when it is taken: another process may have had it."""
        rows = self._db.rows(receivers.WAITED_FOR)
        waited_for = [one for one in rows if part_of(one, self._db.is_server) == part]
        by_mail = [one for one in waited_for if one.transport in receivers.MAILS]
        if self._is_time_doubted:
            by_mail = [one for one in by_mail if one.transport != receivers.BILL]
        alone = {*TRANSPORTS}.difference(receivers.MAILS)
        queues = [
            DeliveryQueue([one], MOST_OF_ONE)
            for one in waited_for
            if one.transport in alone
        ]
        return queues + ([DeliveryQueue(by_mail, 1)] if by_mail and self._mail else [])

    def _begin(self, queues: Sequence[DeliveryQueue], until_s: float) -> None:
        begun = True
        while begun:
            begun = False
            for queue in queues:
                is_full = len(self._in_flight) == MOST_AT_ONCE
                if (
                    is_full or time.monotonic() > until_s
                ):  # even if unreadable rows begin nothing
                    return
                if self._may_begin(queue) and (found := self._next(queue)):
                    self._attempt(queue, *found)
                    begun = True

    def _may_begin(self, queue: DeliveryQueue) -> bool:
        if not queue.allowed:
            return False
        busy = [other for other, _, _ in self._in_flight.values()]
        if queue.is_failing and sum(other.is_failing for other in busy) >= MOST_FAILING:
            return False
        return busy.count(queue) < queue.allowed

    def _next(self, queue: DeliveryQueue) -> tuple[Receiver, deliveries.Due] | None:
        if queue.may_have_more and not queue.rows:
            fill(self._db, queue, self._now())
        in_flight = {
            (receiver.id, row.line)
            for other, receiver, row in self._in_flight.values()
            if other is queue and row.line is not None
        }
        return queue.take_next(in_flight)

    def _attempt(
        self, queue: DeliveryQueue, receiver: Receiver, row: deliveries.Due
    ) -> None:
        queue.tried.add((receiver.id, row.about))
        try:
            send = self._prepared(receiver, row)
        except BadRow as error:  # the next delivery is made all the same
            log.error("%s cannot be sent to %s: %s", row.about, receiver.id, error)
            spoiled = Answer(False, None, f"cannot be sent: {error}", is_final=True)
            self._note(queue, receiver, row, spoiled)
            queue.skip()
            return
        if send is None:
            self._db.run(deliveries.DROP, receiver_id=row.receiver_id, about=row.about)
            queue.skip()
        elif self._is_ours(row):
            self._in_flight[run_in_thread(send)] = queue, receiver, row
        else:
            queue.stop_line(receiver, row)

    def _prepared(
        self, receiver: Receiver, row: deliveries.Due
    ) -> Callable[[], Answer] | None:
        now = self._now()
        if self._mail and receiver.transport in receivers.MAILS:
            return self._mail.prepare(receiver, row, now)
        event = event_of(self._db, self._resources, row)
        event = TRANSPORTS[receiver.transport].adapt(self._db, receiver, row, event)
        return lambda: self._send(receiver, event, now)

    def _is_ours(self, row: deliveries.Due) -> bool:
        """False while another process sends it: the next of its line must not overtake it."""
        if row.line is None:
            return True
        now = to_ms(self._now())
        of: Values = {
            "receiver_id": row.receiver_id,
            "about": row.about,
            "attempts": row.attempts,
        }
        return (
            self._db.run(deliveries.HOLD, **of | {"now": now, "until": now + HELD_MS})
            == 1
        )

    def _on_answer(self, coming: Future[Answer]) -> None:
        queue, receiver, row = self._in_flight.pop(coming)
        answer = NO_ANSWER._replace(is_in_doubt=queue.is_of_mail)
        if coming.done():
            if error := coming.exception():  # the others are sent all the same
                log.error(
                    "%s cannot be sent to %s", row.about, receiver.id, exc_info=error
                )
            else:
                answer = coming.result()
        queue.learn(receiver, row, answer, self._note(queue, receiver, row, answer))
        self._result.delivered += answer.is_taken
        self._result.failed += not answer.is_taken

    def _note(
        self,
        queue: DeliveryQueue,
        receiver: Receiver,
        row: deliveries.Due,
        answer: Answer,
    ) -> bool:
        now = self._now()
        has_failed = queue.was_failing or queue.failures > 0
        label, is_disabled = note(self._db, receiver, row, answer, now, has_failed)
        name = (
            "mails" if receiver.transport in receivers.MAILS else "webhook_deliveries"
        )
        if label:
            self._labels[name, label] += 1
        return is_disabled
