"""Writes events and whom they go to, each in the transaction of what happened."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from btcpay.notify.greenfield import webhooks_of
from btcpay.notify.kinds import EventKind
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Invoice, PaymentLink, PublicEvent, Receiver
from storage.queries import deliveries, events, receivers


@dataclass(frozen=True)
class News:
    """Something that happened to an invoice, or to a payment to its address.

    `detail`: the row of a `payment`, or the `transaction` that was seen or has vanished.
    """

    kind: EventKind
    detail: Mapping[str, Any] = field(default_factory=dict)


def publish(
    db: Database, row: Invoice, news: News, now: datetime, state: Mapping[str, Any] | None = None
) -> None:
    """An event of an invoice. Call it within `db.write()`.

    `state` is what may change of it later: how it stands and what came; None: as it is made.
    """
    known = {**(state or {}), **news.detail}
    stored = None if state is None else orjson.dumps(known).decode()
    shop = (row.store_id, [name for name, _ in webhooks_of(news.kind, known, None)])
    _add(db, news.kind, now, row.merchant_id, shop, state=stored, invoice_id=row.id)


def publish_link(db: Database, link: PaymentLink, kind: EventKind, now: datetime) -> None:
    """An event of a payment link; the kind says its status. Call it within `db.write()`."""
    _add(db, kind, now, link.merchant_id, payment_link_id=link.id)


def _add(
    db: Database,
    kind: EventKind,
    now: datetime,
    merchant_id: int,
    shop: tuple[str | None, Sequence[str]] = (None, ()),
    **about: str | None,
) -> None:
    """`shop`: the store whose order it is, and the webhooks that it is sent of it."""
    new: dict[str, Any] = dict.fromkeys(("invoice_id", "payment_link_id", "state")) | about
    new |= {"id": new_id("evt"), "merchant_id": merchant_id, "kind": kind.value}
    event = db.only(events.ADD, **new, happened_at=to_ms(now))
    store_id, webhooks = shop
    for receiver in db.rows(receivers.OF_MERCHANT, merchant_id=merchant_id):
        if receiver.store_id is None and wants(receiver, event.kind):
            db.run(deliveries.ADD, **delivery(receiver, event, now))
        elif receiver.store_id is not None and receiver.store_id == store_id:
            for place, webhook in enumerate(webhooks):
                if wants(receiver, webhook):
                    about_it = f"{event.id} {place} {webhook}"
                    in_line: Values = {"about": about_it, "line": event.invoice_id}
                    db.run(deliveries.ADD, **delivery(receiver, event, now) | in_line)


def wants(receiver: Receiver, kind: str) -> bool:
    """Whether it is sent events of a kind; a plug-in's are called as its webhooks are."""
    return receiver.kinds is None or kind in json.loads(receiver.kinds)


def delivery(receiver: Receiver, event: PublicEvent, now: datetime) -> Values:
    """What brings the event to the receiver from now on.

    A customer gets one receipt of an invoice, whatever a reorganisation does to it.
    """
    is_receipt = receiver.transport == receivers.RECEIPT
    return {
        "receiver_id": receiver.id,
        "about": event.invoice_id or "" if is_receipt else event.id,
        "event_seq": event.seq,
        "created_at": to_ms(now),
        "next_at": to_ms(now),
        "line": None,
    }
