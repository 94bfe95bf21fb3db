"""A transport: what its receivers are told of an event, and how one attempt is made."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from btcpay.http.http_client import Session
from btcpay.notify.kinds import EventKind
from btcpay.notify.read import Event
from btcpay.notify.retries import Answer
from storage.database import Database, Row


class Happened(NamedTuple):
    """An event that is written now: `row` is its invoice's or its link's, `state` what came."""

    event_id: str
    kind: EventKind
    row: Mapping[str, Any]
    state: Mapping[str, Any]


class Named(NamedTuple):
    """One delivery: by its `name` a receiver can do without it, `about` is its key there.

    Those of one `line` are sent one at a time and in order.
    """

    name: str
    about: str
    line: str | None = None


class Transport:
    """One way to notify. Only `send` runs in a thread of its own, without the database."""

    def names(self, receiver: Row, happened: Happened) -> Iterable[Named]:
        """What this receiver is told of an event, in order: nothing if it does not concern it."""
        return [Named(happened.kind, happened.event_id)]

    def told(self, db: Database, receiver: Row, row: Row, event: Event) -> Event:
        """The event of a delivery as this receiver is told it. Raises BadRow."""
        return event

    def send(
        self, session: Session, receiver: Row, event: Event, at: datetime, timeout_s: float
    ) -> Answer:
        """One attempt; what goes wrong is an answer too. Mails go by the run's own `Mail`."""
        raise NotImplementedError
