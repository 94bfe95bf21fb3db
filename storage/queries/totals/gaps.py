"""Gaps between paid addresses, stored with invoices so that the widest is easy to find.

A wallet that scans with a gap limit misses payments beyond a wider gap.
"""

from collections.abc import Collection, Mapping

from peewee import Select, fn

from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice, Merchant, Output
from storage.statement import eq, param, typed

# a merchant's id and the index of one of their addresses
_Place = tuple[int, int]
_PAID = eq(Invoice.merchant_id) & Invoice.gap_before.is_null(False)
_PAID_INDEX = Invoice.select(Invoice.address_index).where(_PAID)
_BEFORE = _PAID_INDEX.where(param("address_index") > Invoice.address_index)
_BEHIND = _PAID_INDEX.where(param("address_index") < Invoice.address_index)
# The nearest paid address indexes before and after an address index.
_AROUND = typed(
    tuple[int, int, int | None, int | None, int],
    Select(
        [],
        [
            param("merchant_id").cast("BIGINT").alias("merchant_id"),
            param("address_index").cast("BIGINT").alias("address_index"),
            _BEFORE.select(fn.MAX(Invoice.address_index)).alias("before"),
            _BEHIND.select(fn.MIN(Invoice.address_index)).alias("behind"),
            Merchant.select(Merchant.used_before)
            .where(Merchant.id == param("merchant_id"))
            .alias("used_before"),
        ],
    ),
)
# The highest address index of a merchant to which an output came (NULL if none), and the widest
# step between two such indexes; the first step begins at the last address
# that was used before the shop began, or at the index -1.
LAST_PAID = typed(
    tuple[int | None],
    Invoice.select(fn.MAX(Invoice.address_index).alias("last_paid")).where(_PAID),
)
WIDEST = typed(
    tuple[int | None],
    Invoice.select(fn.MAX(Invoice.gap_before).alias("widest")).where(_PAID),
)
LAST_AND_WIDEST = typed(tuple[int | None, int | None], Select([], [LAST_PAID, WIDEST]))
_SET = Invoice.update({Invoice.gap_before: param("gap_before")}).where(
    eq(Invoice.merchant_id, Invoice.address_index)
)
# Outputs, confirmed or not, spent or not.
_CAME = (
    Output.select(Output.invoice_id)
    .where(eq(Output.invoice_id), Output.vanished_ms.is_null())
    .distinct()
)


def note(db: Database, invoices: Collection[Invoice]) -> None:
    """Updates the gaps after outputs to these invoices' addresses appeared or vanished.

    Call it in the database transaction that changes the outputs, while it holds the
    locks of the merchants' balances.
    """
    ids: list[Values] = [{"invoice_id": invoice.id} for invoice in invoices]
    came = {row.invoice_id for row in at_once.rows(db, _CAME, ids)}
    paid: dict[_Place, bool] = {}
    for invoice in invoices:
        was_paid = invoice.gap_before is not None
        is_paid = invoice.id in came
        if is_paid != was_paid:
            paid[invoice.merchant_id, invoice.address_index] = is_paid
    # All are marked as paid or unpaid before any gap is measured, because they may be neighbours.
    marks = [_gap(*place, int(is_paid) or None) for place, is_paid in paid.items()]
    at_once.run(db, _SET, marks)
    gaps = [_gap(*place, step) for place, step in _steps_around(db, paid).items()]
    at_once.run(db, _SET, gaps)


def _steps_around(db: Database, paid: Mapping[_Place, bool]) -> dict[_Place, int]:
    """Returns the new step to each address of `paid` that is paid, and behind each.

    A step is the difference to the address index of the nearest paid address before.
    """
    steps: dict[_Place, int] = {}
    neighbours = at_once.rows(db, _AROUND, [_gap(*place) for place in paid])
    for merchant_id, index, before, behind, used_before in neighbours:
        nearest_before = before
        if nearest_before is None:
            nearest_before = used_before - 1
        last = nearest_before
        if paid[merchant_id, index]:
            steps[merchant_id, index] = index - nearest_before
            last = index
        if behind is not None:
            steps[merchant_id, behind] = behind - last
    return steps


def _gap(merchant_id: int, index: int, step: int | None = None) -> Values:
    return {"merchant_id": merchant_id, "address_index": index, "gap_before": step}
