"""The acts on a bill: it is made, made again for the next period, and ended."""

from contextlib import suppress
from datetime import date, datetime
from typing import Any, NamedTuple

from btcpay.bills import queries
from btcpay.bills.calendar import due_ms, recalls, renewal_ms
from btcpay.bills.kinds import BillKind
from btcpay.bills.news import send_later, tell
from btcpay.invoices import by_hand, create
from btcpay.prices.price import Prices
from btcpay.settings.settings import Settings
from btcpay.values.errors import PriceUnavailable, Refused
from btcpay.values.ids import new_id
from btcpay.values.times import date_of, number_of, to_ms, zone_of
from storage.database import Database, Values
from storage.models import Bill
from storage.queries import merchants
from storage.queries.totals import balances
from storage.statement import as_dict, blank, changed

DUE_DAYS, MOST_DAYS = 14, 3650


class Terms(NamedTuple):
    """The terms of a bill: `every` is a word of calendar.EVERY, or None for a single bill."""

    due_days: int = DUE_DAYS
    every: str | None = None
    until: date | None = None


def find(db: Database, bill_id: str) -> Bill:
    """The whole row. Raises CommandError when there is none."""
    return db.named(queries.BY_ID, f"bill {bill_id!r}", id=bill_id)


def refuse_unpayable(db: Database, prices: Prices, now: datetime, order: create.Order) -> None:
    """Raises TooLittle and TooMuch at today's price; without a price it raises nothing."""
    with suppress(PriceUnavailable):
        create.quote(db, prices, now, order)


def make(
    db: Database, order: create.Order, terms: Terms, now: datetime, id: str | None = None
) -> Bill:
    """Stores a bill, the first of its series where it has one. Call it in `db.write()`.

    Raises Refused (`until`) for a last day that is over.
    """
    zone = zone_of(db.only(merchants.BY_ID, id=order.merchant_id).timezone)
    new = blank(
        Bill,
        **dict(order.details),
        id=id or new_id("bil"),
        merchant_id=order.merchant_id,
        amount=str(order.amount),
        currency=order.currency or "USD",
        due_days=terms.due_days,
        every=terms.every,
        number=0,
    )
    if terms.every:
        first, until = now.astimezone(zone).replace(tzinfo=None), terms.until
        if until and until < first.date():
            raise Refused("until", "the last day is over")
        new = changed(
            new,
            series_id=new.id,
            first_local=first.isoformat(),
            until_day=None if until is None else number_of(until),
            renews=1,
            renews_at=renewal_ms(first, terms.every, 1, until, zone),
        )
    return _add(db, new, now)


def _add(db: Database, new: Bill, now: datetime) -> Bill:
    zone, now_ms = zone_of(db.only(merchants.BY_ID, id=new.merchant_id).timezone), to_ms(now)
    due_at = due_ms(now_ms, new.due_days, zone)
    new = changed(new, status="open", paid="0", paid_at=None, created_at=now_ms, due_at=due_at)
    bill = db.only(queries.ADD, **as_dict(new))
    send_later(db, bill, {"new": now_ms} | recalls(now_ms, due_at, zone))
    return tell(db, bill.id, BillKind.CREATED, now)


def renew(db: Database, first: Bill, now: datetime) -> bool:
    """Makes the bill of the next period that has begun; False if another run has made it.

    Its time was fixed when the one before it was made: a zone that was changed since counts from
    the next one. Raises BadRow.
    """
    with db.write():
        # The merchant's row stays unlocked: who pays holds the bill's, and takes that one next.
        zone = zone_of(db.only(merchants.BY_ID, id=first.merchant_id).timezone)
        number, until = first.renews or 0, first.until_day
        next_at = renewal_ms(
            datetime.fromisoformat(first.first_local or ""),
            first.every or "",
            number + 1,
            None if until is None else date_of(until),
            zone,
        )
        of: Values = {
            "id": first.id,
            "number": number,
            "at": first.renews_at or 0,
            "next_at": next_at,
        }
        if db.run(queries.RENEW, **of) != 1:
            return False
        alone: Any = dict.fromkeys(
            ("first_local", "until_day", "renews", "renews_at", "stopped_at")
        )
        _add(db, changed(first, **alone, id=new_id("bil"), number=number), now)
    return True


def end(db: Database, settings: Settings, bill_id: str, now: datetime) -> None:
    """Ends an open bill, its invoices, and the series. Raises Refused (`not_open`), CommandError.

    What comes afterwards is as after a cancellation.
    """
    with db.write():
        balances.lock(db, find(db, bill_id).merchant_id)
        bill = db.only(queries.LOCKED, id=bill_id)
        had_series = db.run(queries.END_SERIES, id=bill.series_id or bill.id)
        if db.run(queries.END, id=bill.id):
            tell(db, bill.id, BillKind.ENDED, now)
            for row in db.rows(queries.INVOICES, id=bill.id):
                if row.status == "open":
                    by_hand.cancel(db, settings, row.id, now, force=True, where="with its bill")
        elif not had_series:
            raise Refused("not_open", f"the bill is {bill.status}: there is nothing to end")


def stop(db: Database, bill: Bill, now: datetime) -> None:
    """Ends a bill's series on its customer's word: no more bills or mails; a debt stays."""
    db.run(queries.STOP, id=bill.series_id or "", at=to_ms(now))
