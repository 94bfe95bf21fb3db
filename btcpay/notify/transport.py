"""A transport: what its receivers are told of an event, and how one attempt is made."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from btcpay.http.http_client import Session
from btcpay.notify.read import Event
from btcpay.notify.retries import Answer
from storage.database import Database, Row
from storage.models import Invoice, PaymentLink, PublicEvent, Receiver
from storage.queries.deliveries import Due


class Named(NamedTuple):
    """One delivery: `name` is what a receiver may leave out, `about` the delivery's key.

    Those of one `line` are sent one at a time and in order.
    """

    name: str
    about: str
    line: str | None = None


class Transport:
    """One way to notify. Only `send` runs in a thread of its own, without the database."""

    def names(
        self, receiver: Receiver, event: PublicEvent, about: Invoice | PaymentLink, state: Row
    ) -> Iterable[Named]:
        """What this receiver is told of an event, in order: nothing if it does not concern it.

        `about`: the row of its invoice or its link; `state`: what may change of it later.
        """
        return [Named(event.kind, event.id)]

    def told(self, db: Database, receiver: Receiver, row: Due, event: Event) -> Event:
        """The event of a delivery as this receiver is told it. Raises BadRow."""
        return event

    def send(
        self, session: Session, receiver: Receiver, event: Event, at: datetime, timeout_s: float
    ) -> Answer:
        """One attempt; what goes wrong is an answer too. Mails go by the run's own `Mail`."""
        raise NotImplementedError
