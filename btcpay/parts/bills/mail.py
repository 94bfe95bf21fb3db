"""Mails to the customer of a bill.

The text of a mail is composed when the mail is sent, from the bill's state at that
time.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, tzinfo

from btcpay import hooks
from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.content import MailText
from btcpay.notify.mail.receipt import business_lines, contact_lines, tax_lines
from btcpay.parts.bills import queries
from btcpay.parts.bills.bill_receipt import BillReceipt, receipt_of
from btcpay.parts.bills.kinds import RESOURCE
from btcpay.parts.bills.models import Bill, BillStatus
from btcpay.values.money import stored_amount
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import deliveries, merchants, receivers

NAME = receivers.BILL


def send_later(db: Database, bill: Bill, at_ms: Mapping[str, int]) -> None:
    """Adds mails about a bill to the outbox. Does nothing if the bill has no e-mail address.

    `at_ms` has the time at which each mail is sent, in unix milliseconds, by the mail's
    name. A mail that is in the outbox already is not added again.
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
    """True if the mail with this name still fits the bill's state.

    - No mail fits if the customer has ended the series, or if the bill has ended.
    - The mail `paid` fits only a paid bill.
    - The other mails fit only an open bill. The reminder `soon` does not fit a bill that
      is overdue.

    `first` is the first bill of the series; for a single bill, it is the bill itself.
    `now_ms` is in unix milliseconds.
    """
    if first.stopped_ms or bill.status == BillStatus.ENDED:
        return False
    if name == "paid":
        return bill.status == BillStatus.PAID
    if bill.status != BillStatus.OPEN:
        return False
    if name == "soon":
        return now_ms <= bill.due_ms
    return True


def compose(
    db: Database,
    base_url: str,
    about: str,
    language: str,
    zone: tzinfo,
    now: datetime,
) -> tuple[str, MailText] | None:
    """Returns the recipient's address and the text of a mail; None if it must not be sent.

    `about` is the bill's id, a space, and the name of the mail.
    """
    bill_id, _, name = about.partition(" ")
    bill = db.get(queries.BY_ID, id=bill_id)
    first = db.get(queries.BY_ID, id=bill.series_id or bill_id)
    if not bill.customer_email or not is_news(name, bill, first, to_ms(now)):
        return None
    brand = db.get(merchants.BRAND_ON_PAGES, merchant_id=bill.merchant_id)
    text = text_of(
        name,
        bill,
        seller=brand.seller,
        renews_ms=first.renews_ms,
        page_url=RESOURCE.url_of(base_url, bill.id),
        language=language,
        zone=zone,
    )
    receipt = receipt_of(db, bill)
    if name == "paid" and receipt:
        return bill.customer_email, _as_receipt(text, receipt, brand)
    return bill.customer_email, replace(text, footer=contact_lines(brand, language))


def _as_receipt(
    text: MailText, receipt: BillReceipt, brand: merchants.BrandOnPages
) -> MailText:
    """Returns the mail with the receipt number, the tax and the lines about the seller."""
    language = text.language
    number = formats.digits(str(receipt.number), language)
    label = catalog(language).gettext("Receipt number")
    return replace(
        text,
        facts=[(label, number), *text.facts],
        within=tax_lines(receipt.tax, language),
        footer=business_lines(brand, language),
    )


def text_of(
    name: str,
    bill: Bill,
    seller: str,
    renews_ms: int | None,
    page_url: str,
    language: str,
    zone: tzinfo,
) -> MailText:
    """Returns the text of a mail about the bill, without a footer.

    `name` is the mail's name: "new", "soon", "overdue" or "paid". `page_url` is the URL
    of the bill's page. `renews_ms` is the time when the series creates its next
    bill, in unix milliseconds; None if it creates none.
    """
    gettext = catalog(language).gettext
    stop = None
    if bill.series_id:
        stop = (gettext("End these bills"), f"{page_url}/stop")
    facts = _facts(bill, renews_ms, language, zone)
    amount = formats.money(stored_amount(bill.amount), bill.currency, language)
    below_amount = []
    paid = stored_amount(bill.paid)
    remainder = stored_amount(bill.amount) - paid
    is_partly_paid = bill.status == BillStatus.OPEN and paid > 0 and remainder > 0
    if is_partly_paid:  # the mail shows the remainder large, and the whole as a fact
        facts = [(gettext("Amount"), amount), *facts]
        amount = formats.money(remainder, bill.currency, language)
        below_amount = [gettext("Still to pay")]
    return MailText(
        language=language,
        subject=_subject(name, bill, seller, language),
        sentences=[_sentence(name, bill, language, zone)],
        facts=facts,
        link=(gettext("Open the bill"), page_url),
        stop=stop,
        amount=amount,
        within=below_amount,
    )


def _subject(name: str, bill: Bill, seller: str, language: str) -> str:
    gettext = catalog(language).gettext
    subjects = {
        "new": gettext("Bill from %(name)s"),
        "soon": gettext("Reminder: bill from %(name)s"),
        "overdue": gettext("Overdue: bill from %(name)s"),
        "paid": gettext("Paid: bill from %(name)s"),
    }
    subject = subjects[name] % {"name": seller}
    if bill.reference:
        subject = f"{subject} · {bill.reference}"
    return subject


def _sentence(name: str, bill: Bill, language: str, zone: tzinfo) -> str:
    gettext = catalog(language).gettext
    sentences = {
        "new": gettext("Please pay this bill by %(day)s. Its page says how."),
        "soon": gettext("This bill is due on %(day)s. Its page says how to pay it."),
        "overdue": gettext("This bill was due on %(day)s, and it is not paid yet."),
        "paid": gettext("Thank you. This bill is paid."),
    }
    due_day = formats.date_of(bill.due_ms, language, zone)
    return sentences[name] % {"day": due_day}


def _facts(
    bill: Bill,
    renews_ms: int | None,
    language: str,
    zone: tzinfo,
) -> list[tuple[str, str]]:
    """Returns the facts in a mail about the bill, each with its label. Empty ones are left out."""
    gettext = catalog(language).gettext
    recurrence = ""
    if bill.every and renews_ms:
        periods = {
            "week": gettext("every week"),
            "month": gettext("every month"),
            "year": gettext("every year"),
        }
        day = formats.date_of(renews_ms, language, zone)
        next_day = gettext("next on %(day)s") % {"day": day}
        recurrence = f"{periods[bill.every]} · {next_day}"
    facts = [
        (gettext("Reference"), bill.reference),
        (gettext("For"), bill.description),
        (gettext("How often"), recurrence),
    ]
    return [(label, text) for label, text in facts if text]


HOOK = hooks.Mails(name=NAME, compose=compose, of_clock=True)
