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
from typing import Any, NamedTuple

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


class Webhook(NamedTuple):
    """A webhook to send: its name in Greenfield, and the fields that not all webhooks have."""

    name: str
    fields: dict[str, Any]


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
        for place, webhook in enumerate(webhooks):
            # `adapt` parses this text.
            about_text = f"{event.id} {place} {webhook.name}"
            yield NewDelivery(webhook.name, about_text, line=about.id)

    def adapt(self, db: Database, receiver: Receiver, row: Due, event: Event) -> Event:
        """Returns the event with the content of Greenfield's webhook as its data.

        The metadata are those that the invoice has now, so that erased metadata are not
        sent.
        """
        invoice = db.get(
            queries.ORDER, store_id=receiver.store_id, id=row.invoice_id or ""
        )
        place, _, name = row.about.removeprefix(f"{row.id} ").partition(" ")
        state: Mapping[str, Any] = {}
        if row.state is not None:
            state = state_of(row)
        content = {
            "deliveryId": f"{row.id}.{place}.{row.attempts + 1}",
            "webhookId": receiver.id,
            "originalDeliveryId": f"{row.id}.{place}.1",
            "isRedelivery": bool(row.attempts),
            "type": name,
            "timestamp": row.happened_ms // 1000,
            "storeId": receiver.store_id,
            "invoiceId": invoice.id,
            "metadata": orjson.loads(invoice.metadata or "{}"),
        }
        fields_by_name = dict(webhooks_of(event.kind, state, invoice))
        return replace(event, data=content | fields_by_name.get(name, {}))

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
) -> list[Webhook]:
    """Returns the webhooks to send for an event, in order.

    They depend on the kind of the event, and on `state`, the invoice's state that was
    stored with the event. `invoice` is the current row, from which some values of the
    fields come; None if the caller needs only the names.
    """
    is_overpaid = False
    is_marked = False
    if invoice:
        is_overpaid = _paid_sats(state) > invoice.amount_sats
        is_marked = bool(invoice.settled_reason)
    match kind:
        case EventKind.INVOICE_CREATED:
            return [Webhook("InvoiceCreated", {})]
        case EventKind.INVOICE_PAYMENT_SEEN:
            return _payment_seen(state, is_overpaid)
        case EventKind.PAYMENT_RECEIVED:
            settled = Webhook("InvoicePaymentSettled", _payment_fields(state))
            if state.get("is_first_seen"):
                return [*_payment_seen(state, is_overpaid), settled]
            return [settled]
        case EventKind.INVOICE_PAID:
            fields = {"overPaid": is_overpaid, "manuallyMarked": is_marked}
            return [Webhook("InvoiceSettled", fields)]
        case EventKind.INVOICE_EXPIRED:
            is_partly_paid = state.get("received_sats", 0) > 0
            return [Webhook("InvoiceExpired", {"partiallyPaid": is_partly_paid})]
        case EventKind.INVOICE_CANCELED:
            return [Webhook("InvoiceInvalid", {"manuallyMarked": True})]
        case EventKind.INVOICE_REOPENED:
            return [Webhook("InvoiceInvalid", {"manuallyMarked": False})]
        case _:
            return []


def _payment_seen(state: Mapping[str, Any], is_overpaid: bool) -> list[Webhook]:
    """Returns the webhooks about a payment that does not count yet."""
    webhooks = [Webhook("InvoiceReceivedPayment", _payment_fields(state))]
    if state.get("status") == InvoiceStatus.OPEN and state.get("missing_sats") == 0:
        webhooks.append(Webhook("InvoiceProcessing", {"overPaid": is_overpaid}))
    return webhooks


def _payment_fields(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "afterExpiration": state.get("status") in ENDED,
        "paymentMethod": "BTC",
        "paymentMethodId": "BTC-CHAIN",
    }


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
