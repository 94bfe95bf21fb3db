"""Composes the mails of one run of the outbox, and sends them to the mail server."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from email.message import EmailMessage

from btcpay.notify.mail import smtp
from btcpay.notify.mail.compose import Urls, compose
from btcpay.notify.mail.message import message_of
from btcpay.notify.mail.replies import Times
from btcpay.notify.outcome import Answer
from btcpay.settings.mail_settings import MailServer, Sender, checked_address
from btcpay.values.errors import BadRow
from btcpay.values.times import from_ms
from storage.database import Database
from storage.models import Receiver
from storage.queries import deliveries, merchants

log = logging.getLogger(__name__)


class Mail:
    """Sends the mails of one run of the outbox one after another, in one SMTP session.

    Only `prepare` uses the database. So another thread can call the functions that it
    returns.
    """

    def __init__(
        self,
        db: Database,
        urls: Urls,
        server: MailServer,
        sender: Sender,
        times: Times,
    ) -> None:
        self._db = db
        self._urls = urls
        self._server = server
        self._sender = sender
        self._times = times
        self._session: smtp.Session | None = None

    def prepare(
        self,
        receiver: Receiver,
        row: deliveries.Due,
        now: datetime,
    ) -> Callable[[], Answer] | None:
        """Composes the mail, and returns a function that sends it.

        Returns None if the mail is out of date, such as a receipt whose customer's
        address was erased. Raises BadRow if a stored value is invalid, or if mail
        cannot be sent to the stored address.
        """
        mail = compose(self._db, self._urls, receiver, row, now)
        if mail is None:
            return None
        address, text = mail
        try:
            to = checked_address(address)
        except ValueError:
            raise BadRow("no address that mail can be sent to") from None
        # The same for each attempt, so that mail programs recognise a mail that came twice.
        id = f"{row.about}.{receiver.id}.{row.created_ms}".replace(" ", ".")
        brand = self._db.get(merchants.MAIL_BRAND, merchant_id=receiver.merchant_id)
        at = from_ms(row.created_ms)
        message = message_of(text, brand, self._sender, to=to, id=id, at=at)
        return lambda: self._send(message, to)

    def _send(self, message: EmailMessage, to: str) -> Answer:
        """Sends the mail in the open session, or in a new one. Returns the outcome."""
        try:
            session = self._ready_session()
            answer = smtp.send_mail(session, message, self._sender.address, to)
        except smtp.NoSession as error:
            log.warning("mail server %s %s", self._server.host, error)
            return Answer(is_taken=False, status=None, text=str(error))
        except smtp.FAILURES as error:
            self._drop_session()
            return Answer(is_taken=False, status=None, text=smtp.reason_of(error))
        if answer.is_in_doubt:
            log.warning("mail server %s %s", self._server.host, answer.text)
            self._drop_session()
        return answer

    def _ready_session(self) -> smtp.Session:
        """Returns the open session, ready for the next mail, or opens one.

        Raises NoSession if none can be opened.
        """
        if self._session is None:
            hello = self._sender.domain
            self._session = smtp.open_session(self._server, hello, self._times)
        else:
            self._session.next_mail()
        return self._session

    def close(self) -> None:
        """Ends the session if one is open."""
        if self._session is not None:
            with suppress(*smtp.FAILURES):
                self._session.say_goodbye()
            self._drop_session()

    def _drop_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
