"""Sends a test mail, and reports how the mail server responded."""

import smtplib
import ssl
import threading
from contextlib import suppress
from email.message import EmailMessage
from enum import StrEnum
from typing import NamedTuple

from btcpay.notify.mail import smtp
from btcpay.notify.mail.replies import Times
from btcpay.notify.mail.server import MailAccount
from btcpay.values.texts import display_line

# A web request waits for the test, so these limits are shorter than those of the outbox. A service
# that stops waits half a minute for its requests.
TIMES = Times(connect_s=5, answer_s=20, mail_s=25, goodbye_s=1)
MAX_WORDS = 300  # maximum characters of the server's words that are shown
_ONE_AT_A_TIME = threading.Lock()


class Fault(StrEnum):
    """The reasons why a test mail was not accepted."""

    BUSY = "busy"  # another test of this process is running
    UNREACHABLE = "unreachable"
    SLOW = "slow"
    CERTIFICATE = "certificate"
    TLS = "tls"  # no encrypted connection could be made
    NO_TLS = "no_tls"  # no encryption is offered, and a password is set
    LOGIN = "login"
    REFUSED = "refused"
    IN_DOUBT = "in_doubt"  # no answer to the whole mail


class Outcome(NamedTuple):
    """The outcome of a test.

    - `fault`: the reason why the mail was not accepted; None if the server accepted it.
    - `words`: the server's reply, on one line; "" if the response is no SMTP reply.
      Other responses are not shown, so that nobody can use the test to read those of
      other services that this machine can reach.
    """

    fault: Fault | None
    words: str = ""


def send_test(
    account: MailAccount,
    message: EmailMessage,
    to: str,
    times: Times = TIMES,
) -> Outcome:
    """Sends the message in a new SMTP session, and returns the outcome.

    If this process is already sending a test, returns the fault BUSY: each test occupies
    a thread that could serve payers.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        return Outcome(Fault.BUSY)
    try:
        return _send(account, message, to, times)
    finally:
        _ONE_AT_A_TIME.release()


def _send(
    account: MailAccount,
    message: EmailMessage,
    to: str,
    times: Times,
) -> Outcome:
    """Sends the message in a new SMTP session, and returns the outcome."""
    sender = account.sender
    try:
        session = smtp.log_in(account.server, sender.domain, times)
    except smtp.NoSession:
        return Outcome(Fault.NO_TLS)
    except smtp.FAILURES as error:
        return _outcome_of(error)
    try:
        session.send_message(message, sender.address, [to])
        outcome = Outcome(None, _words(*session.verdict))
        with suppress(*smtp.FAILURES):
            session.say_goodbye()
    except smtp.FAILURES as error:
        outcome = _outcome_of(error)
    finally:
        session.close()
    return outcome


def _outcome_of(error: Exception) -> Outcome:
    """Returns the outcome of a test that failed with this error, one of smtp.FAILURES."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        ((code, text),) = error.recipients.values()
        return Outcome(Fault.REFUSED, _words(code, text))
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return Outcome(Fault.LOGIN, _words(error.smtp_code, error.smtp_error))
    if isinstance(error, smtplib.SMTPResponseException):
        words = _words(error.smtp_code, error.smtp_error)
        if not words:  # what responds is no mail server
            return Outcome(Fault.UNREACHABLE)
        return Outcome(Fault.REFUSED, words)
    return Outcome(_silent_fault(error))


def _silent_fault(error: Exception) -> Fault:
    """Returns the fault for an error that contains no reply of the server."""
    if isinstance(error, smtp.Unanswered):
        return Fault.IN_DOUBT
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return Fault.SLOW
    if isinstance(error, ssl.SSLCertVerificationError):
        return Fault.CERTIFICATE
    if isinstance(error, ssl.SSLError):
        return Fault.TLS
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return Fault.UNREACHABLE
    # The server offers no login, or none of ours.
    if isinstance(error, smtplib.SMTPException):
        return Fault.LOGIN
    return Fault.UNREACHABLE


def _words(code: int, text: bytes | str) -> str:
    """Returns a reply on one line; "" if it is no SMTP reply."""
    if not 200 <= code < 600:
        return ""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    line = " ".join(display_line(text[: 4 * MAX_WORDS]).split())
    return f"{code} {line}".strip()[:MAX_WORDS]
