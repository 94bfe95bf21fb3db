"""Opens SMTP sessions with the mail server, and sends mails in them."""

import re
import smtplib
import socket
import ssl
from collections.abc import Callable
from email.message import EmailMessage
from functools import partial
from typing import Any

from btcpay.http.connector import connect
from btcpay.notify.mail.replies import Bounds, Replies, Times
from btcpay.notify.outcome import Answer
from btcpay.settings.mail_settings import MailServer
from btcpay.values.hosts import is_here

_END_OF_MAIL = b"\r\n.\r\n"  # section 4.1.1.4 of RFC 5321
# Errors of smtplib, sockets and TLS are OSErrors. A host name that is invalid in DNS raises
# ValueError.
FAILURES = (OSError, ValueError)
_ENHANCED = re.compile(rb"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?=\s|$)")  # RFC 3463


IN_DOUBT = Answer(
    is_taken=False,
    status=None,
    text="did not answer to the whole mail: it may be sent",
    is_in_doubt=True,
)


class NoSession(Exception):
    """The server cannot be reached, refuses the login, or offers no encryption.

    The message is the rest of a sentence that begins with the server's name, for
    example "does not answer in time". It contains no secret.
    """


class Unanswered(OSError):
    """The whole mail was sent but no reply came: the server may have accepted the mail."""


class Session(smtplib.SMTP):
    """An SMTP session whose replies are limited in bytes and in time."""

    def __init__(self, times: Times, *args: Any, **kwargs: Any) -> None:
        self._times = times
        self._bounds = Bounds(times)
        self._awaits_verdict = False
        self.verdict = (0, b"")  # the reply to the last whole mail
        super().__init__(*args, **kwargs)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connects to the server.

        smtplib's own method would spend the whole time-out on the first IP address of
        the host.
        """
        connection = connect(host, port, self._times.connect_s)
        connection.settimeout(self._times.answer_s)
        return connection

    def send(self, s: Any) -> None:
        """Sends text or bytes to the server, and notes whether they end a mail."""
        if self.sock is not None:
            self.sock.settimeout(self._times.answer_s)
        super().send(s)
        self._awaits_verdict = isinstance(s, bytes) and s.endswith(_END_OF_MAIL)

    def getreply(self) -> tuple[int, bytes]:
        """Returns the server's next reply.

        Raises Unanswered if the reply to a completely sent mail does not come, since
        the server may have accepted the mail. Raises another OSError if any other reply
        does not come.
        """
        if self.file is None and self.sock is not None:
            self.file = Replies(self.sock, self._bounds)
        self._bounds.next_answer()
        try:
            reply = super().getreply()
        except OSError as error:
            if self._awaits_verdict:
                raise Unanswered from error
            raise
        if self._awaits_verdict:
            self.verdict = reply
        self._awaits_verdict = False
        return reply

    def next_mail(self) -> None:
        """Resets the limits for the next mail."""
        self._bounds.next_mail()

    def say_goodbye(self) -> None:
        """Tells the server that the session ends, and waits for the reply.

        Raises one of FAILURES if the connection is lost.
        """
        self._bounds.goodbye()
        self.quit()


class _TlsSession(Session, smtplib.SMTP_SSL):
    """An SMTP session that uses TLS from the first byte."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        sock = super()._get_socket(host, port, timeout)
        return self.context.wrap_socket(sock, server_hostname=host)


def open_session(server: MailServer, hello: str, times: Times) -> Session:
    """Opens a session and logs in.

    `hello` is the host name with which the session greets the server. The session uses
    TLS if the server offers it. It sends a password over an unencrypted connection only
    to this machine. Raises NoSession if any step fails.
    """
    try:
        return log_in(server, hello, times)
    except FAILURES as error:
        raise NoSession(reason_of(error)) from None


def log_in(server: MailServer, hello: str, times: Times) -> Session:
    """Opens a session and logs in, like `open_session`, but raises the original errors.

    Raises NoSession only if the password would have to be sent to another machine
    without encryption. Raises one of FAILURES if another step fails.
    """
    context = ssl.create_default_context()
    new_session: Callable[..., Session] = Session
    if server.is_tls:
        new_session = partial(_TlsSession, context=context)
    session = new_session(times, server.host, server.port, hello)
    try:
        _authenticate(session, server, context)
    except (*FAILURES, NoSession):
        session.close()
        raise
    return session


def _authenticate(
    session: Session, server: MailServer, context: ssl.SSLContext
) -> None:
    """Encrypts the session if the server offers it, then logs in if there is a user."""
    session.ehlo_or_helo_if_needed()
    if not server.is_tls:
        if session.has_extn("starttls"):
            session.starttls(context=context)
            session.ehlo()
        elif server.user and not is_here(server.host):
            raise NoSession(
                "offers no STARTTLS, and a password is not sent in the clear"
            )
    if server.user:
        session.login(server.user, server.password)


def send_mail(session: Session, message: EmailMessage, sender: str, to: str) -> Answer:
    """Sends one mail from the address `sender` to the address `to`. Returns the outcome.

    The outcome says whether the server has accepted or refused the mail. It is IN_DOUBT
    if the mail was sent completely, but the server did not reply. Raises OSError if the
    connection is lost before the mail was sent completely.
    """
    try:
        session.send_message(message, sender, [to])
    except smtplib.SMTPRecipientsRefused as error:
        code, text = error.recipients[to]
        return _refusal(code, text, is_final=code >= 500)
    except smtplib.SMTPSenderRefused as error:
        # A setting is wrong. All mails fail, and all can be sent once the setting is corrected.
        # So this is no refusal of one mail by a server that accepts others.
        refusal = _refusal(error.smtp_code, error.smtp_error, is_final=False)
        return refusal._replace(is_refusal=False)
    except smtplib.SMTPResponseException as error:
        is_final = error.smtp_code >= 500
        return _refusal(error.smtp_code, error.smtp_error, is_final=is_final)
    except Unanswered:
        return IN_DOUBT
    return Answer(is_taken=True, status=None, text="")


def _refusal(code: int, text: bytes | str, is_final: bool) -> Answer:
    return Answer(
        is_taken=False,
        status=code,
        text=f"refused: {_status(code, text)}",
        is_refusal=True,
        is_final=is_final,
    )


def _status(code: int, text: bytes | str) -> str:
    """Returns the SMTP status such as `550 5.1.1`, without the server's text after it.

    That text may repeat the address or the mail.
    """
    if isinstance(text, str):
        text = text.encode()
    enhanced = _ENHANCED.match(text)
    if enhanced:
        return f"{code} {enhanced[0].decode()}"
    return f"{code}"


def reason_of(error: Exception) -> str:
    """Returns why a session has failed, for example "does not answer in time".

    The words are the rest of a sentence that begins with the server's name.
    """
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"does not let us in: {_status(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"refuses: {_status(error.smtp_code, error.smtp_error)}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that is not valid: {error.verify_message}"
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return "does not answer in time"
    reason = getattr(error, "strerror", None) or type(error).__name__
    return f"could not be spoken to: {reason}"
