"""Payment links: creates, edits, activates and deactivates them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from btcpay.invoices.orders import USD
from btcpay.invoices.quotes import Price, least_amount, worth_usd
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import NewEvent, News, publish
from btcpay.values.errors import CommandError, TooLittle
from btcpay.values.ids import new_id
from btcpay.values.money import of_minor, places_of, round_money
from btcpay.values.statuses import LinkStatus
from btcpay.values.times import to_ms
from schemas.requests import MAX_AMOUNT, MAX_USD
from storage.database import Database
from storage.models import PaymentLink
from storage.queries import links
from storage.statement import as_dict, blank, replace

MOST_SUGGESTED = 6  # as buttons they fill two rows on a phone
AMOUNTS = ("amount", "min_amount", "max_amount")
TEXTS = ("title", "description")
ASKS = ("ask_email", "ask_name", "ask_note")
# The values of each field in ASKS: the link's form does not have that field ("no"), has it as an
# optional field ("may"), or as a required field ("must").
HOW = ("no", "may", "must")


def is_nameless(fields: Mapping[str, Any]) -> bool:
    """True if the link has neither a title nor an amount, so payers cannot recognise it.

    `fields` is the validated body of the API operation create-payment-link.
    """
    title = (fields.get("title") or "").strip()
    has_amount = any(fields.get(f"{name}_usd") for name in AMOUNTS)
    return not title and not has_amount


def new_link(
    db: Database,
    now: datetime,
    merchant_id: int,
    fields: Mapping[str, Any],
    price: Price | None = None,
    dust_limit_sats: int = 0,
) -> PaymentLink:
    """Stores an active link, publishes its event, and returns its row.

    Call this function in `db.write()`. `fields` is the validated body of the API
    operation create-payment-link. It may also have an `id`, `suggested` amounts, a
    `goal_usd`, and the fields in ASKS. If `price` is None, as for links of the API,
    amounts are in dollars. Else they are in the currency of `price`, the exchange rate,
    although the names of the fields end in `_usd`.

    Raises CommandError for suggested amounts that do not fit the link, and TooMuch for
    amounts above MAX_USD. If `price` is given, raises TooLittle for amounts below
    `dust_limit_sats`, the minimum that a wallet can send to the merchant's account.
    """
    currency = USD
    if price:
        currency = price.currency
    new = blank(
        PaymentLink,
        **_text_columns(fields),
        **_amount_columns(fields, price, dust_limit_sats),
        currency=currency,
        amount_mode=fields["amount_mode"],
        id=fields.get("id") or new_id("lnk"),  # a form determines the id in advance
        merchant_id=merchant_id,
        status=LinkStatus.ACTIVE,
        created_ms=to_ms(now),
    )
    new = replace(new, suggested=_suggestions(fields.get("suggested", ()), new))
    row = db.get(links.ADD, **as_dict(new))
    publish(db, [NewEvent(row, News(EventKind.PAYMENT_LINK_CREATED))], now)
    return row


def edit(
    db: Database,
    link: PaymentLink,
    fields: Mapping[str, Any],
    price: Price | None,
    dust_limit_sats: int,
) -> None:
    """Changes a link's texts, its goal, and which fields (ASKS) its form has.

    `fields` must have all values, also those that do not change. A title, description
    or goal that `fields` lacks is removed from the link. A field of ASKS that `fields`
    lacks is removed from the link's form.

    If the exchange rate `price` is given, the minimum, the maximum and the suggested
    amounts are changed too. If `price` is None, these amounts stay. A fixed amount, the
    currency and existing invoices always stay.

    Raises CommandError for suggested amounts that do not fit the link, TooMuch for an
    amount above MAX_USD, and TooLittle for one below `dust_limit_sats`, the minimum
    that a wallet can send to the merchant's account.
    """
    new = replace(link, **_text_columns(fields))
    if price:
        new = replace(new, **_amount_columns(fields, price, dust_limit_sats))
        new = replace(new, suggested=_suggestions(fields.get("suggested", ()), new))
    with db.write():
        db.run(links.EDIT, **as_dict(new))


def _text_columns(fields: Mapping[str, Any]) -> Any:
    """Returns the columns of the link's texts, of its form's fields, and of its goal."""
    columns = {name: fields.get(name) for name in TEXTS}
    columns |= {name: fields.get(name, HOW[0]) for name in ASKS}
    columns["goal"] = _text_of(fields.get("goal_usd"))
    return columns


def _text_of(amount: Decimal | None) -> str | None:
    if amount is None:
        return None
    return str(amount)


def sum_raised(db: Database, link: PaymentLink) -> Decimal:
    """Returns the total of the link's paid invoices, in the link's currency."""
    minor_per_unit = 10 ** places_of(link.currency)  # such as 100 cents per euro
    sum_minor = db.get(links.RAISED, through=link.id, minor=minor_per_unit)[0]
    return of_minor(sum_minor, link.currency)


def _amount_columns(
    fields: Mapping[str, Any],
    price: Price | None,
    dust_limit_sats: int,
) -> Any:
    """Returns the columns of the link's amounts, each also in dollars.

    The amounts in `fields` are in the currency of `price`; in dollars if `price` is
    None. Raises TooLittle for an amount that a wallet cannot send, and TooMuch for an amount
    above MAX_USD.
    """
    amounts: dict[str, Decimal | None] = {
        name: fields.get(f"{name}_usd") for name in AMOUNTS
    }
    if price:
        entered = [*amounts.values(), *fields.get("suggested", ())]
        _refuse_too_little(entered, price, dust_limit_sats)
    columns = {}
    for name, amount in amounts.items():
        amount_usd = amount
        if amount:
            amount_usd = worth_usd(amount, price)
        columns[name] = _text_of(amount)
        columns[f"{name}_usd"] = _text_of(amount_usd)
    return columns


def _refuse_too_little(
    amounts: Iterable[Decimal | None],
    price: Price,
    dust_limit_sats: int,
) -> None:
    """Raises TooLittle if an amount, in the currency of `price`, is too small to be sent.

    Amounts of None and 0 are not checked.
    """
    least = least_amount(dust_limit_sats, price.in_currency, price.currency)
    for amount in amounts:
        if amount and amount < least:
            raise TooLittle(least, price.currency)


def bounds(link: PaymentLink) -> tuple[Decimal, Decimal]:
    """Returns the minimum and the maximum amount of a flexible link, in its currency.

    A minimum of 0 means any amount above 0.
    """
    low = Decimal(link.min_amount or 0)
    high = Decimal(link.max_amount or greatest_amount(link.currency))
    return low, high


def greatest_amount(currency: str) -> Decimal:
    """Returns the highest amount that a form accepts in this currency.

    Its value in dollars is checked later, when the price is known.
    """
    if currency == USD:
        return Decimal(MAX_USD)
    return Decimal(MAX_AMOUNT)


def _suggestions(amounts: Sequence[Decimal], link: PaymentLink) -> str | None:
    """Returns the suggested amounts as they are stored; None if there are none.

    Raises CommandError for amounts that do not fit the link, for a repeated amount, and
    for more than MOST_SUGGESTED amounts.
    """
    if not amounts:
        return None
    if link.amount_mode != "flexible":
        raise CommandError("a link with a fixed price suggests no amounts")
    low, high = bounds(link)
    currency = link.currency
    for amount in amounts:
        is_within_bounds = amount > 0 and low <= amount <= high
        is_in_whole_cents = amount == round_money(amount, currency)
        if not is_within_bounds or not is_in_whole_cents:
            raise CommandError(
                f"{amount} {currency} cannot be paid by this link: see its bounds"
            )
    has_repetition = len(set(amounts)) < len(amounts)
    if has_repetition or len(amounts) > MOST_SUGGESTED:
        raise CommandError(
            f"at most {MOST_SUGGESTED} amounts can be suggested, each once"
        )
    return " ".join(map(str, amounts))


def set_active(db: Database, link_id: str, active: bool, now: datetime) -> None:
    """Activates or deactivates a link. Raises CommandError if there is no such link.

    Publishes an event if the link was active and no longer is.
    """
    status = LinkStatus.INACTIVE
    if active:
        status = LinkStatus.ACTIVE
    with db.write():
        row = db.get_or_fail(links.LOCKED, f"payment link {link_id!r}", id=link_id)
        db.run(links.SET_STATUS, id=link_id, status=status)
        was_active = row.status == LinkStatus.ACTIVE
        if was_active and not active:
            publish(db, [NewEvent(row, News(EventKind.PAYMENT_LINK_DEACTIVATED))], now)
