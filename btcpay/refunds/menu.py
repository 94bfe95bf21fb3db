"""The place of refunds in the merchant's pages: an entry of the menu, lines of Today and Month."""

from collections import defaultdict
from decimal import Decimal
from typing import Any

from btcpay.languages import formats
from btcpay.refunds import queries
from btcpay.values.money import btc_shown
from btcpay.web.pages.languages import current, gettext
from btcpay.web.pages.visit import Line, Visit
from storage.database import Values


def entry() -> dict[str, Any]:
    """`drawn`: the path of an SVG."""
    drawn = "M9 14l-5-5 5-5M4 9h10a6 6 0 0 1 0 12h-3"
    return {"path": "/refunds", "name": gettext("Refunds"), "drawn": drawn}


def today(visit: Visit, _shop: Any) -> list[Line]:
    """The refunds that the merchant's wallet is to send."""
    waiting = visit.session.refunds
    text = gettext("Refunds to be sent: %(number)s", number=formats.whole(waiting, current()))
    return [(text, "/refunds", {})] if waiting else []


def month(visit: Visit, since: int, before: int) -> list[Line]:
    """The sums that were sent back in this time, by the currency of that time."""
    found = defaultdict[str, Decimal](Decimal)
    span: Values = {"merchant_id": visit.merchant_id, "since": since, "before": before}
    for row in visit.service.db.rows(queries.SENT_BETWEEN, **span):
        code = row.currency if row.currency and row.value_at_sending else "BTC"
        found[code] += Decimal(row.value_at_sending or btc_shown(row.amount_sats))
    sums = ", ".join(
        f"{value} BTC" if code == "BTC" else formats.money(value, code, current())
        for code, value in found.items()
    )
    return [(gettext("Sent back: %(sums)s", sums=sums), "/refunds", {})] if sums else []
