"""The acts of owner and payer: a refund is made, given its address, cleared of it, or canceled.

Each is one transaction behind the lock of the merchant's balance.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from typing import Any, NamedTuple

from btcpay.invoices.create import live_price
from btcpay.invoices.events import record
from btcpay.notify.publish import News, Told, publish
from btcpay.prices.price import Prices
from btcpay.refunds import destination, queries
from btcpay.refunds.kinds import STATE, RefundKind
from btcpay.settings.settings import Settings
from btcpay.values.errors import Refused
from btcpay.values.ids import new_id
from btcpay.values.money import MAX_MONEY_SATS, SATS_PER_BTC
from btcpay.values.texts import checked_line
from btcpay.values.times import to_ms
from storage.database import Database, Values
from storage.models import Invoice, Refund
from storage.queries import blocks, meta
from storage.queries.events import Kind
from storage.queries.totals import balances

MOST_TIMES = 2  # of what came: a refund may be more than was paid, at another price


class Order(NamedTuple):
    """A refund to be made; without `amount_sats` it is of all that is left to send back.

    `invoice` is None where only a shop's plug-in knows what was paid: then the sum is said.
    `store_id`: that shop's. `id` is given where a form determines it.
    """

    merchant_id: int
    invoice: Invoice | None
    amount_sats: int | None = None
    reason: str | None = None
    address: str | None = None
    id: str | None = None
    store_id: str | None = None


def find(db: Database, refund_id: str) -> Refund:
    """The whole row. Raises CommandError when there is none."""
    return db.named(queries.BY_ID, f"refund {refund_id!r}", id=refund_id)


def sats_of(prices: Prices, now: datetime, amount: Decimal, currency: str) -> int:
    """The satoshis that the amount buys now, rounded down. Raises PriceUnavailable, Refused."""
    return sats_at(amount, live_price(prices, now, currency).in_currency)


def sats_at(amount: Decimal, price: Decimal) -> int:
    """Satoshis at `price` a bitcoin, rounded down. Raises Refused (`amount`) beyond all coins."""
    sats = int((amount / price * SATS_PER_BTC).to_integral_value(ROUND_DOWN))
    if sats > MAX_MONEY_SATS:
        raise Refused("amount", "that is more bitcoin than there is")
    return sats


def left_sats(invoice: Invoice, came_sats: int, made_sats: int) -> int:
    """Satoshis still to be sent back: the excess, else all that came, less other refunds."""
    beyond_sats = came_sats - invoice.amount_sats if invoice.status == "paid" else 0
    return max(0, beyond_sats - made_sats) or max(0, came_sats - made_sats)


def make(db: Database, settings: Settings, order: Order, now: datetime) -> Refund:
    """Stores a refund, and tells of it; a form's second copy finds the first's.

    Raises Refused: `nothing_came`, `amount`, `too_much`, and what `give` raises.
    """
    invoice = order.invoice
    with db.write():
        if order.address:
            meta.lock(db)
        balances.lock(db, order.merchant_id)
        if order.id and (made := db.row(queries.BY_ID, id=order.id)):
            return made
        amount_sats = _amount(db, order)
        row = db.only(
            queries.ADD,
            id=order.id or new_id("rfd"),
            merchant_id=order.merchant_id,
            invoice_id=invoice.id if invoice else None,
            status="requested",
            amount_sats=amount_sats,
            reason=checked_line("reason", order.reason) if order.reason else None,
            store_id=order.store_id,
            created_at=to_ms(now),
        )
        note(db, row, Kind.REFUND_MADE, now)
        if not order.address:
            return tell(db, row, RefundKind.REQUESTED, now)
        return _give(db, settings, row, order.address, now)


def _amount(db: Database, order: Order) -> int:
    if order.invoice is None:
        amount_sats = order.amount_sats or 0
    else:
        came_sats, made_sats = _sums(db, order.invoice.id)
        if not came_sats:
            raise Refused("nothing_came", "no confirmed payment has come to this invoice")
        left = left_sats(order.invoice, came_sats, made_sats)
        amount_sats = left if order.amount_sats is None else order.amount_sats
        if made_sats + amount_sats > MOST_TIMES * came_sats:
            message = f"refunds may sum to {MOST_TIMES * came_sats} satoshis, twice what came"
            raise Refused("too_much", message)
    if not 0 < amount_sats <= MAX_MONEY_SATS:
        raise Refused("amount", "there is nothing to send back: say how much")
    return amount_sats


def _sums(db: Database, invoice_id: str) -> tuple[int, int]:
    """Satoshis that came, and those of refunds that are not canceled."""
    made_sats = made_of(db.rows(queries.OF_INVOICE, invoice_id=invoice_id))
    return db.only(queries.CAME, invoice_id=invoice_id)[0], made_sats


def made_of(refunds: Iterable[Refund]) -> int:
    return sum(row.amount_sats for row in refunds if row.status != "canceled")


def give(db: Database, settings: Settings, refund_id: str, text: str, now: datetime) -> Refund:
    """Keeps the payer's address.

    Raises Refused: `changed`, `taken`, and what `destination.read` raises.
    """
    with _locked(db, refund_id) as row:
        return _give(db, settings, row, text, now)


def _give(db: Database, settings: Settings, row: Refund, text: str, now: datetime) -> Refund:
    """Behind the lock of facts: of two merchants whose refunds name one address, one comes first.

    Else what one of them sends would send the refund of the other, who may have made it for that.
    """
    to = destination.read(db, settings.network, text, row.amount_sats)
    others: Values = {"script": to.script.hex(), "merchant_id": row.merchant_id}
    if db.row(queries.WAITS_FOR_OTHERS, **others):
        raise Refused("taken", "another merchant's refund waits for this address: take a new one")
    tip = blocks.tip_height(db)
    given: Values = {"id": row.id, "address": to.address, "script": to.script.hex()}
    given |= {"above_height": -1 if tip is None else tip}
    _require(db.run(queries.GIVE, **given), "the refund has an address already")
    note(db, row, Kind.REFUND_READY, now)
    return tell(db, row, RefundKind.READY, now)


def clear(db: Database, refund_id: str, now: datetime) -> Refund:
    """Forgets the address, so that another can be given. Raises Refused (`changed`)."""
    with _locked(db, refund_id) as row:
        _require(db.run(queries.CLEAR, id=row.id), f"the refund is {row.status}, not ready")
        note(db, row, Kind.REFUND_CLEARED, now)
        return tell(db, row, RefundKind.REQUESTED, now)


def cancel(db: Database, refund_id: str, now: datetime) -> Refund:
    """Ends a refund that is not sent. Raises Refused (`changed`)."""
    with _locked(db, refund_id) as row:
        _require(db.run(queries.CANCEL, id=row.id), f"the refund is {row.status} already")
        note(db, row, Kind.REFUND_CANCELED, now)
        return tell(db, row, RefundKind.CANCELED, now)


def _require(changed: int, message: str) -> None:
    if changed != 1:
        raise Refused("changed", message)


def note(db: Database, row: Refund, kind: Kind, now: datetime, **by: Any) -> None:
    """Adds to the history of its invoice, if it has one; `by`: the output that sent it."""
    if row.invoice_id:
        detail = {"id": row.id, "amount_sats": row.amount_sats} | by
        record(db, row.invoice_id, kind, detail, now)


def tell(db: Database, row: Refund, kind: RefundKind, now: datetime) -> Refund:
    """Adds an event about the row as it is now, and returns the row."""
    found = db.only(queries.BY_ID, id=row.id)
    state = {name: getattr(found, name) for name in STATE}
    publish(db, [Told(found, News(kind), state)], now)
    return found


@contextmanager
def _locked(db: Database, refund_id: str) -> Iterator[Refund]:
    with db.write():
        meta.lock(db)
        balances.lock(db, find(db, refund_id).merchant_id)
        yield find(db, refund_id)
