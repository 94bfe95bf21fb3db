"""One month of the merchant's zone: its sums and days, beside the month before."""

from datetime import date, timedelta

from flask import Response

from btcpay.merchant_pages.takings import chart_of, takings
from btcpay.merchant_pages.visit import Visit
from btcpay.values.times import date_of, number_of
from storage.queries.totals import days
from storage.values import Values

EARLIEST = date(2009, 1, 1)  # there was no bitcoin before


def show(visit: Visit) -> Response:
    """The month of `?month=2026-11`, else this one: one statement, of two months' days at most."""
    today = visit.now.astimezone(visit.zone).date()
    first = _first_of(visit.query.get("month", ""), today)
    before = (first - timedelta(days=1)).replace(day=1)
    after = (first + timedelta(days=31)).replace(day=1)
    last = after - timedelta(days=1)
    span: Values = {"first": number_of(before), "last": number_of(last)}
    span["merchant_id"] = visit.merchant_id
    rows = visit.service.db.rows(days.BETWEEN, **span)
    took = takings(rows, number_of(first), number_of(last), visit.session.currency)
    return visit.page(
        "month.html",
        charts=[(one, chart_of(one)) for one in took],
        first=first,
        last=last,
        before=before if before >= EARLIEST else None,
        after=after if after <= today else None,
        today=number_of(today),
        date_of=date_of,
    )


def _first_of(typed: str, today: date) -> date:
    """The first day of the month that was asked for; of this one for what is none, or to come."""
    try:
        first = date.fromisoformat(f"{typed}-01")
    except ValueError:
        return today.replace(day=1)
    return first if EARLIEST <= first <= today else today.replace(day=1)
