"""The mail server: a session with it, and handing over a mail. SMTP is spoken here alone."""

import re
import smtplib
import socket
import ssl
import time
from email.message import EmailMessage
from functools import partial

from btcpay.http.connector import connect
from btcpay.notify.outcome import ATTEMPT_S, Answer
from btcpay.settings.mail_settings import MailServer
from btcpay.values.hosts import is_here

# For each answer of the server.
TIMEOUT_S = 5
# Of all answers to one mail; no honest server says as much.
MOST_BYTES = 65_536
# smtplib's own errors are OSErrors, like those of sockets and TLS; a host name that DNS cannot
# have is a ValueError.
FAILURES = (OSError, ValueError)
_ENHANCED = re.compile(rb"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?=\s|$)")  # RFC 3463


class NoSession(Exception):
    """The server cannot be reached, or lets nobody in; the message has no secret."""


class _Replies:
    """The server's lines, within bounds.

    smtplib keeps each line of a reply, however many follow, and its time-out begins again with each
    byte. Measured: a greeting without end filled 610 MB in a second and 2.3 GB in the ten of an
    attempt, so that no bound of time alone holds the memory; and at a byte every four seconds a
    single line would last for nine hours.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.allow()

    def allow(self) -> None:
        self._left, self._until_s = MOST_BYTES, time.monotonic() + ATTEMPT_S

    def readline(self, limit: int) -> bytes:
        """Raises OSError beyond the bounds."""
        line = bytearray()
        while len(line) < limit and not line.endswith(b"\n"):
            if time.monotonic() > self._until_s or not self._left:
                raise TimeoutError
            byte = self._connection.recv(1)
            if not byte:
                break
            line += byte
            self._left -= 1
        return bytes(line)

    def close(self) -> None:
        """The session closes the connection."""


class Session(smtplib.SMTP):
    """A session whose replies are bounded, in bytes and in time."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """In place of smtplib's, which gives all of the time to the host's first address."""
        return connect(host, port, timeout)

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _Replies(self.sock)
        return super().getreply()

    def next_mail(self) -> None:
        """Begins the bounds anew."""
        if self.file is not None:
            self.file.allow()


class _TlsSession(Session, smtplib.SMTP_SSL):
    """By TLS from the first byte."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        sock = super()._get_socket(host, port, timeout)
        return self.context.wrap_socket(sock, server_hostname=host)


def open_session(server: MailServer, hello: str) -> Session:
    """A session, by TLS and logged in. Raises NoSession.

    Without TLS a password goes to this machine alone.
    """
    context = ssl.create_default_context()
    opened = partial(_TlsSession, context=context) if server.is_tls else Session
    session: Session | None = None
    try:
        session = opened(server.host, server.port, hello, timeout=TIMEOUT_S)
        _let_in(session, server, context)
    except (*FAILURES, NoSession) as error:
        if session is not None:
            session.close()
        raise NoSession(error if isinstance(error, NoSession) else why(error)) from None
    return session


def _let_in(session: Session, server: MailServer, context: ssl.SSLContext) -> None:
    session.ehlo_or_helo_if_needed()
    if not server.is_tls:
        if session.has_extn("starttls"):
            session.starttls(context=context)
            session.ehlo()
        elif server.user and not is_here(server.host):
            raise NoSession("offers no STARTTLS, and a password is not sent in the clear")
    if server.user:
        session.login(server.user, server.password)


def hand_over(session: Session, message: EmailMessage, sender: str, to: str) -> Answer:
    """Hands over one mail; a refusal is an answer. Raises OSError if the session is lost."""
    try:
        session.send_message(message, sender, [to])
    except smtplib.SMTPRecipientsRefused as error:
        code, text = error.recipients[to]
        return _refused(code, text, code >= 500)
    except smtplib.SMTPSenderRefused as error:  # a setting is wrong, which can be mended
        return _refused(error.smtp_code, error.smtp_error, False)._replace(is_refusal=False)
    except smtplib.SMTPResponseException as error:
        return _refused(error.smtp_code, error.smtp_error, error.smtp_code >= 500)
    return Answer(True, None, "")


def _refused(code: int, text: bytes | str, is_final: bool) -> Answer:
    return Answer(
        False, code, f"refused: {_status(code, text)}", is_refusal=True, is_final=is_final
    )


def _status(code: int, text: bytes | str) -> str:
    """`550 5.1.1`. Not the words after it, which may repeat the address or the mail."""
    words = text.encode() if isinstance(text, str) else text
    found = _ENHANCED.match(words)
    return f"{code} {found[0].decode()}" if found else f"{code}"


def why(error: Exception) -> str:
    """The server's fault, in a few words of our own."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"does not let us in: {_status(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"refuses: {_status(error.smtp_code, error.smtp_error)}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that is not valid: {error.verify_message}"
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return "does not answer in time"
    return f"could not be spoken to: {getattr(error, 'strerror', None) or type(error).__name__}"
