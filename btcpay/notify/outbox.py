"""The outbox: sends waiting events and mails to all receivers concurrently.

A receiver is a webhook, a command or a mailbox. A delivery is an event, or a mail, that
is to be sent to one receiver.
"""

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime

from btcpay.http.http_client import Session
from btcpay.notify.delivery_queue import (
    MAIL_SHARD,
    DeliveryCounts,
    DeliveryQueue,
    all_shards,
    shard_of,
)
from btcpay.notify.events import Event, event_of
from btcpay.notify.in_flight import MOST_AT_ONCE, Attempt, InFlight
from btcpay.notify.mail.compose import CLOCK_MAILS, urls_of
from btcpay.notify.mail.replies import USUAL, Times
from btcpay.notify.mail.server import mail_account
from btcpay.notify.mail.timed import STALE, add_clock_mails
from btcpay.notify.mail.transport import Mail
from btcpay.notify.outcome import ATTEMPT_S, Answer, hold, note
from btcpay.notify.transports import TRANSPORTS
from btcpay.notify.waiting import fill
from btcpay.settings.settings import Settings
from btcpay.values.errors import BadRow
from btcpay.values.times import to_ms
from schemas.resources import Resources
from storage.database import Database
from storage.models import Receiver
from storage.queries import deliveries, events, meta, receivers
from storage.queries.totals import tallies

log = logging.getLogger(__name__)

# The length of a run in seconds. No attempt begins in its last ATTEMPT_S.
RUN_S = 20
MOST_OF_ONE = 4  # attempts at once to one receiver
# The time for a mail's DNS look-up and connection, beyond the time for the server's replies.
AROUND_MAIL_S = 20
NO_ANSWER = Answer(
    is_taken=False,
    status=None,
    text="there was no answer when the run ended",
    may_go_on=True,
)

# Makes one attempt to send an event to a receiver. The datetime is the time of the attempt.
Send = Callable[[Receiver, Event, datetime], Answer]


def new_send(settings: Settings, timeout_s: float = ATTEMPT_S) -> Send:
    """Returns a function that makes one attempt to send an event to a receiver.

    The attempts share HTTP connections.
    """
    # Several receivers may be at the same host.
    session = Session(MOST_AT_ONCE, settings.proxy)

    def send(receiver: Receiver, event: Event, at: datetime) -> Answer:
        return TRANSPORTS[receiver.transport].send(
            session,
            receiver,
            event,
            at,
            timeout_s,
        )

    return send


class Outbox:
    """Sends waiting deliveries.

    Only the thread that calls `run` uses the database. `now` returns the present time.
    `send` makes one attempt to send an event. `mail_times` are the time limits for the
    mail server.
    """

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
        take: Callable[[str], bool] = lambda shard: True,
        only: Sequence[str] = (),
    ) -> DeliveryCounts:
        """Sends the deliveries that are due. Returns how many succeeded and how many failed.

        - `run_s`: the run ends after this number of seconds, or later if a mail is just
          being sent. The remaining deliveries wait for the next run.
        - `take`: a function that locks a shard (a group of receivers) for this process
          until the run has ended. It returns False if another process has the lock.
        - `only`: the names of the shards whose deliveries are sent; if it is empty, all.

        An attempt that is still running when the run ends counts as a failure. Its
        delivery is retried with the same id.
        """
        shards = list(only or all_shards(self._db.is_server))
        # The state of this run, which the other methods use.
        self._mail = self._new_mail()
        self._in_flight = InFlight(self._ends_s)
        self._counts = DeliveryCounts()
        self._labels = Counter[tuple[str, str]]()
        events.number_new(self._db)
        # Mails that are due by the clock wait while the clock is not trusted (chain/leap.py).
        self._is_time_doubted = bool(meta.get(self._db, meta.Key.TIME_LEAP))
        if MAIL_SHARD in shards and not self._is_time_doubted:
            self._update_mails()
        # The time begins here: statements above may wait for locks.
        self._until_s = time.monotonic() + run_s
        random.shuffle(shards)
        self._serve(shards, take)
        if self._mail:
            self._mail.close()
        self._store_tallies()
        return self._counts

    def _store_tallies(self) -> None:
        """Adds the outcomes of this run to the totals that the metrics show."""
        for (name, label), total in self._labels.items():
            self._db.run(tallies.ADD, name=name, label=label, total=total)

    def _new_mail(self) -> Mail | None:
        account = mail_account(self._settings, self._db)
        if account is None:
            return None
        urls = urls_of(self._settings)
        return Mail(self._db, urls, account.server, account.sender, self._mail_times)

    def _update_mails(self) -> None:
        """Gives up mails that are too old, and adds mails that are due at this time."""
        self._db.run(deliveries.GIVE_UP_MAILS, before=to_ms(self._now() - STALE))
        if self._mail:
            add_clock_mails(self._db, self._now())

    def _serve(self, shards: list[str], take: Callable[[str], bool]) -> None:
        """Makes attempts until nothing is left to send or the time is over.

        Locks another shard as soon as the queues of the locked ones leave room.
        """
        queues: list[DeliveryQueue] = []
        last_begin_s = self._until_s - ATTEMPT_S
        while True:
            self._begin(queues, last_begin_s)
            if shards and not self._in_flight.is_full:
                shard = shards.pop()
                if take(shard):
                    queues += self._queues_of(shard)
                    # Failing receivers come last.
                    queues.sort(key=lambda queue: queue.was_failing)
            elif self._in_flight:
                for future in self._in_flight.await_answers():
                    self._on_answer(future)
            else:
                return

    def _queues_of(self, shard: str) -> list[DeliveryQueue]:
        """Loads the receivers in this shard, and returns their queues.

        Call this method after you lock the shard: until then another process may be
        sending to these receivers.
        """
        is_server = self._db.is_server
        rows = self._db.rows(receivers.WAITED_FOR)
        in_shard = [row for row in rows if shard_of(row, is_server) == shard]
        queues = []
        mailboxes = []
        for receiver in in_shard:
            if receiver.transport in receivers.MAILS:
                mailboxes.append(receiver)
            elif receiver.transport in TRANSPORTS:
                queues.append(DeliveryQueue([receiver], at_once=MOST_OF_ONE))
        if self._is_time_doubted:
            mailboxes = [row for row in mailboxes if row.transport not in CLOCK_MAILS]
        if mailboxes and self._mail:
            queues.append(DeliveryQueue(mailboxes, at_once=1))
        return queues

    def _ends_s(self, queue: DeliveryQueue) -> float:
        """Returns the monotonic time at which a running attempt of this queue is given up.

        An attempt to send a mail may last beyond the end of the run. No mail begins in
        the last seconds of a run.
        """
        if queue.is_of_mail:
            return self._until_s - ATTEMPT_S + self._mail_times.mail_s + AROUND_MAIL_S
        return self._until_s

    def _begin(self, queues: Sequence[DeliveryQueue], until_s: float) -> None:
        """Begins attempts, one of each queue in turn.

        Stops when as many attempts run as are allowed, when no queue may begin another
        one, or at the time `until_s` of the monotonic clock.
        """
        is_progressing = True
        while is_progressing:
            is_progressing = False
            for queue in queues:
                # The time is checked for each queue, even if unreadable rows begin no attempt.
                if self._in_flight.is_full or time.monotonic() > until_s:
                    return
                if self._in_flight.may_begin(queue):
                    is_progressing |= self._begin_next(queue)

    def _begin_next(self, queue: DeliveryQueue) -> bool:
        """Begins an attempt for the queue's next delivery, or drops the delivery.

        Returns False if the queue has no delivery that may be sent now.
        """
        if queue.may_have_more and not queue.rows:
            fill(self._db, queue, self._now())
        delivery = queue.take_next(self._in_flight.lines_of(queue))
        if delivery is None:
            return False
        queue.tried.add(delivery.key)
        self._attempt(queue, delivery.receiver, delivery.row)
        return True

    def _attempt(
        self,
        queue: DeliveryQueue,
        receiver: Receiver,
        row: deliveries.Due,
    ) -> None:
        """Begins an attempt, or drops a delivery that is invalid or out of date.

        Does not begin an attempt if another process has claimed the delivery.
        """
        try:
            send = self._prepare(receiver, row)
        except BadRow as error:  # the other deliveries are still sent
            log.error("%s cannot be sent to %s: %s", row.about, receiver.id, error)
            text = f"cannot be sent: {error}"
            failure = Answer(is_taken=False, status=None, text=text, is_final=True)
            self._note(queue, receiver, row, failure)
            queue.skip()
            return
        if send is None:
            self._db.run(deliveries.DROP, receiver_id=row.receiver_id, about=row.about)
            queue.skip()
            return
        is_ours = hold(self._db, row, self._now())
        if is_ours:
            self._in_flight.begin(send, Attempt(queue, receiver, row))
        else:
            queue.stop_line(receiver, row)

    def _prepare(
        self,
        receiver: Receiver,
        row: deliveries.Due,
    ) -> Callable[[], Answer] | None:
        """Returns a function that makes the attempt.

        Returns None if the delivery is a mail that is out of date. Raises BadRow if a
        stored value is invalid.
        """
        now = self._now()
        if self._mail and receiver.transport in receivers.MAILS:
            return self._mail.prepare(receiver, row, now)
        event = event_of(self._db, self._resources, row)
        event = TRANSPORTS[receiver.transport].adapt(self._db, receiver, row, event)
        return lambda: self._send(receiver, event, now)

    def _on_answer(self, future: Future[Answer]) -> None:
        """Stores the outcome of an attempt that has ended, or whose time is over."""
        attempt = self._in_flight.end(future)
        queue, receiver, row = attempt
        answer = _answer_of(future, attempt)
        is_disabled = self._note(queue, receiver, row, answer)
        queue.learn(receiver, row, answer, is_disabled)
        if answer.is_taken:
            self._counts.delivered += 1
        else:
            self._counts.failed += 1

    def _note(
        self,
        queue: DeliveryQueue,
        receiver: Receiver,
        row: deliveries.Due,
        answer: Answer,
    ) -> bool:
        """Stores the outcome of an attempt. Returns True if it disabled the receiver."""
        now = self._now()
        was_failing = queue.was_failing or queue.failures > 0
        stored = note(self._db, receiver, row, answer, now, was_failing=was_failing)
        metric = "webhook_deliveries"
        if receiver.transport in receivers.MAILS:
            metric = "mails"
        if stored.label:
            self._labels[metric, stored.label] += 1
        return stored.is_disabled


def _answer_of(future: Future[Answer], attempt: Attempt) -> Answer:
    """Returns the outcome of an attempt that has ended, or whose time is over.

    `future` is the result of its thread. If the thread has raised an error, logs the
    error, so that the other deliveries are still sent.
    """
    queue, receiver, row = attempt
    no_answer = NO_ANSWER._replace(is_in_doubt=queue.is_of_mail)
    if not future.done():
        return no_answer
    error = future.exception()
    if error is None:
        return future.result()
    log.error("%s cannot be sent to %s", row.about, receiver.id, exc_info=error)
    return no_answer
