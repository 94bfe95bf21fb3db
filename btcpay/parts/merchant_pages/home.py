"""The page *Today*: received and pending money, things to do, and the shop's health."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from flask import Response
from peewee import Select

from btcpay import hooks
from btcpay.health.state import state_in_row
from btcpay.merchants.merchants import MARGIN, USUAL_GAP_LIMIT, gap_of
from btcpay.notify.mail.server import is_in_settings
from btcpay.parts.merchant_pages import today
from btcpay.parts.merchant_pages.queries import WANTING
from btcpay.parts.merchant_pages.sales_report import sales_reports, sums_to_show
from btcpay.parts.merchant_pages.visit import Visit
from btcpay.values.money import of_minor, value_of
from btcpay.values.times import date_of, day_of, from_ms, to_ms
from btcpay.web.pages.visit import Line
from storage.database import Values
from storage.queries import payments
from storage.queries.invoices import LATELY
from storage.queries.totals import days
from storage.statement import as_dict, rows_as

SOON = timedelta(days=7)  # parts (optional plug-ins) count what is due within this time
DAYS = 30  # the days in the chart; they are compared with as many days before
LISTED = 5  # invoices of each kind on this page; the full lists show all of them
NEW = timedelta(days=30)  # a shop is new for this time, and shows its open tasks
PRICE_PATIENCE_S = 0.5  # a price that comes later is used at the next view of the page
MOST_COMING = 100  # the maximum number of invoices whose pending payments are added up


def _counts_of_parts() -> list[Select]:
    """Returns the columns that parts (optional plug-ins) add to the shop's row."""
    columns: list[Select] = []
    for part in hooks.of(hooks.MerchantViews):
        columns += [count.alias(name) for name, count in part.today_counts.items()]
    return columns


# One SQL statement loads the shop's row and the counts of all parts.
SHOP = rows_as(today.Shop, today.SHOP.select_extend(*_counts_of_parts()))


def _lines(shop: today.Shop) -> list[Line]:
    """Returns the sentences that parts (optional plug-ins) add to this page.

    `shop` is a row of SHOP. Each part gets the counts that it has added to this row.
    """
    values = as_dict(shop)
    lines: list[Line] = []
    for part in hooks.of(hooks.MerchantViews):
        if part.today_lines:
            counts = {name: values[name] for name in part.today_counts}
            lines += part.today_lines(counts)
    return lines


def show(visit: Visit) -> Response:
    """Shows the page *Today*, the first page after the login.

    The request executes five SQL statements, including the one that loads the session.
    While there are blocks that only a part (an optional plug-in) still needs, there may
    be one more statement for each part.
    """
    service = visit.service
    now = visit.now
    db = service.db
    parameters: Values = {
        "merchant_id": visit.merchant_id,
        "now": to_ms(now),
        "until": to_ms(now + SOON),
        "finished_after": to_ms(now - LATELY),
    }
    shop = db.get(SHOP, **parameters)
    gap = gap_of(
        shop.last_paid, shop.widest, shop.next_index, used_before=shop.used_before
    )
    has_own_backup = not db.is_server  # PostgreSQL has a program of its own
    return visit.page(
        "home.html",
        lines=_lines(shop),
        to_do=to_do(shop, visit, has_own_backup),
        wanting=db.rows(WANTING, merchant_id=visit.merchant_id, limit=LISTED + 1),
        listed=LISTED,
        of_minor=of_minor,
        shop=shop,
        state=state_in_row(db, shop, service.settings, now),
        gap=gap,
        advised_gap_limit=gap.limit + MARGIN,
        has_own_backup=has_own_backup,
        is_without_price=_is_without_price(visit),
        date_of=date_of,
        now_ms=to_ms(now),
        **_received_values(visit),
        **_pending_values(visit),
    )


def _received_values(visit: Visit) -> dict[str, Any]:
    """Returns the template's values about the money received on the last DAYS days.

    Days are numbers, in the shop's time zone.
    """
    today_number = day_of(to_ms(visit.now), visit.zone)
    first = today_number - DAYS + 1
    rows = visit.service.db.rows(
        days.BETWEEN,
        first=first - DAYS,
        last=today_number,
        merchant_id=visit.merchant_id,
    )
    reports = sales_reports(rows, first, today_number, visit.session.currency)
    yesterday = today_number - 1
    return {
        "today_took": sums_to_show(reports, lambda report: report.by_day[today_number]),
        "yesterday_took": sums_to_show(
            reports, lambda report: report.by_day[yesterday]
        ),
        "thirty_days_took": sums_to_show(reports, lambda report: report.whole),
        "charts": reports,
        "yesterday": yesterday,
    }


def _pending_values(visit: Visit) -> dict[str, Any]:
    """Returns the template's values about the payments that lack confirmations."""
    rows = visit.service.db.rows(
        today.ON_ITS_WAY, limit=MOST_COMING + 1, merchant_id=visit.merchant_id
    )
    coming = rows[:MOST_COMING]
    return {
        "coming": coming,
        "coming_sums": _sums(coming, visit.session.currency),
        "is_more_coming": len(rows) > MOST_COMING,
        "value": _value,
    }


def show_more(visit: Visit) -> Response:
    """Shows the page *More*: on a phone, it has the items of the menu that are not tabs."""
    return visit.page("more.html")


class Task(NamedTuple):
    """A task for the owner of a new shop. `name` is its name in the template."""

    name: str
    is_done: bool


def to_do(shop: today.Shop, visit: Visit, has_own_backup: bool) -> list[Task]:
    """Returns the tasks for the owner of a new shop, in the recommended order.

    The list is empty if the shop is not new any more, or if all tasks are done.
    `has_own_backup` is True if these pages can make a backup.
    """
    if visit.now - from_ms(shop.created_ms) > NEW:
        return []
    session = visit.session
    settings = visit.service.settings
    # If environment variables set the mail server, the owner cannot set it here.
    if is_in_settings(settings):
        may_set_server = False
        has_mail = bool(settings.smtp_url and settings.mail_from)
    else:
        may_set_server = visit.is_only_owner
        has_mail = shop.has_mail_server
    has_usual_counting = session.currency == "USD" and session.timezone == "UTC"
    tasks = [Task("counting", is_done=not has_usual_counting)]
    if may_set_server:
        tasks.append(Task("mail_server", has_mail))
    if has_mail:
        tasks.append(Task("mail", shop.mail_address is not None))
    tasks.append(Task("payment", shop.last_paid is not None))
    tasks.append(Task("gap", shop.wallet_gap_limit > USUAL_GAP_LIMIT))
    if has_own_backup:
        tasks.append(Task("backup", shop.backed_up_ms is not None))
    if all(task.is_done for task in tasks):
        return []
    return tasks


def _is_without_price(visit: Visit) -> bool:
    """True if no invoice can be created now, for lack of a price in the shop's currency.

    If the known price is not fresh, requests a new one, and waits for it at most
    PRICE_PATIENCE_S.
    """
    rate = visit.service.prices.rate_for(visit.session.currency)
    rate.start_refresh()
    rate.cached_price(PRICE_PATIENCE_S)
    return rate.is_unavailable()


def _sums(coming: Sequence[payments.OutputWith], currency: str) -> dict[str, Decimal]:
    """Returns the value of pending payments by currency.

    If nothing is pending, returns a single entry: 0 in the shop's currency.
    """
    if not coming:
        return {currency: of_minor(0, currency)}
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for row in coming:
        sums[row.currency] += _value(row)
    return dict(sums)


def _value(row: payments.OutputWith) -> Decimal:
    """Returns the value of the row's satoshis, in the currency of its invoice."""
    return value_of(row.amount_sats, Decimal(row.price), row.currency)
