"""Payment links: made, on and off."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from btcpay.errors import CommandError
from btcpay.events.kinds import EventKind
from btcpay.events.publish import publish_link
from btcpay.ids import new_id
from btcpay.times import to_ms
from storage.database import Database, Row
from storage.queries import links


def new_link(db: Database, now: datetime, merchant_id: int, wanted: Mapping[str, Any]) -> Row:
    """Stores an active link, tells of it, and returns its row. Call it inside `db.write()`.

    `wanted` is what the schema of create-payment-link made of a body.
    """
    row = db.only(
        links.ADD,
        id=wanted.get("id") or new_id("lnk"),  # a form has promised one
        merchant_id=merchant_id,
        status="active",
        title=wanted.get("title"),
        description=wanted.get("description"),
        amount_mode=wanted["amount_mode"],
        amount_usd=_text(wanted.get("amount_usd")),
        min_amount_usd=_text(wanted.get("min_amount_usd")),
        max_amount_usd=_text(wanted.get("max_amount_usd")),
        created_at=to_ms(now),
    )
    publish_link(db, row, EventKind.PAYMENT_LINK_CREATED, now)
    return row


def _text(amount_usd: Decimal | None) -> str | None:
    return None if amount_usd is None else str(amount_usd)


def set_active(db: Database, link_id: str, active: bool, now: datetime) -> None:
    """Lets a link make invoices, or stops it. Raises CommandError when there is no such link."""
    status = "active" if active else "inactive"
    with db.write():
        row = db.row(links.LOCKED, id=link_id)
        if row is None:
            raise CommandError(f"there is no payment link {link_id!r}")
        db.run(links.SET_STATUS, id=link_id, status=status)
        if row["status"] == "active" and not active:
            publish_link(db, row, EventKind.PAYMENT_LINK_DEACTIVATED, now)
