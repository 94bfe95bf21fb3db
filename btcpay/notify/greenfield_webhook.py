"""Transport: a POST as BTCPay Server's Greenfield webhooks are sent, signed in `BTCPay-Sig`.

Source: docs.btcpayserver.org/API/Greenfield/v1, Webhooks.
"""

import hashlib
import hmac
from dataclasses import replace
from datetime import datetime

import orjson

from btcpay.http.http_client import Session
from btcpay.notify.greenfield_words import flags_of
from btcpay.notify.read import Event, state_of
from btcpay.notify.retries import Answer
from btcpay.notify.standard_webhook import post
from storage.database import Database, Row
from storage.queries import stores


def in_greenfield(db: Database, receiver: Row, row: Row, event: Event) -> Event:
    """The event of a delivery with what a plug-in is sent as its data. Raises BadRow.

    Of the metadata what is still kept.
    """
    invoice = db.only(stores.ORDER, store_id=receiver["store_id"], id=row["invoice_id"])
    place, _, webhook = row["about"].removeprefix(f"{row['id']} ").partition(" ")
    state = state_of(row) if row["state"] is not None else {}
    content = {
        "deliveryId": f"{row['id']}.{place}.{row['attempts'] + 1}",
        "webhookId": receiver["id"],
        "originalDeliveryId": f"{row['id']}.{place}.1",
        "isRedelivery": bool(row["attempts"]),
        "type": webhook,
        "timestamp": row["happened_at"] // 1000,
        "storeId": receiver["store_id"],
        "invoiceId": invoice["id"],
        "metadata": orjson.loads(invoice["metadata"] or "{}"),
    }
    return replace(event, data=content | flags_of(webhook, event.kind, state, invoice))


def signature(secret: str, body: bytes) -> str:
    """`sha256=` and the hex of HMAC-SHA256 over the body."""
    return "sha256=" + hmac.digest(secret.encode(), body, hashlib.sha256).hex()


def send(session: Session, receiver: Row, event: Event, _at: datetime, timeout_s: float) -> Answer:
    """One attempt; what goes wrong is an answer too. 2xx takes it."""
    body = orjson.dumps(event.data)
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "BTCPay-Sig": signature(receiver["secret"], body),
    }
    return post(session, receiver["url"], timeout_s, body, headers)
