"""The mails to the customer of a bill.

Their text is composed when they are sent, from the bill's state at that time.
"""

from collections.abc import Mapping
from datetime import datetime, tzinfo

from btcpay import hooks
from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.message import MailText
from btcpay.parts.bills import queries
from btcpay.parts.bills.kinds import RESOURCE
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.values.money import Money, stored_amount
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import deliveries, merchants, receivers

NAME = receivers.BILL


def send_later(db: Database, bill: Bill, at_ms: Mapping[str, int]) -> None:
    """Adds mails to the outbox, if the bill has an e-mail address.

    `at_ms` maps the name of each mail to the time to send it, in Unix ms. A mail that
    is in the outbox already is not added again.
    """
    if not bill.customer_email:
        return
    id = receivers.add_mailbox(db, NAME, NAME, bill.merchant_id, (), bill.created_ms)
    for name, ms in at_ms.items():
        db.run(
            deliveries.ADD_MAIL,
            receiver_id=id,
            about=f"{bill.id} {name}",
            created_ms=ms,
        )


def is_news(name: str, bill: Bill, first: Bill, now_ms: int) -> bool:
    """True if the mail `name` still applies to the bill.

    False if the bill's status has changed, if it is too late for the reminder `soon`,
    or if the customer has ended the series. `first` is the first bill of the series, or
    the bill itself if it has none. `now_ms` is in Unix ms.
    """
    if first.stopped_ms or bill.status == BillStatus.ENDED:
        return False
    if name == "paid":
        return bill.status == BillStatus.PAID
    return bill.status == BillStatus.OPEN and (name != "soon" or now_ms <= bill.due_ms)


def compose(
    db: Database,
    base_url: str,
    about: str,
    language: str,
    zone: tzinfo,
    now: datetime,
) -> tuple[str, MailText] | None:
    """Returns the recipient and the text of a mail; None if it must not be sent.

    `about` is the bill's id, a space, and the name of the mail.
    """
    id, _, name = about.partition(" ")
    bill = db.get(queries.BY_ID, id=id)
    first = db.get(queries.BY_ID, id=bill.series_id or id)
    if not bill.customer_email or not is_news(name, bill, first, to_ms(now)):
        return None
    seller = db.get(merchants.BRAND_ON_PAGES, merchant_id=bill.merchant_id).seller
    return bill.customer_email, text_of(name, bill, seller, base_url, language, zone)


def text_of(
    name: str,
    bill: Bill,
    seller: str,
    base_url: str,
    language: str,
    zone: tzinfo,
) -> MailText:
    gettext = catalog(language).gettext
    page = RESOURCE.url_of(base_url, bill.id)
    subjects = {
        "new": gettext("Bill from %(name)s"),
        "soon": gettext("Reminder: bill from %(name)s"),
        "overdue": gettext("Overdue: bill from %(name)s"),
        "paid": gettext("Paid: bill from %(name)s"),
    }
    sentences = {
        "new": gettext("Please pay this bill by %(day)s. Its page says how."),
        "soon": gettext("This bill is due on %(day)s. Its page says how to pay it."),
        "overdue": gettext("This bill was due on %(day)s, and it is not paid yet."),
        "paid": gettext("Thank you. This bill is paid."),
    }
    subject = subjects[name] % {"name": seller}
    if bill.reference:
        subject = f"{subject} · {bill.reference}"
    stop = None
    if bill.series_id:
        stop = (gettext("End these bills"), f"{page}/stop")
    due_day = formats.date_of(bill.due_ms, language, zone)
    return MailText(
        language,
        subject,
        [sentences[name] % {"day": due_day}],
        _facts(bill, language),
        (gettext("Open the bill"), page),
        stop,
    )


def _facts(bill: Bill, language: str) -> list[tuple[str, str]]:
    """Returns label and text of each fact that a mail about the bill lists."""
    gettext = catalog(language).gettext
    amount = Money(stored_amount(bill.amount), bill.currency)
    paid = stored_amount(bill.paid)
    facts = [(gettext("Amount"), formats.format_money(amount, language))]
    if 0 < paid < amount.amount and bill.status == BillStatus.OPEN:
        remainder = Money(amount.amount - paid, bill.currency)
        facts.append(
            (gettext("Still to pay"), formats.format_money(remainder, language))
        )
    if bill.reference:
        facts.append((gettext("Reference"), bill.reference))
    if bill.description:
        facts.append((gettext("For"), bill.description))
    return facts


HOOK = hooks.Mails(name=NAME, compose=compose, of_clock=True)
