"""Each merchant's balance, updated in the database transaction that changes outputs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from peewee import Case, ColumnBase, fn

from btcpay.values.errors import BeyondMoney
from btcpay.values.money import MAX_MONEY_SATS
from storage import at_once
from storage.database import Database, Values
from storage.models import Balance, Output
from storage.statement import eq, param, rows_as

OF_MERCHANT = Balance.select(Balance.confirmed_sats, Balance.total_sats).where(
    eq(Balance.merchant_id)
)


def _sum(sats: ColumnBase) -> Any:
    """Returns a SUM cast to BIGINT, 0 if there are no rows.

    PostgreSQL's sum of BIGINT would be NUMERIC.
    """
    return fn.COALESCE(fn.SUM(sats), 0).cast("BIGINT")


_PAID_SATS = Case(None, [(Output.payment_id.is_null(), 0)], Output.amount_sats)
_SUMS = (
    _sum(_PAID_SATS).alias("confirmed_sats"),
    _sum(Output.amount_sats).alias("total_sats"),
)
# The sums that the stored totals must equal; for tests and the doctor command.
RECOMPUTED = rows_as(
    tuple[int, int],
    Output.select(*_SUMS).where(
        Output.vanished_ms.is_null(),
        Output.spent_height.is_null(),
        eq(Output.merchant_id),
    ),
)


class _Sums(NamedTuple):
    """The sums of some invoices' outputs, for one merchant."""

    merchant_id: int
    confirmed_sats: int
    total_sats: int
    # all confirmed payments, whether their coins were spent since or not
    settled_sats: int


class _Totals(NamedTuple):
    """The sums of some invoices' outputs, in satoshis. The fields are those of `_Sums`."""

    confirmed: int = 0
    total: int = 0
    settled: int = 0


def _unspent(sats: Any) -> Any:
    """Returns the sum of the outputs that are not spent."""
    return _sum(Case(None, [(Output.spent_height.is_null(False), 0)], sats))


_OF_INVOICE = rows_as(
    _Sums,
    Output.select(
        Output.merchant_id,
        _unspent(_PAID_SATS).alias("confirmed_sats"),
        _unspent(Output.amount_sats).alias("total_sats"),
        _sum(_PAID_SATS).alias("settled_sats"),
    )
    .where(eq(Output.invoice_id), Output.vanished_ms.is_null())
    .group_by(Output.merchant_id),
)

# Every database transaction that changes what merchants have received takes this lock first. The
# locks of several merchants are taken in the order of their ids.
_LOCK = OF_MERCHANT.order_by(Balance.merchant_id).for_update()
LOCK_ALL = (
    Balance.select(Balance.merchant_id).order_by(Balance.merchant_id).for_update()
)

OPEN = Balance.insert(
    {
        Balance.merchant_id: param("merchant_id"),
        Balance.confirmed_sats: 0,
        Balance.total_sats: 0,
    }
)
_CHANGE = Balance.update(
    {
        Balance.confirmed_sats: Balance.confirmed_sats + param("confirmed_sats"),
        Balance.total_sats: Balance.total_sats + param("total_sats"),
        Balance.settled_sats: Balance.settled_sats + param("settled_sats"),
    }
).where(eq(Balance.merchant_id))
_CHANGE_BOUNDED = _CHANGE.where(
    # Subtracting is always allowed, even while the total exceeds the money that can exist.
    (Balance.total_sats + param("total_sats") <= MAX_MONEY_SATS)
    | (param("total_sats") <= 0)
)


def lock(db: Database, *merchant_ids: int) -> None:
    """Locks the balances of these merchants until the database transaction ends."""
    in_order = sorted(set(merchant_ids))
    at_once.rows(db, _LOCK, [{"merchant_id": id} for id in in_order])


@contextmanager
def update_balances(
    db: Database,
    invoice_ids: Iterable[str],
    bounded: bool = True,
) -> Iterator[None]:
    """Updates the balances after the `with` block has changed these invoices' outputs.

    Call it after `lock`, in the database transaction that changes the outputs.

    If `bounded` is True, raises BeyondMoney if a balance would grow beyond 21 million
    bitcoin, which rolls back the caller's transaction. If `bounded` is False, never
    raises it: use this for a proven change, which must be stored.
    """
    ids = list(invoice_ids)
    before = _sums(db, ids)
    yield
    after = _sums(db, ids)
    changes = []
    for merchant_id in sorted({*before, *after}):
        totals_before = before[merchant_id]
        totals_after = after[merchant_id]
        if totals_before != totals_after:
            changes.append(_change(merchant_id, totals_before, totals_after))
    query = _CHANGE
    if bounded:
        query = _CHANGE_BOUNDED
    changed_rows = at_once.run(db, query, changes)
    # A row whose total would be too large has not changed.
    if changed_rows != len(changes):
        raise BeyondMoney(
            "the merchant would have more than the 21 million bitcoin there can be"
        )


def _change(merchant_id: int, before: _Totals, after: _Totals) -> Values:
    """Returns the parameters of `_CHANGE`: by how much each total has grown."""
    return {
        "merchant_id": merchant_id,
        "confirmed_sats": after.confirmed - before.confirmed,
        "total_sats": after.total - before.total,
        "settled_sats": after.settled - before.settled,
    }


def _sums(db: Database, invoice_ids: Iterable[str]) -> dict[int, _Totals]:
    """Returns the totals of these invoices by merchant id; zeros for other merchants."""
    by_merchant: dict[int, _Totals] = defaultdict(_Totals)
    ids: list[Values] = [{"invoice_id": invoice_id} for invoice_id in invoice_ids]
    for row in at_once.rows(db, _OF_INVOICE, ids):
        totals = by_merchant[row.merchant_id]
        by_merchant[row.merchant_id] = _Totals(
            confirmed=totals.confirmed + row.confirmed_sats,
            total=totals.total + row.total_sats,
            settled=totals.settled + row.settled_sats,
        )
    return by_merchant
