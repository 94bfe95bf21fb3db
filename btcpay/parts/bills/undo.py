"""Undoes bills that a wrong clock has created too early, and resumes suspended series."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from btcpay.invoices import manual
from btcpay.notify.publish import publish_resource
from btcpay.parts.bills import queries
from btcpay.parts.bills.actions import period_ms, zone_at
from btcpay.parts.bills.kinds import RESOURCE, BillKind
from btcpay.parts.bills.models import Bill
from btcpay.settings.settings import Settings
from btcpay.values.errors import ChangeRefused
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import deliveries, receivers
from storage.queries.totals import balances

MAILS = ("new", "soon", "overdue")  # the mails about an unpaid bill


class Undone(NamedTuple):
    """The ids of the undone bills, and of the bills that could not be undone.

    A bill cannot be undone if it has received a payment or is not open any more.
    """

    ids: list[str]
    kept_ids: list[str]


def resume(db: Database, bill_id: str, now: datetime, skip: bool) -> Bill:
    """Resumes a suspended series, and returns its first bill.

    The next check (`blocktill check`) creates the missed bills, at most those of one
    year. If `skip` is True, the missed bills are never created: the series continues
    with the next period. Raises ChangeRefused with the code `not_held` if the series is
    not suspended. Raises CommandError if no bill has this id.
    """
    with db.write():
        bill = RESOURCE.find(db, bill_id)
        first = db.get(queries.LOCKED, id=bill.series_id or bill.id)
        if first.held_ms is None:
            raise ChangeRefused(
                "not_held", f"nothing is asked about the series of {bill_id}"
            )
        if skip:
            number = _number_after(db, first, now)
            _move(db, first, number, held_ms=None)
        else:
            db.run(queries.RESUME, id=first.id)
        return db.get(queries.BY_ID, id=first.id)


def _number_after(db: Database, first: Bill, now: datetime) -> int:
    """Returns the number of the series' first bill whose period has not begun at `now`."""
    zone = zone_at(db, first.merchant_id)
    number = first.renews or 0
    while _has_begun(first, number, zone, now):
        number += 1
    return number


def _has_begun(first: Bill, number: int, zone: ZoneInfo, now: datetime) -> bool:
    """True if the period of bill `number` has begun, and the series has such a period."""
    at_ms = period_ms(first, number, zone)
    return at_ms is not None and at_ms <= to_ms(now)


def count_made_since(db: Database, since: datetime) -> dict[str, int]:
    """Returns the number of open bills that were created since `since`, by series id.

    Only bills of series are counted; the first bill of each series is left out.
    """
    counts: dict[str, int] = {}
    for row in db.rows(queries.MADE_SINCE, since=to_ms(since)):
        id = row.series_id or ""
        counts[id] = counts.get(id, 0) + 1
    return counts


def undo(
    db: Database,
    settings: Settings,
    series_id: str,
    since: datetime,
    now: datetime,
) -> Undone:
    """Ends the open bills that a series has created since `since`.

    Keeps the first bill of the series, and bills that have received a payment. Sends no
    mail. Afterwards the series continues with the first period whose bill was undone.
    If that period has begun, the series is suspended: otherwise the next check would
    create its bills again before the owner decides. All changes are in one database
    transaction.
    """
    with db.write():
        first = RESOURCE.find(db, series_id)
        balances.lock(db, first.merchant_id)
        first = db.get(queries.LOCKED, id=series_id)
        rows = db.rows(queries.MADE_OF_SERIES, series_id=series_id, since=to_ms(since))
        ids = list[str]()
        kept_ids = list[str]()
        for row in rows:
            if _undo(db, settings, row.id, now):
                ids.append(row.id)
            else:
                kept_ids.append(row.id)
        if ids:
            _put_back(db, first, ids, now)
        return Undone(ids, kept_ids)


def _undo(db: Database, settings: Settings, id: str, now: datetime) -> bool:
    """Ends one bill and removes its mails from the outbox. Returns True if it did.

    Changes nothing if the bill has received a payment or is not open.
    """
    bill = db.get(queries.LOCKED, id=id)
    invoices = db.rows(queries.INVOICES, id=id)
    has_received = any(row.received_sats or row.unapplied_sats for row in invoices)
    if has_received:
        return False
    if db.run(queries.UNDO, id=id, at=to_ms(now)) != 1:
        return False
    for row in invoices:
        manual.cancel(db, settings, row.id, now, force=True, where="with its bill")
    publish_resource(db, RESOURCE, id, BillKind.ENDED, now)
    mailbox = receivers.mail_id(receivers.BILL, bill.merchant_id)
    for name in MAILS:
        db.run(deliveries.DROP, receiver_id=mailbox, about=f"{id} {name}")
    return True


def _put_back(db: Database, first: Bill, ids: Sequence[str], now: datetime) -> None:
    """Makes the series continue with the first period whose bill was undone.

    Does nothing if the owner or the customer has ended the series.
    """
    zone = zone_at(db, first.merchant_id)
    if first.renews_ms is None and not _is_at_its_end(first, zone):
        return
    number = min(db.get(queries.BY_ID, id=id).number for id in ids)
    held_ms = None
    if _has_begun(first, number, zone, now):
        held_ms = to_ms(now)
    _move(db, first, number, held_ms)


def _is_at_its_end(first: Bill, zone: ZoneInfo) -> bool:
    """True if the next period of the series would begin after the last day of the series.

    A series that somebody has ended earlier has a further period before that day.
    """
    return period_ms(first, first.renews or 0, zone) is None


def _move(db: Database, first: Bill, number: int, held_ms: int | None) -> None:
    """Makes bill `number` the next bill of the series.

    `held_ms` is the time since which the series is suspended, in unix milliseconds;
    None if it is not.
    """
    db.run(
        queries.MOVE,
        id=first.id,
        renews=first.renews,  # as it was read: another process may be faster
        number=number,
        next_ms=period_ms(first, number, zone_at(db, first.merchant_id)),
        held_ms=held_ms,
    )
