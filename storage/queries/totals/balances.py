"""Balances: totals for each merchant, kept in step with the outputs that they sum."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from peewee import Case, ColumnBase, fn

from btcpay.values.errors import BeyondMoney
from btcpay.values.money import MAX_MONEY_SATS
from storage.database import Database, Values
from storage.models import Balance, Output
from storage.statement import shaped, slot

OF_MERCHANT = Balance.select(Balance.confirmed_sats, Balance.total_sats).where(
    Balance.merchant_id == slot("merchant_id")
)


def _sum(sats: ColumnBase) -> Any:
    """The sum as a whole number; PostgreSQL would make a NUMERIC of a sum of BIGINT."""
    return fn.COALESCE(fn.SUM(sats), 0).cast("BIGINT")


_SUMS = shaped(
    tuple[int, int],
    Output.select(
        _sum(Case(None, [(Output.payment_id.is_null(), 0)], Output.amount_sats)).alias(
            "confirmed_sats"
        ),
        _sum(Output.amount_sats).alias("total_sats"),
    ).where(Output.vanished_at.is_null() & Output.spent_height.is_null()),
)
_OF_INVOICE = _SUMS.where(Output.invoice_id == slot("invoice_id"))
# Everything that was paid, moved since or not.
_SETTLED = shaped(
    tuple[int],
    Output.select(fn.COALESCE(fn.SUM(Output.amount_sats), 0)).where(
        (Output.invoice_id == slot("invoice_id"))
        & Output.payment_id.is_null(False)
        & Output.vanished_at.is_null()  # no payment has this; an index holds only these
    ),
)
# The sums that the totals must equal; for tests and the doctor.
RECOMPUTED = _SUMS.where(Output.merchant_id == slot("merchant_id"))

# The first lock of every change to what merchants have received; several are taken in this order.
_LOCK = OF_MERCHANT.for_update()
_LOCK_ALL = Balance.select(Balance.merchant_id).order_by(Balance.merchant_id).for_update()

OPEN = Balance.insert(
    {Balance.merchant_id: slot("merchant_id"), Balance.confirmed_sats: 0, Balance.total_sats: 0}
)
_CHANGE = Balance.update(
    {
        Balance.confirmed_sats: Balance.confirmed_sats + slot("confirmed_sats"),
        Balance.total_sats: Balance.total_sats + slot("total_sats"),
        Balance.settled_sats: Balance.settled_sats + slot("settled_sats"),
    }
).where(Balance.merchant_id == slot("merchant_id"))
_CHANGE_BOUNDED = _CHANGE.where(
    # Subtracting is always allowed, even while the total exceeds the money that can exist.
    (Balance.total_sats + slot("total_sats") <= MAX_MONEY_SATS) | (slot("total_sats") <= 0)
)


def lock(db: Database, merchant_id: int) -> None:
    """Keeps others from changing what this merchant has received until the transaction ends."""
    db.row(_LOCK, merchant_id=merchant_id)


def lock_all(db: Database) -> None:
    db.rows(_LOCK_ALL)


@contextmanager
def kept(db: Database, invoice_id: str, merchant_id: int, bounded: bool = True) -> Iterator[None]:
    """Adds the changes that the block makes to this invoice's outputs to the merchant's totals.

    Call it in the transaction that changes them, so that both happen or neither, after the lock.
    Raises BeyondMoney, which undoes it, when the total would grow beyond 21 million bitcoin. Unless
    `bounded`, it never raises: a proven change must happen.
    """
    before = _sums(db, invoice_id)
    yield
    after = _sums(db, invoice_id)
    confirmed, total, settled = (new - old for new, old in zip(after, before, strict=True))
    change: Values = {"confirmed_sats": confirmed, "total_sats": total, "settled_sats": settled}
    query = _CHANGE_BOUNDED if bounded else _CHANGE
    if any(change.values()) and db.run(query, **change | {"merchant_id": merchant_id}) != 1:
        raise BeyondMoney("the merchant would have more than the 21 million bitcoin there can be")


def _sums(db: Database, invoice_id: str) -> tuple[int, int, int]:
    """Confirmed, total and settled."""
    of: Values = {"invoice_id": invoice_id}
    (settled_sats,) = db.only(_SETTLED, **of)
    return *db.only(_OF_INVOICE, **of), settled_sats
