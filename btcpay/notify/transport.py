"""The base class of transports, the ways to send events to receivers."""

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
    """A delivery to be stored: an event that is to be sent to one receiver.

    - `name`: the delivery is stored only if the receiver wants deliveries of this name.
    - `about`: identifies the delivery among all deliveries to the same receiver.
    - `line`: deliveries with the same line are sent one at a time and in order. None if
      the order does not matter.
    """

    name: str
    about: str
    line: str | None = None


def delivery_of(event: PublicEvent) -> NewDelivery:
    """Returns the delivery of an event, as most transports store it.

    Deliveries about the same invoice, payment link or other resource have the same
    `line`, so they are sent in order.
    """
    line = event.invoice_id or event.payment_link_id or event.resource_id
    return NewDelivery(event.kind, event.id, line)


class Transport:
    """The base class of ways to send events to receivers, such as webhooks or mail.

    `send` runs in its own thread, and must not use the database. The other methods run
    in the caller's thread.
    """

    # If True, a delivery that was given up is not sent again once the receiver has accepted a later
    # delivery of the same line, whose effect it would undo.
    drops_overtaken = False

    def deliveries_for(
        self,
        receiver: Receiver,
        event: PublicEvent,
        about: EventSubject,
        state: Row,
    ) -> Iterable[NewDelivery]:
        """Returns the deliveries of an event to this receiver, in order.

        Returns an empty list if the event does not concern the receiver. `about` is the
        row that the event is about, such as an invoice. `state` has those values of the
        row that can change later.
        """
        return [delivery_of(event)]

    def adapt(self, db: Database, receiver: Receiver, row: Due, event: Event) -> Event:
        """Returns the event with the data in the form that this receiver expects.

        `row` is the delivery. Raises BadRow if a stored value is invalid.
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
        """Makes one attempt to send the event. Returns the outcome, even of a failure.

        `at` is the time of the attempt. Transports of mails do not implement this method,
        since the class `Mail` in mail/transport.py sends mails.
        """
        raise NotImplementedError


def post(
    session: Session,
    url: str,
    timeout_s: float,
    body: bytes,
    headers: Mapping[str, str],
) -> Answer:
    """Sends a POST request, and returns the outcome. A status of 2xx means success."""
    try:
        status, start = session.post(url, timeout_s, body, headers, MAX_ANSWER_BYTES)
    except FetchError as error:
        has_timed_out = isinstance(error, TimedOut)
        return Answer(
            is_taken=False,
            status=None,
            text=str(error),
            may_go_on=has_timed_out,
        )
    is_taken = 200 <= status < 300
    # PostgreSQL stores no null characters.
    text = start.decode("utf-8", "replace").replace("\0", "")
    return Answer(is_taken, status, text)
