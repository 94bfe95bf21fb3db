"""Keeps what wants attention up to date and tells what happened, in the transaction of that."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from btcpay.invoices.events import BY_HAND
from btcpay.invoices.status import invoice_of, verdict_of
from btcpay.merchants.account import least_sats_of
from btcpay.notify.events.kinds import EventKind
from btcpay.notify.events.publish import News, publish
from btcpay.settings.settings import Settings
from btcpay.settlement.attention import Happening, reason_for
from btcpay.settlement.values import Verdict
from btcpay.values.times import to_ms
from storage.database import Database, Row
from storage.queries import attentions, events, invoices
from storage.queries.events import Kind


def heed(
    db: Database, settings: Settings, invoice_id: str, now: datetime, news: Sequence[News] = ()
) -> str | None:
    """Decides anew whether an invoice wants attention; the reason, None when it does not.

    Then tells the `news`, and that it wants attention if it did not for this reason: each with the
    state that all of them have led to.
    Call it inside the transaction of the change, and behind the lock of the balance: whoever
    changes the invoice next sees both.
    """
    row = db.only(invoices.WHOLE, id=invoice_id)
    verdict = verdict_of(db, settings, row, now)
    reason = reason_for(
        invoice_of(row),
        verdict,
        [
            happening
            for event in db.rows(events.OF_MONEY, invoice_id=invoice_id)
            if (happening := _happening(event))
        ],
        least_sats_of(row["deposit_address"], settings.network),
    )
    if not reason:
        db.run(attentions.CLEAR, invoice_id=invoice_id)
    elif _want(db, row, reason, now):
        news = [*news, News(EventKind.INVOICE_ATTENTION)]
    for one in news:
        publish(db, row, one, now, _state(row, verdict, reason))
    return reason


def _want(db: Database, row: Row, reason: str, now: datetime) -> bool:
    """Whether the invoice did not want attention for this reason before."""
    of = {"invoice_id": row["id"]}
    before = db.row(attentions.OF_INVOICE, **of)
    new = {"merchant_id": row["merchant_id"], "reason": reason, "since_at": to_ms(now)}
    db.run(attentions.WANT, **of, **new)
    return before is None or before["reason"] != reason


def _state(row: Row, verdict: Verdict, reason: str | None) -> dict[str, Any]:
    return {
        "status": row["status"],
        "tx_hash": row["tx_hash"],
        "paid_at": row["paid_at"],
        "received_sats": verdict.received_sats,
        "unconfirmed_sats": verdict.unconfirmed_sats,
        "missing_sats": verdict.missing_sats,
        "attention": reason,
    }


def _happening(event: Row) -> Happening | None:
    """None when a reorganisation took back an output that was no payment yet."""
    kind, detail = event["kind"], json.loads(event["detail"])
    if kind == Kind.REORGANISED:
        return Happening("undone", detail["txid"]) if "id" in detail else None
    if kind == Kind.PAID and detail.get("reason", "").startswith(BY_HAND):
        return Happening("settled")
    return Happening(kind, detail.get("txid", ""))
