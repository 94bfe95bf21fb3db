"""Tells endpoints what happened: who is due, at once beside each other, and how it went."""

import json
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from btcpay.notify.events import read
from btcpay.notify.events.read import Event, event_of
from btcpay.notify.webhooks.schedule import next_try, why_disabled
from btcpay.notify.webhooks.send import ATTEMPT_S, Answer
from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms, to_ms
from schemas.resources import Resources
from storage.database import Database, Row
from storage.queries import public_events, webhooks
from storage.queries.totals import tallies

log = logging.getLogger(__name__)

UNHEARD = Answer(False, None, "there was no answer when the run ended")
READER, WAITING = "webhooks", "webhooks that wait"
# Of a run; an attempt begins only while it can take all of its time.
RUN_S = 20
MOST_AT_ONCE, MOST_FAILING, MOST_OF_ONE = 24, 8, 4
PAGE = 100

# Tells one endpoint of one event, at that time.
Send = Callable[[Row, Event, datetime], Answer]


@dataclass
class Delivered:
    """What a run delivered, and what it could not."""

    delivered: int = 0
    failed: int = 0


@dataclass
class _Turn:
    """An endpoint in this run. After a failure nothing more is sent to it; after a success more at
    once: so one that hangs holds up one attempt, and no other endpoint.
    """

    endpoint: Row
    rows: deque[Row] = field(default_factory=deque)
    tried: set[int] = field(default_factory=set)
    in_flight: list[Row] = field(default_factory=list)
    allowed: int = 1

    @property
    def is_failing(self) -> bool:
        return self.endpoint["failing_since"] is not None


_Answers = queue.SimpleQueue[tuple[_Turn, Row, Answer]]


class Deliverer:
    """What a run needs; `now` reads the wall clock. Only the caller's thread uses the database."""

    def __init__(
        self, db: Database, resources: Resources, now: Callable[[], datetime], send: Send
    ) -> None:
        self._db, self._resources, self._now, self._send = db, resources, now, send
        self._answers: _Answers = queue.SimpleQueue()

    def run(self, run_s: float = RUN_S) -> Delivered:
        """Delivers what is due, for so long at most; what is left waits for the next run.

        An answer that comes after that is not heard, and none is a failure: a name server may take
        longer. The delivery is made again, with the same id.
        """
        while read.take(self._db, READER, self._fan_out):
            pass
        self._answers = queue.SimpleQueue()  # what comes after a run is for nobody
        told, until_s = Delivered(), time.monotonic() + run_s
        turns = [_Turn(endpoint) for endpoint in self._db.rows(webhooks.ENABLED)]
        while True:
            left_s = until_s - time.monotonic()
            if left_s >= ATTEMPT_S:
                self._begin(turns)
            if not any(turn.in_flight for turn in turns):
                break
            try:
                turn, row, answer = self._answers.get(timeout=max(0, left_s))
            except queue.Empty:
                break
            self._heard(turn, row, answer, told)
        for turn in turns:
            for row in turn.in_flight[:]:
                self._heard(turn, row, UNHEARD, told)
        self._note_waiting()
        return told

    def _fan_out(self, rows: Sequence[Row]) -> None:
        endpoints = self._db.rows(webhooks.ENABLED)
        for row in rows:
            for endpoint in endpoints:
                if wants(endpoint, row):
                    key = {"event_seq": row["seq"], "endpoint_id": endpoint["id"]}
                    self._db.run(webhooks.ADD_DELIVERY, **key, next_at=to_ms(self._now()))

    def _begin(self, turns: Sequence[_Turn]) -> None:
        """Begins as many attempts as may be made at once, endpoint by endpoint."""
        while True:
            begun = False
            for turn in turns:
                if self._may_begin(turn, turns) and (row := self._next(turn)):
                    self._attempt(turn, row)
                    begun = True
            if not begun:
                return

    def _may_begin(self, turn: _Turn, turns: Sequence[_Turn]) -> bool:
        at_once = sum(len(one.in_flight) for one in turns)
        failing = sum(len(one.in_flight) for one in turns if one.is_failing)
        if turn.is_failing and failing >= MOST_FAILING:
            return False
        return len(turn.in_flight) < turn.allowed and at_once < MOST_AT_ONCE

    def _next(self, turn: _Turn) -> Row | None:
        if not turn.rows:
            due = {"endpoint_id": turn.endpoint["id"], "now": to_ms(self._now())}
            found = self._db.rows(webhooks.DUE, **due, limit=PAGE)
            turn.rows.extend(row for row in found if row["event_seq"] not in turn.tried)
        return turn.rows.popleft() if turn.rows else None

    def _attempt(self, turn: _Turn, row: Row) -> None:
        turn.tried.add(row["event_seq"])
        try:
            event, at = event_of(self._db, self._resources, row), self._now()
        except BadRow:  # the next is somebody's news too
            log.exception("event %s is spoiled, and told to nobody", row["number"])
            self._give_up(row)
            return
        turn.in_flight.append(row)

        def attempt(answers: _Answers = self._answers) -> None:
            answers.put((turn, row, self._send(turn.endpoint, event, at)))

        threading.Thread(target=attempt, daemon=True).start()

    def _give_up(self, row: Row) -> None:
        key = {"event_seq": row["event_seq"], "endpoint_id": row["endpoint_id"]}
        noted = {"attempts": row["attempts"], "at": to_ms(self._now()), "answer": "spoiled"}
        unheard = dict.fromkeys(("next_at", "delivered_at", "status"))
        self._db.run(webhooks.TRIED, **key, **noted, **unheard)

    def _heard(self, turn: _Turn, row: Row, answer: Answer, told: Delivered) -> None:
        turn.in_flight.remove(row)
        turn.allowed = MOST_OF_ONE if answer.is_taken and turn.allowed else 0
        with self._db.write():
            result = self._note(row, answer)
        told.delivered += result == "delivered"
        told.failed += result != "delivered"

    def _note(self, row: Row, answer: Answer) -> str:
        """Writes how it went: delivered, failed, or given_up."""
        now, attempts = self._now(), row["attempts"] + 1
        again_at = None if answer.is_taken else next_try(attempts, now)
        changed = self._db.run(
            webhooks.TRIED,
            event_seq=row["event_seq"],
            endpoint_id=row["endpoint_id"],
            attempts=row["attempts"],
            next_at=again_at and to_ms(again_at),
            at=to_ms(now),
            delivered_at=to_ms(now) if answer.is_taken else None,
            status=answer.status,
            answer=answer.text,
        )
        result = "delivered" if answer.is_taken else "failed" if again_at else "given_up"
        if changed:
            self._db.run(tallies.ADD, name="webhook_deliveries", label=result, total=1)
            self._judge(row["endpoint_id"], answer, now)
        return result

    def _judge(self, endpoint_id: str, answer: Answer, now: datetime) -> None:
        """Whether the endpoint works, and whether it is told any more."""
        if answer.is_taken:
            self._db.run(webhooks.WORKS, id=endpoint_id)
            return
        self._db.run(webhooks.FAILS, id=endpoint_id, at=to_ms(now))
        since = from_ms(self._db.only(webhooks.BY_ID, id=endpoint_id)["failing_since"])
        if reason := why_disabled(answer.status, since, now):
            if self._db.run(webhooks.DISABLE, id=endpoint_id, at=to_ms(now), reason=reason):
                log.error("webhook %s is disabled: %s", endpoint_id, reason)
            self._db.run(webhooks.GIVE_UP, endpoint_id=endpoint_id)

    def _note_waiting(self) -> None:
        """What waits to be delivered is not forgotten."""
        oldest = self._db.only(webhooks.OLDEST_WAITING)["number"]
        last = self._db.only(public_events.LAST)["number"]
        to = last if oldest is None else oldest - 1
        reader = self._db.row(public_events.READER, name=WAITING)
        if reader is None or reader["number"] != to:
            self._db.run(public_events.PUT_READER, name=WAITING, number=to)


def wants(endpoint: Row, row: Row) -> bool:
    """Whether an endpoint is to be told of an event's row."""
    return (
        endpoint["merchant_id"] == row["merchant_id"]
        and row["number"] > endpoint["since_number"]
        and (endpoint["kinds"] is None or row["kind"] in json.loads(endpoint["kinds"]))
    )
