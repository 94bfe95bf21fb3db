"""The mail server: a session with it, and one mail handed over. It alone speaks SMTP."""

import re
import smtplib
import socket
import ssl
from dataclasses import dataclass
from email.message import EmailMessage

from btcpay.settings.mail_settings import MailServer

# For each answer of the server.
TIMEOUT_S = 5
# What smtplib raises: its own errors are OSErrors, like those of sockets and TLS; a name that
# cannot be one in DNS is a ValueError.
FAILURES = (OSError, ValueError)
_ENHANCED = re.compile(rb"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?=\s|$)")  # RFC 3463


@dataclass(frozen=True)
class Outcome:
    """How it went with one mail. `is_final`: the server will never take it."""

    is_taken: bool
    is_final: bool = False
    told: str = ""


class NoSession(Exception):
    """The server cannot be reached, or lets nobody in; the message has no secret."""


def open_session(server: MailServer, hello: str, timeout_s: float = TIMEOUT_S) -> smtplib.SMTP:
    """A session, by TLS and logged in. Raises NoSession.

    Without TLS a password goes to this machine alone.
    """
    context = ssl.create_default_context()
    try:
        session: smtplib.SMTP = (
            smtplib.SMTP_SSL(server.host, server.port, hello, timeout=timeout_s, context=context)
            if server.is_tls
            else smtplib.SMTP(server.host, server.port, hello, timeout=timeout_s)
        )
    except FAILURES as error:
        raise NoSession(why(error)) from None
    try:
        _let_in(session, server, context)
    except FAILURES as error:
        session.close()
        raise NoSession(why(error)) from None
    except NoSession:
        session.close()
        raise
    return session


def _let_in(session: smtplib.SMTP, server: MailServer, context: ssl.SSLContext) -> None:
    session.ehlo_or_helo_if_needed()
    if not server.is_tls:
        if session.has_extn("starttls"):
            session.starttls(context=context)
            session.ehlo()
        elif server.user and not server.is_here:
            raise NoSession("offers no STARTTLS, and a password is not sent in the clear")
    if server.user:
        session.login(server.user, server.password)


def hand_over(session: smtplib.SMTP, message: EmailMessage, sender: str, to: str) -> Outcome:
    """Hands one mail over; a refusal is an outcome. Raises OSError when the session is lost."""
    try:
        session.send_message(message, sender, [to])
    except smtplib.SMTPServerDisconnected:
        raise
    except smtplib.SMTPRecipientsRefused as error:
        code, text = error.recipients[to]
        return _refused(code, text, code >= 500)
    except smtplib.SMTPSenderRefused as error:  # a setting is wrong: that can be mended
        return _refused(error.smtp_code, error.smtp_error, False)
    except smtplib.SMTPResponseException as error:
        return _refused(error.smtp_code, error.smtp_error, error.smtp_code >= 500)
    return Outcome(True)


def _refused(code: int, text: bytes | str, is_final: bool) -> Outcome:
    return Outcome(False, is_final, f"refused: {_status(code, text)}")


def _status(code: int, text: bytes | str) -> str:
    """`550 5.1.1`. Not the words behind it: they may repeat the address, or what was sent."""
    words = text.encode() if isinstance(text, str) else text
    found = _ENHANCED.match(words)
    return f"{code} {found[0].decode()}" if found else f"{code}"


def why(error: Exception) -> str:
    """What is wrong with the server, in a few words of ours."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"does not let us in: {_status(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"refuses: {_status(error.smtp_code, error.smtp_error)}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that is not valid: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "does not answer in time"
    if isinstance(error, socket.gaierror):
        return "has a name that cannot be found"
    return f"could not be spoken to: {type(error).__name__}"
