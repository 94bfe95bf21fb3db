"""The base class of transports: the deliveries of an event, and how one is sent."""

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

# Only this much of a response is kept: enough to find a fault, too little to leak data.
MAX_ANSWER_BYTES = 200


class NewDelivery(NamedTuple):
    """A delivery to be stored.

    A receiver gets it if it wants its `name`. `about` identifies it among the
    deliveries of its receiver. Deliveries of one `line` are sent one at a time and in
    order.
    """

    name: str
    about: str
    line: str | None = None


def delivery_of(event: PublicEvent) -> NewDelivery:
    """Returns the usual delivery of an event.

    Deliveries about one resource are in one line, so they are sent in order.
    """
    line = event.invoice_id or event.payment_link_id or event.resource_id
    return NewDelivery(event.kind, event.id, line)


class Transport:
    """A way to send events to receivers, such as webhooks or mail.

    `send` runs in a thread of its own and must not use the database. The other methods
    run in the caller's thread.
    """

    # If True, a delivery that was given up is not sent again once the receiver has accepted a later
    # one of the same line: it would undo the effect of the later one.
    drops_overtaken = False

    def deliveries_for(
        self,
        receiver: Receiver,
        event: PublicEvent,
        about: EventSubject,
        state: Row,
    ) -> Iterable[NewDelivery]:
        """Returns the deliveries of an event to this receiver, in order.

        Returns an empty list if the event does not concern it. `about` is the row that
        the event is about. `state` has the row's values that can change later.
        """
        return [delivery_of(event)]

    def adapt(self, db: Database, receiver: Receiver, row: Due, event: Event) -> Event:
        """Returns the delivery's event in the form that this receiver gets.

        Raises BadRow.
        """
        return event

    def send(
        self,
        session: Session,
        receiver: Receiver,
        event: Event,
        at: datetime,
        timeout_s: float,
    ) -> Answer:
        """Makes one attempt and returns its outcome, also if it fails.

        Mails are sent by the run's `Mail` instead.
        """
        raise NotImplementedError


def post(
    session: Session,
    url: str,
    timeout_s: float,
    body: bytes,
    headers: Mapping[str, str],
) -> Answer:
    """Posts the body, and returns the outcome. A status of 2xx means success."""
    try:
        status, start = session.post(url, timeout_s, body, headers, MAX_ANSWER_BYTES)
    except FetchError as error:
        return Answer(False, None, str(error), may_go_on=isinstance(error, TimedOut))
    text = start.decode("utf-8", "replace").replace("\0", "")
    return Answer(200 <= status < 300, status, text)
