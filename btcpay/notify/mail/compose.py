"""Composes mails to merchants and customers, just before they are sent."""

from datetime import date, datetime, timedelta, tzinfo
from typing import NamedTuple

from btcpay import hooks
from btcpay.notify.events import state_of
from btcpay.notify.kinds import EventKind
from btcpay.notify.mail import shop_texts, texts
from btcpay.notify.mail.content import MailText
from btcpay.notify.mail.receipt import receipt
from btcpay.notify.mail.texts import InvoiceNews
from btcpay.notify.mail.timed import EVENING, OVERDUE, last_evening, unchecked_since
from btcpay.settings.settings import Settings
from btcpay.values.money import Money, of_minor
from btcpay.values.statuses import InvoiceStatus
from btcpay.values.times import from_ms, number_of, to_ms, zone_of
from storage.database import Database
from storage.models import Merchant, Receiver
from storage.queries import (
    attentions,
    deliveries,
    invoices,
    merchants,
    receivers,
    sessions,
)
from storage.queries.totals import days
from storage.statement import as_dict

# The functions that compose the mails of parts (optional plug-ins), by the transport of the
# receivers that get these mails.
PART_MAILS: dict[str, hooks.ComposeMail] = {
    part.name: part.compose for part in hooks.of(hooks.Mails)
}
# The transports of mails that are due by the clock, without an event.
CLOCK_MAILS = {part.name for part in hooks.of(hooks.Mails) if part.of_clock}


class Urls(NamedTuple):
    """The public URLs of the service and of the merchant's pages.

    `merchant_pages` is None if the settings switch the merchant's pages off.
    """

    root: str
    merchant_pages: str | None


def urls_of(settings: Settings) -> Urls:
    """Returns the URLs that links in mails begin with."""
    root = settings.base_url
    if settings.merchant_pages:
        return Urls(root, merchant_pages=f"{root}/merchant")
    return Urls(root, merchant_pages=None)


def compose(
    db: Database,
    urls: Urls,
    receiver: Receiver,
    row: deliveries.Due,
    now: datetime,
) -> tuple[str, MailText] | None:
    """Composes the mail of a delivery. Returns the recipient's address and the content.

    Returns None if the mail is out of date:

    - a receipt, if the customer's address was erased or the invoice is no longer paid;
    - a warning that no check (`blocktill check`) completes, if one has completed since;
    - the mail about an evening, if a later evening has come;
    - a login link, if it was requested an hour (OVERDUE) ago or earlier.

    A part (an optional plug-in) decides about its own mails. Raises BadRow if a stored
    value is invalid.
    """
    merchant = db.get(merchants.BY_ID, id=receiver.merchant_id)
    mailbox = (
        db.get_or_none(receivers.MAIL_OF, merchant_id=merchant.id) or receivers.NO_MAIL
    )
    language = mailbox.language
    zone = zone_of(merchant.timezone)
    part_compose = PART_MAILS.get(receiver.transport)
    if part_compose:
        return part_compose(db, urls.root, row.about, language, zone, now)
    if receiver.transport == receivers.RECEIPT:
        return _receipt(db, urls, row, zone, language)
    text = _to_merchant(db, urls, row, merchant, zone=zone, language=language, now=now)
    if text is None:
        return None
    return mailbox.address or "", text


def _receipt(
    db: Database,
    urls: Urls,
    row: deliveries.Due,
    zone: tzinfo,
    language: str,
) -> tuple[str, MailText] | None:
    """Returns the customer's address and the receipt; None if the mail is out of date."""
    about = _invoice_news(db, urls, row, zone)
    invoice = about.invoice
    brand = _brand(db, invoice.merchant_id)
    if not invoice.customer_email or invoice.status != InvoiceStatus.PAID:
        return None
    return invoice.customer_email, receipt(about, language, brand)


def _to_merchant(
    db: Database,
    urls: Urls,
    row: deliveries.Due,
    merchant: Merchant,
    zone: tzinfo,
    language: str,
    now: datetime,
) -> MailText | None:
    """Returns the content of a mail to the merchant; None if the mail is out of date."""
    if row.about == deliveries.LOGIN:
        is_too_old = now - from_ms(row.created_ms) >= OVERDUE
        if is_too_old:
            return None
        secret = sessions.new_login(db, merchant.id, now)
        url = f"{urls.root}/merchant/login/{secret}"
        return shop_texts.login(_brand(db, merchant.id).seller, url, language)
    if row.about.startswith(EVENING):
        local_now = now.astimezone(zone)
        return _evening(db, urls, row.about, merchant, local_now, language)
    if row.seq is None:  # it is about no event: the warning that no check completes
        return _warning(db, urls, merchant, zone, language, now)
    about = _invoice_news(db, urls, row, zone)
    if row.kind == EventKind.INVOICE_PAID:
        return texts.paid_invoice(about, language)
    return texts.attention(about, language)


def _warning(
    db: Database,
    urls: Urls,
    merchant: Merchant,
    zone: tzinfo,
    language: str,
    now: datetime,
) -> MailText | None:
    """Returns the mail that no check completes; None if one has completed since."""
    since = unchecked_since(db, merchant.created_ms)
    is_overdue = now - since >= OVERDUE
    if not is_overdue:
        return None
    return shop_texts.overdue(to_ms(since), zone, urls.merchant_pages, language)


def _invoice_news(
    db: Database,
    urls: Urls,
    row: deliveries.Due,
    zone: tzinfo,
) -> InvoiceNews:
    """Returns the invoice with its state at the time of the event.

    A receipt that a customer has requested has no event. It gets the present state.
    """
    invoice = db.get(invoices.WHOLE, id=row.invoice_id or row.about)
    state = as_dict(invoice)
    if row.seq is not None:
        state = state_of(row)
    merchant_url = None
    if urls.merchant_pages:
        merchant_url = f"{urls.merchant_pages}/invoices/{invoice.id}"
    page_url = f"{urls.root}/pay/{invoice.id}"
    return InvoiceNews(
        invoice=invoice,
        state=state,
        page_url=page_url,
        zone=zone,
        merchant_url=merchant_url,
    )


def _brand(db: Database, merchant_id: int) -> merchants.BrandOnPages:
    return db.get(merchants.BRAND_ON_PAGES, merchant_id=merchant_id)


def _evening(
    db: Database,
    urls: Urls,
    about: str,
    merchant: Merchant,
    now: datetime,
    language: str,
) -> MailText | None:
    """Returns the mail about one evening; None if a later evening has come.

    `about` has the date of the evening. `now` is in the merchant's time zone.
    """
    day = last_evening(now)
    if about != f"{EVENING}{day}":
        return None
    day_before = None
    born_at = from_ms(merchant.created_ms).astimezone(now.tzinfo)
    if born_at.date() < day:
        day_before = _day(db, day - timedelta(days=1), merchant)
    unchecked_for = now - unchecked_since(db, merchant.created_ms)
    return shop_texts.evening(
        _day(db, day, merchant),
        day_before,
        is_today=day == now.date(),
        attention_count=db.get(attentions.COUNT, merchant_id=merchant.id)[0],
        is_checked=unchecked_for < OVERDUE,
        pages_url=urls.merchant_pages,
        language=language,
    )


def _day(db: Database, day: date, merchant: Merchant) -> shop_texts.Day:
    """Returns the day's sales by currency; 0 in the merchant's currency if there are none."""
    number = number_of(day)
    rows = db.rows(days.BETWEEN, merchant_id=merchant.id, first=number, last=number)
    sums = [
        Money(of_minor(row.value_minor, row.currency), row.currency) for row in rows
    ]
    if not sums:
        sums = [Money(of_minor(0, merchant.currency), merchant.currency)]
    payment_count = sum(row.payments for row in rows)
    return shop_texts.Day(day, sums, payment_count)
