"""Sends an order's events to a plug-in's webhooks, in Greenfield's form.

The deliveries about one order are sent one at a time and in order.

Source: docs.btcpayserver.org/API/Greenfield/v1, Webhooks. The signature is in the
header `BTCPay-Sig`.
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from btcpay import hooks
from btcpay.http.http_client import Session
from btcpay.notify.events import Event, state_of
from btcpay.notify.kinds import EventKind, EventSubject, Kind
from btcpay.notify.outcome import Answer
from btcpay.notify.transport import NewDelivery, Transport, post
from btcpay.parts.greenfield import queries
from btcpay.values.statuses import InvoiceStatus
from storage.database import Database, Row
from storage.models import Invoice, PublicEvent, Receiver
from storage.queries.deliveries import Due

NAME = "greenfield"
WEBHOOKS = (
    "InvoiceCreated InvoiceReceivedPayment InvoiceProcessing InvoicePaymentSettled"
    " InvoiceSettled InvoiceExpired InvoiceInvalid"
)
ENDED = (InvoiceStatus.EXPIRED, InvoiceStatus.CANCELED)
Webhooks = list[tuple[str, dict[str, Any]]]


class Greenfield(Transport):
    """The transport for webhooks of shops.

    A webhook gets only events about orders of its own store.
    """

    drops_overtaken = True

    def deliveries_for(
        self,
        receiver: Receiver,
        event: PublicEvent,
        about: EventSubject,
        state: Row,
    ) -> Iterator[NewDelivery]:
        is_of_store = getattr(about, "store_id", None) == receiver.store_id
        # Greenfield has no name for the events of parts, for example of refunds.
        if not event.invoice_id or not is_of_store:
            return
        webhooks = webhooks_of(EventKind(event.kind), state, None)
        for place, (webhook, _) in enumerate(webhooks):
            yield NewDelivery(webhook, f"{event.id} {place} {webhook}", line=about.id)

    def adapt(self, db: Database, receiver: Receiver, row: Due, event: Event) -> Event:
        """Returns the event with the content of Greenfield's webhook as its data.

        The metadata are those that the invoice has now, so that erased metadata are not
        sent.
        """
        invoice = db.get(
            queries.ORDER, store_id=receiver.store_id, id=row.invoice_id or ""
        )
        place, _, webhook = row.about.removeprefix(f"{row.id} ").partition(" ")
        state: Mapping[str, Any] = {}
        if row.state is not None:
            state = state_of(row)
        content = {
            "deliveryId": f"{row.id}.{place}.{row.attempts + 1}",
            "webhookId": receiver.id,
            "originalDeliveryId": f"{row.id}.{place}.1",
            "isRedelivery": bool(row.attempts),
            "type": webhook,
            "timestamp": row.happened_ms // 1000,
            "storeId": receiver.store_id,
            "invoiceId": invoice.id,
            "metadata": orjson.loads(invoice.metadata or "{}"),
        }
        flags = dict(webhooks_of(event.kind, state, invoice)).get(webhook, {})
        return replace(event, data=content | flags)

    def send(
        self,
        session: Session,
        receiver: Receiver,
        event: Event,
        at: datetime,
        timeout_s: float,
    ) -> Answer:
        body = orjson.dumps(event.data)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "BTCPay-Sig": signature(receiver.secret or "", body),
        }
        return post(session, receiver.url or "", timeout_s, body, headers)


def webhooks_of(
    kind: Kind,
    state: Mapping[str, Any],
    invoice: Invoice | None,
) -> Webhooks:
    """Returns the webhooks to send for an event, in order.

    Each webhook is a pair: its name in Greenfield, and a dict of the fields that not
    all webhooks have. Which webhooks are sent depends on the kind of the event, and on
    `state`, the invoice's state that was stored with the event. `invoice` is the
    current row, from which some values of the fields come; None if the caller needs
    only the names.
    """
    over = {"overPaid": False}
    is_marked = False
    if invoice:
        over = {"overPaid": _paid_sats(state) > invoice.amount_sats}
        is_marked = bool(invoice.settled_reason)
    payment = {
        "afterExpiration": state.get("status") in ENDED,
        "paymentMethod": "BTC",
        "paymentMethodId": "BTC-CHAIN",
    }
    payment_seen: Webhooks = [("InvoiceReceivedPayment", payment)]
    if state.get("status") == InvoiceStatus.OPEN and state.get("missing_sats") == 0:
        payment_seen.append(("InvoiceProcessing", over))
    payment_received: Webhooks = []
    if state.get("is_first_seen"):
        payment_received += payment_seen
    payment_received.append(("InvoicePaymentSettled", payment))
    settled = over | {"manuallyMarked": is_marked}
    expired = {"partiallyPaid": state.get("received_sats", 0) > 0}
    webhooks: dict[Kind, Webhooks] = {
        EventKind.INVOICE_CREATED: [("InvoiceCreated", {})],
        EventKind.INVOICE_PAYMENT_SEEN: payment_seen,
        EventKind.PAYMENT_RECEIVED: payment_received,
        EventKind.INVOICE_PAID: [("InvoiceSettled", settled)],
        EventKind.INVOICE_EXPIRED: [("InvoiceExpired", expired)],
        EventKind.INVOICE_CANCELED: [("InvoiceInvalid", {"manuallyMarked": True})],
        EventKind.INVOICE_REOPENED: [("InvoiceInvalid", {"manuallyMarked": False})],
    }
    return webhooks.get(kind, [])


def _paid_sats(state: Mapping[str, Any]) -> int:
    """Returns the satoshis that were received when the event happened.

    For a paid invoice, they include those that came too late or in excess.
    """
    paid_sats: int = state.get("received_sats", 0)
    if state.get("status") == InvoiceStatus.PAID:
        paid_sats += state.get("unapplied_sats", 0)
    return paid_sats


def signature(secret: str, body: bytes) -> str:
    """Returns `sha256=` followed by the HMAC-SHA256 of the body in hex."""
    return "sha256=" + hmac.digest(secret.encode(), body, hashlib.sha256).hex()


HOOK = hooks.Transports(name=NAME, transport=Greenfield())
