"""Keeps what wants attention up to date, in the transaction of whatever happens."""

import json
from datetime import datetime

from btcpay.invoices.events import BY_HAND
from btcpay.invoices.status import invoice_of, verdict_of
from btcpay.settings import Settings
from btcpay.settlement.attention import Happening, reason_for
from btcpay.times import to_ms
from btcpay.wallet.account import least_sats_of
from storage.database import Database, Row
from storage.queries import attentions, events, invoices
from storage.queries.events import Kind


def heed(db: Database, settings: Settings, invoice_id: str, now: datetime) -> str | None:
    """Decides anew whether an invoice wants attention; the reason, None when it does not.

    Call it inside the transaction of the change, and behind the lock of the balance: whoever
    changes the invoice next sees both.
    """
    row = db.only(invoices.WHOLE, id=invoice_id)
    reason = reason_for(
        invoice_of(row),
        verdict_of(db, settings, row, now),
        [
            happening
            for event in db.rows(events.OF_MONEY, invoice_id=invoice_id)
            if (happening := _happening(event))
        ],
        least_sats_of(row["deposit_address"], settings.network),
    )
    if reason:
        want(db, invoice_id, reason, now)
    else:
        db.run(attentions.CLEAR, invoice_id=invoice_id)
    return reason


def want(db: Database, invoice_id: str, reason: str, now: datetime) -> None:
    """Has an invoice want attention."""
    db.run(attentions.WANT, invoice_id=invoice_id, reason=reason, since_at=to_ms(now))


def _happening(event: Row) -> Happening | None:
    """None when a reorganisation took back an output that was no payment yet."""
    kind, detail = event["kind"], json.loads(event["detail"])
    if kind == Kind.REORGANISED:
        return Happening("undone", detail["txid"]) if "id" in detail else None
    if kind == Kind.PAID and detail.get("reason", "").startswith(BY_HAND):
        return Happening("settled")
    return Happening(kind, detail.get("txid", ""))
