"""The sentences about bills on the merchant's other pages, and the item of the menu."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal

from btcpay import hooks
from btcpay.languages import formats
from btcpay.parts.bills import queries
from btcpay.parts.bills.models import Bill
from btcpay.values.times import to_ms
from btcpay.web.pages.languages import current_language, gettext
from btcpay.web.pages.visit import Line, Visit


def menu_item() -> hooks.MenuItem:
    return hooks.MenuItem(
        path="/bills",
        name=gettext("Bills"),
        drawn="M5 3h10l4 4v14H5zM15 3v4h4M8 12h8M8 16h5",
        is_tab=True,
        new_path="/bills/new",
        new_name=gettext("New bill"),
    )


def today_lines(counts: Mapping[str, int]) -> list[Line]:
    """Returns a sentence about the overdue bills, and one about those due within a week.

    `counts` has the numbers of these bills. A sentence about no bills is left out.
    """
    numbers = {"overdue": counts["bills_overdue"], "due": counts["bills_due"]}
    return [_line(kind, number) for kind, number in numbers.items() if number]


def month_lines(visit: Visit, since_ms: int, before_ms: int) -> list[Line]:
    """Returns sentences about the unpaid bills with since_ms <= due time < before_ms.

    The times are in unix milliseconds. One sentence is about overdue bills, one about
    the others; a sentence about no bills is left out. Each has the sums that are
    missing, one for each currency.
    """
    bills = visit.service.db.rows(
        queries.OPEN,
        merchant_id=visit.merchant_id,
        since=since_ms,
        before=before_ms,
        limit=queries.MOST_COUNTED,
    )
    now_ms = to_ms(visit.now)
    overdue = [bill for bill in bills if bill.due_ms < now_ms]
    due = [bill for bill in bills if bill.due_ms >= now_ms]
    lines = []
    if overdue:
        lines.append(_line("overdue", len(overdue), f" ({_sums(overdue)})"))
    if due:
        lines.append(_line("due", len(due), f" ({_sums(due)})"))
    return lines


def _line(kind: str, number: int, sums: str = "") -> Line:
    """Returns the sentence about a number of bills; `kind` is "overdue" or "due".

    `sums` is a text that follows the number.
    """
    plus = ""
    if number == queries.MOST_COUNTED:  # there may be more bills
        plus = "+"
    number_text = f"{formats.whole(number, current_language())}{plus}{sums}"
    texts = {
        "overdue": gettext("Overdue bills: %(number)s", number=number_text),
        "due": gettext("Bills due: %(number)s", number=number_text),
    }
    return texts[kind], "/bills", {"status": kind}


def _sums(bills: Sequence[Bill]) -> str:
    """Returns the missing sums of these bills as text, one for each currency."""
    missing_by_currency = defaultdict[str, Decimal](Decimal)
    for bill in bills:
        missing = Decimal(bill.amount) - Decimal(bill.paid)
        missing_by_currency[bill.currency] += missing
    language = current_language()
    texts = []
    for currency, amount in missing_by_currency.items():
        texts.append(formats.money(amount, currency, language))
    return ", ".join(texts)
