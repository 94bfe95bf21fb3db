"""Today: what came in, what comes, what wants the merchant, and how the service stands."""

from decimal import Decimal

from flask import Response

from btcpay.chain.progress import progress_of
from btcpay.health.state import state_of
from btcpay.merchant_pages.area import Area
from btcpay.merchant_pages.chart import chart_of
from btcpay.merchant_pages.on_its_way import by_invoice
from btcpay.merchant_pages.takings import first_day, takings
from btcpay.merchant_pages.visit import Visit
from btcpay.merchants.gap_limit import MARGIN, gap_of
from btcpay.values.times import from_ms_or_none, to_ms
from storage.queries import days, today

LISTED = 5  # invoices of each kind on the page; their lists have all
MOST_OUTPUTS = 100  # on their way, that are summed


def add(area: Area) -> None:
    """Serves /merchant."""
    area.get("", show)


def show(visit: Visit) -> Response:
    """The first page after the way in: five statements beside the session's."""
    service, now = visit.service, visit.now
    db, settings, own = service.db, service.settings, {"merchant_id": visit.merchant_id}
    today_number = days.day_of(now)
    took = takings(db.rows(days.SINCE, day=first_day(today_number), **own), today_number)
    progress = progress_of(db, settings.blocks, now)
    outputs = db.rows(today.ON_ITS_WAY, limit=MOST_OUTPUTS + 1, **own)
    coming = by_invoice(outputs[:MOST_OUTPUTS], progress.height if progress else 0, settings)
    shop = db.only(today.SHOP, **own)
    checked_ms, backed_up_ms = (
        None if shop[fact] is None else int(shop[fact]) for fact in ("checked_at", "backed_up_at")
    )
    paid = [] if shop["last_paid"] is None else [shop["last_paid"]]
    gap = gap_of(paid, shop["next_index"], shop["widest"] or 0)
    return visit.page(
        "home.html",
        took=took,
        chart=chart_of(took.by_day),
        coming=coming,
        is_more_coming=len(outputs) > MOST_OUTPUTS,
        wanting=[
            row | {"usd": Decimal(row["amount_usd_quote"])}
            for row in db.rows(today.WANTING, limit=LISTED + 1, **own)
        ],
        listed=LISTED,
        shop=shop,
        state=state_of(
            from_ms_or_none(checked_ms), progress, from_ms_or_none(backed_up_ms), settings, now
        ),
        checked_ms=checked_ms,
        backed_up_ms=backed_up_ms,
        gap=gap,
        is_gap_well=gap.is_well_within(shop["wallet_gap_limit"]),
        advised_gap_limit=gap.limit + MARGIN,
        has_own_backup=not db.is_server,
        day_ms=days.DAY_MS,
        now_ms=to_ms(now),
    )
