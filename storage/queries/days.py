"""What merchants received by day, kept in step with the payments that it sums."""

from datetime import datetime, timedelta
from decimal import Decimal

from peewee import EXCLUDED, fn

from btcpay.values.times import to_ms
from storage.database import Database, Row, every, slot
from storage.models import MerchantDay, Payment

DAY_MS = timedelta(days=1) // timedelta(milliseconds=1)

SINCE = (
    MerchantDay.select()
    .where((MerchantDay.merchant_id == slot("merchant_id")) & (MerchantDay.day >= slot("day")))
    .order_by(MerchantDay.day)
)

_TOTALS = (
    MerchantDay.payments,
    MerchantDay.unpriced,
    MerchantDay.received_sats,
    MerchantDay.usd_cents,
)
_ADD = MerchantDay.insert(every(MerchantDay)).on_conflict(
    conflict_target=[MerchantDay.merchant_id, MerchantDay.day],
    update={total: total + getattr(EXCLUDED, total.name) for total in _TOTALS},
)
_OF_DAY = (MerchantDay.merchant_id == slot("merchant_id")) & (MerchantDay.day == slot("day"))
# Only from a sum that has the payment in it beside another one.
_TAKE = MerchantDay.update({total: total - slot(total.name) for total in _TOTALS}).where(
    _OF_DAY
    & (MerchantDay.payments > slot("payments"))
    & (MerchantDay.unpriced >= slot("unpriced"))
    & (MerchantDay.payments - MerchantDay.unpriced + slot("unpriced") >= slot("payments"))
    & (MerchantDay.received_sats - MerchantDay.payments >= slot("received_sats"))
    & (MerchantDay.usd_cents >= slot("usd_cents"))
)
_FORGET = MerchantDay.delete().where(_OF_DAY)
# An amount in dollars always has two places: without the point it is cents.
_CENTS = fn.REPLACE(Payment.amount_usd_at_receipt, ".", "").cast("BIGINT")
# A day whose payments were all taken back is as if there had been none.
_COUNT_ANEW = MerchantDay.insert_from(
    Payment.select(
        fn.MIN(Payment.merchant_id),
        fn.MIN(Payment.created_at) / DAY_MS,
        fn.COUNT(Payment.id),
        fn.COUNT(Payment.id) - fn.COUNT(Payment.amount_usd_at_receipt),
        fn.SUM(Payment.amount_sats),
        fn.COALESCE(fn.SUM(_CENTS), 0),
    )
    .where(
        (Payment.merchant_id == slot("merchant_id"))
        & (Payment.created_at >= slot("from_ms"))
        & (Payment.created_at < slot("before_ms"))
    )
    .having(fn.COUNT(Payment.id) > 0),
    [MerchantDay.merchant_id, MerchantDay.day, *_TOTALS],
)


def day_of(at: datetime) -> int:
    """The day of UTC that it belongs to, counted from 1970."""
    return to_ms(at) // DAY_MS


def add(db: Database, payment: Row) -> None:
    """Counts a payment that was made; in its transaction, behind the lock of the balance."""
    db.run(_ADD, **_counted(payment))


def take(db: Database, payment: Row) -> None:
    """Counts a payment no more that was taken back; likewise.

    A sum that lacks it is counted anew from the day's payments, else it would refuse, and with it
    what undoes a block: a check of an older program, at work while the database was brought up to
    date, leaves such a sum.
    """
    counted = _counted(payment)
    if db.run(_TAKE, **counted) == 1:
        return
    day, merchant = counted["day"], {"merchant_id": payment["merchant_id"]}
    db.run(_FORGET, **merchant, day=day)
    db.run(_COUNT_ANEW, **merchant, from_ms=day * DAY_MS, before_ms=(day + 1) * DAY_MS)


def _counted(payment: Row) -> Row:
    usd = payment["amount_usd_at_receipt"]
    return {
        "merchant_id": payment["merchant_id"],
        "day": payment["created_at"] // DAY_MS,
        "payments": 1,
        "unpriced": int(usd is None),
        "received_sats": payment["amount_sats"],
        "usd_cents": 0 if usd is None else int(Decimal(usd) * 100),
    }
