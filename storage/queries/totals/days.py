"""Each merchant's income by day and currency, updated together with the payments.

Days are those of the merchant's time zone. There is a sum for each currency that the
merchant has ever used. All changes happen under the lock of the merchant's balance, in
the transaction that changes the payments.
"""

from collections.abc import Iterable, Mapping
from zoneinfo import ZoneInfo

from peewee import EXCLUDED, SQL, fn

from btcpay.values.times import day_of, stretches, zone_of
from storage import at_once
from storage.database import Database, Values, group_by
from storage.models import Merchant, MerchantDay, Payment
from storage.statement import all_columns, eq, param, rows_as

_OWN = eq(MerchantDay.merchant_id)
BETWEEN = (
    MerchantDay.select()
    .where(_OWN, MerchantDay.day.between(param("first"), param("last")))
    .order_by(MerchantDay.day)
)
# When the merchant was added, and the first day with a payment. A wrong clock can have added the
# merchant later than that.
BEGINNING = rows_as(
    tuple[int, int | None],
    Merchant.select(
        Merchant.created_ms,
        MerchantDay.select(fn.MIN(MerchantDay.day)).where(_OWN).alias("first_day"),
    ).where(Merchant.id == param("merchant_id")),
)
_ZONE = Merchant.select(Merchant.timezone).where(Merchant.id == param("merchant_id"))

_TOTALS = (
    MerchantDay.payments,
    MerchantDay.unpriced,
    MerchantDay.received_sats,
    MerchantDay.value_minor,
)
_ADD = MerchantDay.insert(all_columns(MerchantDay)).on_conflict(
    conflict_target=[MerchantDay.merchant_id, MerchantDay.day, MerchantDay.currency],
    update={total: total + getattr(EXCLUDED, total.name) for total in _TOTALS},
)
_FORGET = MerchantDay.delete().where(_OWN)
_FORGET_DAY = _FORGET.where(eq(MerchantDay.day))

# A value's text has all decimals of its currency, so that without the point it is a whole number of
# smallest units.
_MINOR = fn.REPLACE(Payment.value_at_receipt, ".", "").cast("BIGINT")
_COUNT = MerchantDay.insert_from(
    Payment.select(
        Payment.merchant_id,
        Payment.currency,
        (param("day") + (Payment.created_ms - param("begin")) / param("length")).cast(
            "BIGINT"
        ),
        fn.COUNT(SQL("*")),
        fn.COUNT(SQL("*")) - fn.COUNT(Payment.value_at_receipt),
        fn.SUM(Payment.amount_sats).cast("BIGINT"),
        fn.COALESCE(fn.SUM(_MINOR), 0).cast("BIGINT"),
    )
    .where(
        eq(Payment.merchant_id),
        Payment.created_ms >= param("begin"),
        Payment.created_ms < param("end"),
    )
    .group_by(SQL("1"), SQL("2"), SQL("3")),
    [MerchantDay.merchant_id, MerchantDay.currency, MerchantDay.day, *_TOTALS],
)
_SPAN = rows_as(
    tuple[int | None, int | None],
    Payment.select(fn.MIN(Payment.created_ms), fn.MAX(Payment.created_ms)).where(
        eq(Payment.merchant_id)
    ),
)


def add(db: Database, payments: Iterable[Payment], zones: Mapping[int, str]) -> None:
    """Adds new payments to the sums of their days.

    `zones` has the names of the merchants' time zones by merchant id.
    """
    sums: dict[tuple[int, int, str], Values] = {}
    for payment in payments:
        zone = zone_of(zones[payment.merchant_id])
        day = day_of(payment.created_ms, zone)
        key = (payment.merchant_id, day, payment.currency)
        if key not in sums:
            sums[key] = _no_payments(*key)
        row = sums[key]
        row["payments"] += 1
        row["received_sats"] += payment.amount_sats
        value = payment.value_at_receipt
        if value is None:
            row["unpriced"] += 1
        else:
            row["value_minor"] += int(value.replace(".", ""))  # see _MINOR
    at_once.run(db, _ADD, sums.values())


def _no_payments(merchant_id: int, day: int, currency: str) -> Values:
    """Returns the row of a day without payments, as parameters of `_ADD`."""
    return {
        "merchant_id": merchant_id,
        "day": day,
        "currency": currency,
        "payments": 0,
        "unpriced": 0,
        "received_sats": 0,
        "value_minor": 0,
    }


def remove(db: Database, payments: Iterable[Payment]) -> None:
    """Removes payments, which were just deleted, from the sums of their days.

    The sums of these days are computed again. The row of a day is deleted if the day
    has no payments left.
    """
    payments_by_merchant = group_by(payments, lambda payment: payment.merchant_id)
    for merchant_id, payments_of_merchant in payments_by_merchant.items():
        timezone = db.get(_ZONE, merchant_id=merchant_id).timezone
        zone = zone_of(timezone)
        days = {day_of(payment.created_ms, zone) for payment in payments_of_merchant}
        for day in days:
            db.run(_FORGET_DAY, merchant_id=merchant_id, day=day)
            _count(db, merchant_id, zone, first=day, last=day)


def recount(db: Database, merchant_id: int, timezone: str) -> None:
    """Computes the sums of all days of a merchant again, for days of this time zone."""
    db.run(_FORGET, merchant_id=merchant_id)
    first_ms, last_ms = db.get(_SPAN, merchant_id=merchant_id)
    if first_ms is None or last_ms is None:
        return
    zone = zone_of(timezone)
    first_day = day_of(first_ms, zone)
    last_day = day_of(last_ms, zone)
    _count(db, merchant_id, zone, first=first_day, last=last_day)


def _count(
    db: Database,
    merchant_id: int,
    zone: ZoneInfo,
    *,
    first: int,
    last: int,
) -> None:
    """Stores the sums of the days from `first` to `last`, which have no rows yet."""
    for stretch in stretches(first, last, zone):
        db.run(
            _COUNT,
            merchant_id=merchant_id,
            begin=stretch.begin,
            end=stretch.end,
            day=stretch.day,
            length=stretch.length,
        )
