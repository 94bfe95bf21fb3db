"""Transport: a plug-in's webhooks, by Greenfield's names, one at a time for an order and in order.

Source: docs.btcpayserver.org/API/Greenfield/v1, Webhooks; the signature is `BTCPay-Sig`.
"""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import orjson

from btcpay.greenfield import queries
from btcpay.greenfield.meanings import webhooks_of
from btcpay.http.http_client import Session
from btcpay.notify.kinds import EventKind
from btcpay.notify.outcome import Answer
from btcpay.notify.read import Event, state_of
from btcpay.notify.transport import Named, Transport, post
from storage.database import Database, Row
from storage.models import Invoice, PaymentLink, PublicEvent, Receiver
from storage.queries.deliveries import Due

NAME = "greenfield"


class Greenfield(Transport):
    """A receiver is told of its own store's orders."""

    def names(
        self, receiver: Receiver, event: PublicEvent, about: Invoice | PaymentLink, state: Row
    ) -> Iterator[Named]:
        if getattr(about, "store_id", None) == receiver.store_id:
            webhooks = webhooks_of(EventKind(event.kind), state, None)
            for place, (webhook, _) in enumerate(webhooks):
                yield Named(webhook, f"{event.id} {place} {webhook}", line=about.id)

    def told(self, db: Database, receiver: Receiver, row: Due, event: Event) -> Event:
        """With a plug-in's content as its data; erased metadata stay erased."""
        invoice = db.only(queries.ORDER, store_id=receiver.store_id, id=row.invoice_id or "")
        place, _, webhook = row.about.removeprefix(f"{row.id} ").partition(" ")
        state = state_of(row) if row.state is not None else {}
        content = {
            "deliveryId": f"{row.id}.{place}.{row.attempts + 1}",
            "webhookId": receiver.id,
            "originalDeliveryId": f"{row.id}.{place}.1",
            "isRedelivery": bool(row.attempts),
            "type": webhook,
            "timestamp": row.happened_at // 1000,
            "storeId": receiver.store_id,
            "invoiceId": invoice.id,
            "metadata": orjson.loads(invoice.metadata or "{}"),
        }
        flags = dict(webhooks_of(event.kind, state, invoice)).get(webhook, {})
        return replace(event, data=content | flags)

    def send(
        self, session: Session, receiver: Receiver, event: Event, at: datetime, timeout_s: float
    ) -> Answer:
        """2xx takes it."""
        body = orjson.dumps(event.data)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "BTCPay-Sig": signature(receiver.secret or "", body),
        }
        return post(session, receiver.url or "", timeout_s, body, headers)


def signature(secret: str, body: bytes) -> str:
    """`sha256=` and the hex of HMAC-SHA256 over the body."""
    return "sha256=" + hmac.digest(secret.encode(), body, hashlib.sha256).hex()


TRANSPORT = Greenfield()
