"""The place of refunds in the merchant's pages: an entry of the menu, lines of Today and Month."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from btcpay.languages import formats
from btcpay.refunds import queries
from btcpay.values.money import btc_shown
from btcpay.values.times import number_of, start_of
from btcpay.web.pages.languages import current, gettext
from storage.database import Values


class Line(NamedTuple):
    """A sentence, and the page that it leads to."""

    text: str
    path: str
    query: dict[str, str]


def entry() -> dict[str, Any]:
    """`drawn`: the path of an SVG."""
    drawn = "M9 14l-5-5 5-5M4 9h10a6 6 0 0 1 0 12h-3"
    return {"path": "/refunds", "name": gettext("Refunds"), "drawn": drawn}


def today(visit: Any, _shop: Any) -> list[Line]:
    """The refunds that the merchant's wallet is to send."""
    waiting = visit.session.refunds
    text = gettext("Refunds to be sent: %(number)s", number=formats.whole(waiting, current()))
    return [Line(text, "/refunds", {})] if waiting else []


def month(visit: Any, first: date, last: date) -> list[Line]:
    """The sums that were sent back on these days, by the currency of that time."""
    days = (first, last + timedelta(days=1))
    begin, end = (start_of(number_of(day), visit.zone) for day in days)
    span: Values = {"merchant_id": visit.merchant_id, "since": begin, "before": end}
    found: dict[str, Decimal] = {}
    for row in visit.service.db.rows(queries.SENT_BETWEEN, **span):
        code = row.currency if row.value_at_sending else "BTC"
        value = Decimal(row.value_at_sending or btc_shown(row.amount_sats))
        found[code] = found.get(code, Decimal(0)) + value
    sums = ", ".join(_money(value, code) for code, value in found.items())
    return [Line(gettext("Sent back: %(sums)s", sums=sums), "/refunds", {})] if sums else []


def _money(value: Decimal, code: str) -> str:
    return f"{value} BTC" if code == "BTC" else formats.money(value, code, current())
