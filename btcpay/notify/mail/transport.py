"""Transport: mail to merchants and their customers, composed as things stand when it is sent."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time, timedelta, tzinfo
from email.message import EmailMessage

from btcpay import hooks
from btcpay.notify.events import state_of
from btcpay.notify.kinds import EventKind
from btcpay.notify.mail import shop_texts, smtp, texts
from btcpay.notify.mail.replies import Times
from btcpay.notify.mail.texts import InvoiceNews, MailText, message_of
from btcpay.notify.outcome import Answer
from btcpay.settings.mail_settings import MailServer, Sender, checked_address
from btcpay.values.errors import BadRow
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
    meta,
    receivers,
    sessions,
)
from storage.queries.totals import days
from storage.statement import as_dict

log = logging.getLogger(__name__)

OVERDUE = timedelta(hours=1)
# most shops have closed by then
EVENING = "evening "
EVENING_AT = time(22)
# A mail that is older is no longer news.
STALE = timedelta(days=4)
Composed = tuple[str, MailText] | None
# What composes the mails of each part, by the name of its receivers.
PART_MAILS: dict[str, hooks.ComposeMail] = {
    part.name: part.compose for part in hooks.of(hooks.Mails)
}


class Mail:
    """The mails of a run, one after another in one session. Only `prepare` uses the database."""

    def __init__(
        self,
        db: Database,
        base_url: str,
        server: MailServer,
        sender: Sender,
        times: Times,
    ) -> None:
        self._db = db
        self._base_url = base_url
        self._server = server
        self._sender = sender
        self._times = times
        self._session: smtp.Session | None = None

    def prepare(
        self, receiver: Receiver, row: deliveries.Due, now: datetime
    ) -> Callable[[], Answer] | None:
        """A function that sends the mail; None when it is out of date. Raises BadRow.

        That is: the customer's address was erased, the invoice is no longer paid, a check has been
        complete since, or a link to log in was asked for long ago.
        """
        composed = self._compose(receiver, row, now)
        if composed is None:
            return None
        try:
            to = checked_address(composed[0])
        except ValueError:
            raise BadRow("no address that mail can be sent to") from None
        id = f"{row.about}.{receiver.id}.{row.created_at}".replace(" ", ".")
        message = message_of(composed[1], self._sender, to, id, from_ms(row.created_at))
        return lambda: self._send(message, to)

    def _send(self, message: EmailMessage, to: str) -> Answer:
        try:
            if self._session is None:
                server = self._server
                hello = self._sender.domain
                self._session = smtp.open_session(server, hello, self._times)
            else:
                self._session.next_mail()
            answer = smtp.hand_over(self._session, message, self._sender.address, to)
        except smtp.NoSession as error:
            log.warning("mail server %s %s", self._server.host, error)
            return Answer(False, None, str(error))
        except smtp.FAILURES as error:
            self._drop_session()
            return Answer(False, None, smtp.why(error))
        if answer.is_in_doubt:
            log.warning("mail server %s %s", self._server.host, answer.text)
            self._drop_session()
        return answer

    def close(self) -> None:
        """Ends the session, unless it ended before."""
        if self._session is not None:
            with suppress(*smtp.FAILURES):
                self._session.say_goodbye()
            self._drop_session()

    def _drop_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _compose(
        self, receiver: Receiver, row: deliveries.Due, now: datetime
    ) -> Composed:
        own = receiver.merchant_id
        wanted = self._db.row(receivers.MAIL_OF, merchant_id=own) or receivers.NO_MAIL
        merchant = self._db.only(merchants.BY_ID, id=own)
        language = wanted.language
        zone = zone_of(merchant.timezone)
        if compose := PART_MAILS.get(receiver.transport):
            return compose(self._db, self._base_url, row.about, language, zone, now)
        if receiver.transport == receivers.RECEIPT:
            about = self._about(row, zone)
            address = about.invoice.customer_email
            brand = self._brand(own)
            if not address or about.invoice.status != InvoiceStatus.PAID:
                return None
            return address, texts.receipt(about, language, brand)
        text = self._to_merchant(row, merchant, zone, language, now)
        if text is None:
            return None
        return (wanted.address or "", text)

    def _to_merchant(
        self,
        row: deliveries.Due,
        merchant: Merchant,
        zone: tzinfo,
        language: str,
        now: datetime,
    ) -> MailText | None:
        if row.about == deliveries.LOGIN:
            if now - from_ms(row.created_at) >= OVERDUE:
                return None
            secret = sessions.new_login(self._db, merchant.id, now)
            url = f"{self._base_url}/merchant/login/{secret}"
            return shop_texts.login(self._brand(merchant.id).seller, url, language)
        if row.about.startswith(EVENING):
            return self._evening(row.about, merchant, now.astimezone(zone), language)
        if row.seq is None:
            since = unchecked_since(self._db, merchant.created_at)
            is_late = now - since >= OVERDUE
            if is_late:
                return shop_texts.overdue(to_ms(since), zone, language)
            return None
        say = texts.paid if row.kind == EventKind.INVOICE_PAID else texts.attention
        return say(self._about(row, zone), language)

    def _about(self, row: deliveries.Due, zone: tzinfo) -> InvoiceNews:
        invoice = self._db.only(invoices.WHOLE, id=row.invoice_id or row.about)
        state = as_dict(invoice) if row.seq is None else state_of(row)
        return InvoiceNews(invoice, state, f"{self._base_url}/pay/{invoice.id}", zone)

    def _brand(self, merchant_id: int) -> merchants.Shown:
        return self._db.only(merchants.BRAND_ON_PAGES, merchant_id=merchant_id)

    def _evening(
        self, about: str, merchant: Merchant, now: datetime, language: str
    ) -> MailText | None:
        """The mail about that day; None once another evening has come. `now` in its zone."""
        day = last_evening(now)
        own = merchant.id
        if about != f"{EVENING}{day}":
            return None
        return shop_texts.evening(
            self._day(day, merchant),
            self._day(day - timedelta(days=1), merchant),
            day == now.date(),
            self._db.only(attentions.COUNT, merchant_id=own)[0],
            now - unchecked_since(self._db, merchant.created_at) < OVERDUE,
            f"{self._base_url}/merchant",
            language,
        )

    def _day(self, day: date, merchant: Merchant) -> shop_texts.Day:
        number = number_of(day)
        rows = self._db.rows(
            days.BETWEEN, merchant_id=merchant.id, first=number, last=number
        )
        took = [
            Money(of_minor(row.value_minor, row.currency), row.currency) for row in rows
        ]
        nothing = Money(of_minor(0, merchant.currency), merchant.currency)
        return shop_texts.Day(day, took or [nothing], sum(row.payments for row in rows))


def add_timed(db: Database, now: datetime) -> None:
    """Adds the mails that no event brings, each once.

    For each day on which no check was complete for an hour, and for the last evening.
    """
    for who in db.rows(receivers.WANT_MAIL):
        local = _local(now, who.timezone)
        is_late = now - unchecked_since(db, who.created_at) >= OVERDUE
        due = {
            f"check {local.date()}": is_late,
            f"{EVENING}{last_evening(local)}": who.evening,
        }
        for about in (about for about, is_due in due.items() if who.address and is_due):
            db.run(
                deliveries.ADD_MAIL,
                receiver_id=receivers.mail_id(receivers.MAIL, who.merchant_id),
                about=about,
                created_at=to_ms(now),
            )


def last_evening(now: datetime) -> date:
    """The last day whose evening has come; `now` in the shop's zone."""
    return now.date() - timedelta(days=int(now.time() < EVENING_AT))


def _local(now: datetime, zone_name: str) -> datetime:
    """The time in that zone, or in UTC if it is unknown here: then `_compose` refuses the mail."""
    try:
        return now.astimezone(zone_of(zone_name))
    except BadRow:
        return now


def unchecked_since(db: Database, born_ms: int) -> datetime:
    """The time of the last complete check, or of the merchant's creation if that is later."""
    born_at = from_ms(born_ms)
    return max(meta.time(db, meta.Key.CHECKED_AT) or born_at, born_at)
