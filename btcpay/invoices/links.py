"""Payment links: making them, switching them on and off, and the amounts that they suggest."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from btcpay.invoices.create import Price, dust_limit_of, least_amount, worth_usd
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import NewEvent, News, publish
from btcpay.values.errors import CommandError, TooLittle
from btcpay.values.ids import new_id
from btcpay.values.money import of_minor, places_of, rounded
from btcpay.values.statuses import LinkStatus
from btcpay.values.times import to_ms
from schemas.requests import MAX_AMOUNT, MAX_USD
from storage.database import Database
from storage.models import PaymentLink
from storage.queries import links
from storage.statement import as_dict, blank, changed

MOST_SUGGESTED = 6  # buttons, of which a phone shows two rows
AMOUNTS = ("amount", "min_amount", "max_amount")
TEXTS = ("title", "description")
ASKS = ("ask_email", "ask_name", "ask_note")
HOW = (
    "no",
    "may",
    "must",
)  # a link asks its payer, who may leave it out or must give it


def is_nameless(wanted: Mapping[str, Any]) -> bool:
    """True for a link that its payers could not tell from another: no title, and no amount."""
    title = (wanted.get("title") or "").strip()
    return not (title or any(wanted.get(f"{name}_usd") for name in AMOUNTS))


def new_link(
    db: Database,
    now: datetime,
    merchant_id: int,
    wanted: Mapping[str, Any],
    price: Price | None = None,
) -> PaymentLink:
    """Stores an active link, publishes its event, and returns its row. Call it in `db.write()`.

    `wanted` is the loaded body of create-payment-link, perhaps with `suggested` amounts, a
    `goal_usd`, and ASKS.
    Amounts are in the currency of the price, in dollars without one. Raises CommandError for
    suggested amounts that do not fit the link, TooMuch for more than MAX_USD, and with a price,
    which a person's link has, TooLittle for less than a wallet can send.
    """
    new = blank(
        PaymentLink,
        **_texts(wanted),
        **_amounts(db, merchant_id, wanted, price),
        currency=price.currency if price else "USD",
        amount_mode=wanted["amount_mode"],
        id=wanted.get("id") or new_id("lnk"),  # a form determines one
        merchant_id=merchant_id,
        status=LinkStatus.ACTIVE,
        created_at=to_ms(now),
    )
    new = changed(new, suggested=_checked(wanted.get("suggested", ()), new))
    row = db.only(links.ADD, **as_dict(new))
    publish(db, [NewEvent(row, News(EventKind.PAYMENT_LINK_CREATED))], now)
    return row


def edit(
    db: Database, link: PaymentLink, wanted: Mapping[str, Any], price: Price | None
) -> None:
    """Changes a link's texts and ASKS, and at a price its limits and suggested amounts too.

    Raises what `new_link` raises. A fixed price and the currency stay; so do invoices made before.
    """
    new = changed(link, **_texts(wanted))
    if price:
        new = changed(new, **_amounts(db, link.merchant_id, wanted, price))
        new = changed(new, suggested=_checked(wanted.get("suggested", ()), new))
    with db.write():
        db.run(links.EDIT, **as_dict(new))


def _texts(wanted: Mapping[str, Any]) -> Any:
    asks = {name: wanted.get(name, HOW[0]) for name in ASKS}
    goal = wanted.get("goal_usd")
    return (
        {name: wanted.get(name) for name in TEXTS} | asks | {"goal": goal and str(goal)}
    )


def sum_raised(db: Database, link: PaymentLink) -> Decimal:
    """The sum that a link with a goal has brought: of what its paid invoices asked for."""
    minor = 10 ** places_of(link.currency)
    return of_minor(
        db.only(links.RAISED, through=link.id, minor=minor)[0], link.currency
    )


def _amounts(
    db: Database, merchant_id: int, wanted: Mapping[str, Any], price: Price | None
) -> Any:
    """The wanted amounts as columns, each with its worth in dollars. Raises TooLittle, TooMuch."""
    typed = {name: wanted.get(f"{name}_usd") for name in AMOUNTS}
    if price:
        least = least_amount(
            dust_limit_of(db, merchant_id), price.in_currency, price.currency
        )
        said = [*typed.values(), *wanted.get("suggested", ())]
        if any(amount and amount < least for amount in said):
            raise TooLittle(least, price.currency)
    worth = {
        name: amount and worth_usd(amount, price) for name, amount in typed.items()
    }
    columns = typed | {f"{name}_usd": usd for name, usd in worth.items()}
    return {
        name: None if amount is None else str(amount)
        for name, amount in columns.items()
    }


def bounds(link: PaymentLink) -> tuple[Decimal, Decimal]:
    """The least and the greatest amount of a flexible link; 0 means anything above 0."""
    return Decimal(link.min_amount or 0), Decimal(
        link.max_amount or most(link.currency)
    )


def most(currency: str) -> Decimal:
    """The greatest amount that can be typed; its worth in dollars is checked with the price."""
    return Decimal(MAX_USD if currency == "USD" else MAX_AMOUNT)


def _checked(amounts: Sequence[Decimal], link: PaymentLink) -> str | None:
    """The amounts as they are stored; None for none."""
    if not amounts:
        return None
    if link.amount_mode != "flexible":
        raise CommandError("a link with a fixed price suggests no amounts")
    (low, high) = bounds(link)
    currency = link.currency
    for amount in amounts:
        if not (
            amount > 0 and low <= amount <= high and amount == rounded(amount, currency)
        ):
            raise CommandError(
                f"{amount} {currency} cannot be paid by this link: see its bounds"
            )
    if len(set(amounts)) < len(amounts) or len(amounts) > MOST_SUGGESTED:
        raise CommandError(
            f"at most {MOST_SUGGESTED} amounts can be suggested, each once"
        )
    return " ".join(map(str, amounts))


def set_active(db: Database, link_id: str, active: bool, now: datetime) -> None:
    """Lets a link make invoices, or stops it. Raises CommandError when there is no such link."""
    status = LinkStatus.ACTIVE if active else LinkStatus.INACTIVE
    with db.write():
        row = db.named(links.LOCKED, f"payment link {link_id!r}", id=link_id)
        db.run(links.SET_STATUS, id=link_id, status=status)
        if row.status == LinkStatus.ACTIVE and not active:
            publish(db, [NewEvent(row, News(EventKind.PAYMENT_LINK_DEACTIVATED))], now)
