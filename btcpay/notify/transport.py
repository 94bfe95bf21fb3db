"""A transport: the deliveries that an event has, and one attempt to send one."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from btcpay.http.http_client import Session
from btcpay.notify.events import Event
from btcpay.notify.kinds import EventSubject
from btcpay.notify.outcome import Answer
from btcpay.values.errors import FetchError, TimedOut
from storage.database import Database, Row
from storage.models import PublicEvent, Receiver
from storage.queries.deliveries import Due

# Of an answer: enough to see what is wrong, too little to be worth stealing.
MAX_ANSWER_BYTES = 200


class NewDelivery(NamedTuple):
    """One delivery, named so that a receiver may leave its kind out; `about` is its key.

    Deliveries of one `line` are sent one at a time and in order.
    """

    name: str
    about: str
    line: str | None = None


def delivery_of(event: PublicEvent) -> NewDelivery:
    """The one delivery of an event; those about the same resource are in one line."""
    line = event.invoice_id or event.payment_link_id or event.resource_id
    return NewDelivery(event.kind, event.id, line)


class Transport:
    """One way to notify. Only `send` runs in a thread of its own, without the database."""

    # True if a delivery that was given up is not sent again once the receiver has taken a later one
    # of its line, since it would undo what the later one did.
    drops_overtaken = False

    def deliveries_for(
        self, receiver: Receiver, event: PublicEvent, about: EventSubject, state: Row
    ) -> Iterable[NewDelivery]:
        """The deliveries of an event to this receiver, in order; none if it is not concerned.

        `about` is the row that the event is about; `state` has its values that may change later.
        """
        return [delivery_of(event)]

    def adapt(self, db: Database, receiver: Receiver, row: Due, event: Event) -> Event:
        """A delivery's event in the form that this receiver gets. Raises BadRow."""
        return event

    def send(
        self,
        session: Session,
        receiver: Receiver,
        event: Event,
        at: datetime,
        timeout_s: float,
    ) -> Answer:
        """Makes one attempt; a failure is an answer, too. Mails go by the run's own `Mail`."""
        raise NotImplementedError


def post(
    session: Session,
    url: str,
    timeout_s: float,
    body: bytes,
    headers: Mapping[str, str],
) -> Answer:
    """Posts the body; a status of 2xx means that it was taken."""
    try:
        status, start = session.post(url, timeout_s, body, headers, MAX_ANSWER_BYTES)
    except FetchError as error:
        return Answer(False, None, str(error), may_go_on=isinstance(error, TimedOut))
    text = start.decode("utf-8", "replace").replace("\0", "")
    return Answer(200 <= status < 300, status, text)
