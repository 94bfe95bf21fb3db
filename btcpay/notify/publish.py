"""Writes events and whom they go to, each in the transaction of what happened."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from btcpay.notify.kinds import EventKind
from btcpay.notify.transport import Happened, Named
from btcpay.notify.transports import told
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import deliveries, events, receivers


@dataclass(frozen=True)
class News:
    """Something that happened to an invoice, or to a payment to its address.

    `detail`: the row of a `payment`, or the `transaction` that was seen or has vanished.
    """

    kind: EventKind
    detail: Mapping[str, Any] = field(default_factory=dict)


def publish(
    db: Database, row: Row, news: News, now: datetime, state: Mapping[str, Any] | None = None
) -> None:
    """An event of an invoice, whose row has at least its ids. Call it within `db.write()`.

    `state` is what may change of it later: how it stands and what came; None: as it is made.
    """
    known = {**(state or {}), **news.detail}
    stored = None if state is None else orjson.dumps(known).decode()
    happened = Happened(new_id("evt"), news.kind, row, known)
    _add(db, happened, now, state=stored, invoice_id=row["id"])


def publish_link(db: Database, link: Row, kind: EventKind, now: datetime) -> None:
    """An event of a payment link; the kind says its status. Call it within `db.write()`."""
    _add(db, Happened(new_id("evt"), kind, link, {}), now, payment_link_id=link["id"])


def _add(db: Database, happened: Happened, now: datetime, **about: str | None) -> None:
    merchant_id = happened.row["merchant_id"]
    event: Row = dict.fromkeys(("invoice_id", "payment_link_id", "state")) | about
    event |= {"id": happened.event_id, "merchant_id": merchant_id, "kind": happened.kind.value}
    event["happened_at"] = to_ms(now)
    event |= db.only(events.ADD, **event)
    for receiver in db.rows(receivers.OF_MERCHANT, merchant_id=merchant_id):
        for named in told(receiver, happened):
            if wants(receiver, named.name):
                db.run(deliveries.ADD, **delivery(receiver, event["seq"], named, now))


def wants(receiver: Row, name: str) -> bool:
    """Whether it is sent what is called so: an event's kind, or by its transport's own names."""
    return receiver["kinds"] is None or name in json.loads(receiver["kinds"])


def delivery(receiver: Row, event_seq: int, named: Named, now: datetime) -> Row:
    """What brings it to the receiver from now on."""
    return {
        "receiver_id": receiver["id"],
        "about": named.about,
        "event_seq": event_seq,
        "created_at": to_ms(now),
        "next_at": to_ms(now),
        "line": named.line,
    }
