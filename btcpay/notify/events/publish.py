"""Writes events, each in the transaction of what happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from btcpay.notify.events.kinds import EventKind
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import public_events


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
    """Tells of an invoice, whose row has at least its ids. Call it within `db.write()`.

    `state` is what may change of it later: how it stands and what came; None: as it is made.
    """
    stored = None if state is None else orjson.dumps({**state, **news.detail}).decode()
    _add(db, news.kind, now, row["merchant_id"], stored, invoice_id=row["id"])


def publish_link(db: Database, link: Row, kind: EventKind, now: datetime) -> None:
    """Tells of a payment link; the kind says its status. Call it within `db.write()`."""
    _add(db, kind, now, link["merchant_id"], None, payment_link_id=link["id"])


def _add(
    db: Database,
    kind: EventKind,
    now: datetime,
    merchant_id: int,
    state: str | None,
    invoice_id: str | None = None,
    payment_link_id: str | None = None,
) -> None:
    db.run(
        public_events.ADD,
        id=new_id("evt"),
        merchant_id=merchant_id,
        invoice_id=invoice_id,
        payment_link_id=payment_link_id,
        kind=kind.value,
        state=state,
        happened_at=to_ms(now),
    )
