"""Gaps between paid addresses, stored with invoices so that the widest is easy to find.

A wallet that scans with a gap limit misses payments beyond a wider gap.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from peewee import Select, fn

from storage import at_once
from storage.database import Database, Values
from storage.models import Invoice, Merchant, Output
from storage.statement import eq, param, rows_as


class _Place(NamedTuple):
    """The place of an address: its merchant's id, and its index."""

    merchant_id: int
    address_index: int


class _Neighbours(NamedTuple):
    """An address, and the address indexes of the nearest paid addresses on both sides.

    `paid_before` and `paid_after` are None if there is no such address. `used_before` is
    the number of the account's addresses up to the last one that was used before the
    shop began.
    """

    merchant_id: int
    address_index: int
    paid_before: int | None
    paid_after: int | None
    used_before: int


_UNMEASURED_GAP = 1  # marks an address as paid, until its gap is measured
_PAID = eq(Invoice.merchant_id) & Invoice.gap_before.is_null(False)
_PAID_INDEX = Invoice.select(Invoice.address_index).where(_PAID)
_BEFORE = _PAID_INDEX.where(param("address_index") > Invoice.address_index)
_AFTER = _PAID_INDEX.where(param("address_index") < Invoice.address_index)
_AROUND = rows_as(
    _Neighbours,
    Select(
        [],
        [
            param("merchant_id").cast("BIGINT").alias("merchant_id"),
            param("address_index").cast("BIGINT").alias("address_index"),
            _BEFORE.select(fn.MAX(Invoice.address_index)).alias("paid_before"),
            _AFTER.select(fn.MIN(Invoice.address_index)).alias("paid_after"),
            Merchant.select(Merchant.used_before)
            .where(Merchant.id == param("merchant_id"))
            .alias("used_before"),
        ],
    ),
)
# An address is paid if an output came to it. LAST_PAID is the merchant's highest index of a paid
# address, WIDEST the widest step from one to the next; both are NULL if none is paid. The first
# step begins at the last address that was used before the shop began, or at the index -1.
LAST_PAID = rows_as(
    tuple[int | None],
    Invoice.select(fn.MAX(Invoice.address_index).alias("last_paid")).where(_PAID),
)
WIDEST = rows_as(
    tuple[int | None],
    Invoice.select(fn.MAX(Invoice.gap_before).alias("widest")).where(_PAID),
)
LAST_AND_WIDEST = rows_as(
    tuple[int | None, int | None], Select([], [LAST_PAID, WIDEST])
)
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
    """Updates the gaps between paid addresses.

    Outputs to the addresses of `invoices` have appeared or vanished. Call this in the
    database transaction that changes the outputs, while it holds the locks of the
    merchants' balances.
    """
    changed = _changed_places(db, invoices)
    # All are marked as paid or unpaid before any gap is measured, because they may be neighbours.
    marks = []
    for place, is_paid in changed.items():
        mark = None
        if is_paid:
            mark = _UNMEASURED_GAP
        marks.append(_gap(place, mark))
    at_once.run(db, _SET, marks)
    steps = _steps_around(db, changed)
    gaps = [_gap(place, step) for place, step in steps.items()]
    at_once.run(db, _SET, gaps)


def _changed_places(db: Database, invoices: Collection[Invoice]) -> dict[_Place, bool]:
    """Returns the addresses that became paid (True), or are no longer paid (False).

    An invoice's stored gap shows if its address was paid before.
    """
    ids: list[Values] = [{"invoice_id": invoice.id} for invoice in invoices]
    paid_ids = {row.invoice_id for row in at_once.rows(db, _CAME, ids)}
    changed: dict[_Place, bool] = {}
    for invoice in invoices:
        was_paid = invoice.gap_before is not None
        is_paid = invoice.id in paid_ids
        if is_paid != was_paid:
            changed[_Place(invoice.merchant_id, invoice.address_index)] = is_paid
    return changed


def _steps_around(db: Database, changed: Mapping[_Place, bool]) -> dict[_Place, int]:
    """Returns the new steps to the paid addresses in `changed`, and to the next paid ones.

    A step is the difference to the address index of the nearest paid address before.
    `changed` is the result of `_changed_places`.
    """
    steps: dict[_Place, int] = {}
    places = [_gap(place, None) for place in changed]
    for row in at_once.rows(db, _AROUND, places):
        last_paid = row.paid_before
        if last_paid is None:
            last_paid = row.used_before - 1  # the first step begins there
        place = _Place(row.merchant_id, row.address_index)
        is_paid = changed[place]
        if is_paid:
            steps[place] = row.address_index - last_paid
            last_paid = row.address_index
        if row.paid_after is not None:
            next_place = _Place(row.merchant_id, row.paid_after)
            steps[next_place] = row.paid_after - last_paid
    return steps


def _gap(place: _Place, step: int | None) -> Values:
    """Returns the parameters of `_SET`, which include those of `_AROUND`.

    `step` is the gap before the address; None for an unpaid address.
    """
    return {
        "merchant_id": place.merchant_id,
        "address_index": place.address_index,
        "gap_before": step,
    }
