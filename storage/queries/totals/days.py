"""What merchants received by day, kept in step with the payments that it sums."""

from datetime import datetime, timedelta
from decimal import Decimal

from peewee import EXCLUDED

from btcpay.values.times import to_ms
from storage.database import Database, Row, every, slot
from storage.models import MerchantDay

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
_TAKE = MerchantDay.update({total: total - slot(total.name) for total in _TOTALS}).where(_OF_DAY)
# A day whose payments were all taken back is as if there had been none.
_FORGET_EMPTY = MerchantDay.delete().where(_OF_DAY & (MerchantDay.payments == 0))


def day_of(at: datetime) -> int:
    """The day of UTC that it belongs to, counted from 1970."""
    return to_ms(at) // DAY_MS


def add(db: Database, payment: Row) -> None:
    """Counts a payment that was made; in its transaction, behind the lock of the balance."""
    db.run(_ADD, **_counted(payment))


def take(db: Database, payment: Row) -> None:
    """Counts a payment no more that was taken back; likewise."""
    counted = _counted(payment)
    db.run(_TAKE, **counted)
    db.run(_FORGET_EMPTY, merchant_id=counted["merchant_id"], day=counted["day"])


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
