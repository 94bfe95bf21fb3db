"""Payment links: made, on and off, and the amounts that they suggest."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import publish_link
from btcpay.values.errors import CommandError
from btcpay.values.ids import new_id
from btcpay.values.times import to_ms
from schemas.requests import MAX_USD
from storage.database import Database, Row
from storage.queries import links

MOST_SUGGESTED = 6  # buttons, of which a phone shows two rows
AMOUNTS = ("amount_usd", "min_amount_usd", "max_amount_usd")


def new_link(db: Database, now: datetime, merchant_id: int, wanted: Mapping[str, Any]) -> Row:
    """Stores an active link, publishes its event, and returns its row. Call it in `db.write()`.

    `wanted`: what the schema of create-payment-link loads, and perhaps amounts that are
    `suggested`. Raises CommandError for such that do not fit the link.
    """
    fields = {name: wanted.get(name) for name in ("title", "description", "amount_mode", *AMOUNTS)}
    row = db.only(
        links.ADD,
        **{name: None if value is None else str(value) for name, value in fields.items()},
        id=wanted.get("id") or new_id("lnk"),  # a form has promised one
        merchant_id=merchant_id,
        status="active",
        created_at=to_ms(now),
        suggested=_checked(wanted.get("suggested", ()), wanted),
    )
    publish_link(db, row, EventKind.PAYMENT_LINK_CREATED, now)
    return row


def bounds(link: Mapping[str, Any]) -> tuple[Decimal, Decimal]:
    """The least and the greatest amount of a flexible link, in USD; 0 means anything above 0."""
    low, high = link.get("min_amount_usd"), link.get("max_amount_usd")
    return Decimal(low or 0), Decimal(high or MAX_USD)


def read_suggested(text: str) -> list[Decimal]:
    """Amounts in USD from `5,10,20` (a point before cents). Raises CommandError."""
    words = text.replace(",", " ").split()
    if not words or not all(re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,2})?", word) for word in words):
        raise CommandError("suggested amounts are dollars with commas between, such as 5,10,19.90")
    return [Decimal(word) for word in words]


def suggest(db: Database, link_id: str, amounts: Sequence[Decimal]) -> Row:
    """Sets the amounts in USD that a link suggests; the link's row. Raises CommandError."""
    with db.write():
        row = _locked(db, link_id)
        row["suggested"] = _checked(amounts, row)
        db.run(links.SUGGEST, id=link_id, suggested=row["suggested"])
    return row


def _checked(amounts: Sequence[Decimal], link: Mapping[str, Any]) -> str | None:
    """The amounts as they are stored; None for none."""
    if not amounts:
        return None
    if link["amount_mode"] != "flexible":
        raise CommandError("a link with a fixed price suggests no amounts")
    low, high = bounds(link)
    for amount_usd in amounts:
        if not (amount_usd > 0 and low <= amount_usd <= high):
            raise CommandError(f"{amount_usd} USD cannot be paid by this link: see its bounds")
    if len(set(amounts)) < len(amounts) or len(amounts) > MOST_SUGGESTED:
        raise CommandError(f"at most {MOST_SUGGESTED} amounts can be suggested, each once")
    return " ".join(map(str, amounts))


def set_active(db: Database, link_id: str, active: bool, now: datetime) -> None:
    """Lets a link make invoices, or stops it. Raises CommandError when there is no such link."""
    status = "active" if active else "inactive"
    with db.write():
        row = _locked(db, link_id)
        db.run(links.SET_STATUS, id=link_id, status=status)
        if row["status"] == "active" and not active:
            publish_link(db, row, EventKind.PAYMENT_LINK_DEACTIVATED, now)


def _locked(db: Database, link_id: str) -> Row:
    row = db.row(links.LOCKED, id=link_id)
    if row is None:
        raise CommandError(f"there is no payment link {link_id!r}")
    return row
