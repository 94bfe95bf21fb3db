"""Parses the mail settings, and validates mail addresses."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from btcpay.settings.parsers import accepting, require, whole
from btcpay.values.hosts import ascii_host
from btcpay.values.texts import is_refused

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# RFC 5321, section 4.1.2, without quoted local parts and IP addresses.
_ADDRESS = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")
# Maximum lengths (RFC 5321, section 4.5.3.1).
MAX_LOCAL = 64
MAX_ADDRESS = 254
AN_ADDRESS = "an address such as shop@example.com"
MAX_NAME = 200  # maximum characters of a sender's name
_SERVER = re.compile(
    r"(?P<scheme>smtps?)://(?:(?P<user>[^/:\s]+):(?P<password>[^/\s]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^/:@\[\]\s]+)(?::(?P<port>[0-9]{1,5}))?/?"
)
# The usual ports (RFC 8314), by `is_tls`: TLS from the first byte, and STARTTLS.
USUAL_PORTS = {True: 465, False: 587}
MAX_PORT = 65_535
MAX_LOGIN = 1000  # maximum characters of a user name, and of a password
_BROKEN = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class MailServer:
    """The SMTP server that mail is sent through.

    `is_tls` is True for TLS from the first byte, and False for STARTTLS.
    """

    host: str
    port: int
    is_tls: bool
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """The server as `host:port`, with an IPv6 address in brackets."""
        host = self.host
        if ":" in host:
            host = f"[{host}]"
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Sender:
    """The sender of mail. The name may be empty."""

    name: str
    address: str

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


@accepting(
    "smtps://user:password@host:port, or smtp:// for STARTTLS; in user and password, signs such"
    " as @ : / % become %40 %3A %2F %25, both in ASCII"
)
def smtp_url(text: str) -> MailServer | None:
    """Parses the URL of a mail server. Returns None for an empty text.

    Raises ValueError for any other text.
    """
    if not text:
        return None
    match = _SERVER.fullmatch(text)
    if not match or _BROKEN.search(text):
        raise ValueError
    is_tls = match["scheme"] == "smtps"
    return MailServer(
        user=checked_login(unquote(match["user"] or "")),
        password=checked_login(unquote(match["password"] or "")),
        port=checked_port(match["port"] or "", is_tls),
        host=checked_host(match["host"]),
        is_tls=is_tls,
    )


def checked_host(text: str) -> str:
    """Returns the host in ASCII; an IPv6 address loses its brackets.

    Raises ValueError if the text is no host.
    """
    return ascii_host(text.strip("[]"))


def checked_port(text: str, is_tls: bool) -> int:
    """Returns the port; for an empty text, the usual port of mail servers.

    Raises ValueError if the text is no number from 1 to MAX_PORT.
    """
    if not text:
        return USUAL_PORTS[is_tls]
    return whole(1, MAX_PORT)(text)


def checked_login(text: str) -> str:
    """Returns a user name or a password unchanged; it may be empty.

    Raises ValueError unless it is printable ASCII of up to MAX_LOGIN characters.
    """
    require(text.isascii() and text.isprintable() and len(text) <= MAX_LOGIN)
    return text


@accepting("an address such as shop@example.com, or Name <address>")
def sender(text: str) -> Sender | None:
    """Parses an address, or a name and an address in <>. Returns None for an empty text.

    Raises ValueError for any other text.
    """
    if not text:
        return None
    name = ""
    address = text
    name_and_address = re.fullmatch(r"([^<>\"]*?)\s*<([^<>]*)>", text)
    if name_and_address:
        name, address = name_and_address.groups()
    return Sender(checked_sender_name(name), checked_address(address))


def checked_sender_name(text: str) -> str:
    """Returns a sender's name unchanged; it may be empty.

    Raises ValueError if it is longer than MAX_NAME or has an invisible character.
    """
    require(len(text) <= MAX_NAME and not any(map(is_refused, text)))
    return text


def checked_address(text: str) -> str:
    """Returns one mail address with its domain in ASCII (IDNA).

    Raises ValueError for any other text, such as several addresses, or one with blanks,
    line breaks or quotes.
    """
    # checked first, because the text is untrusted
    if len(text) > MAX_ADDRESS:
        raise ValueError(AN_ADDRESS)
    local, at, domain = text.rpartition("@")
    try:
        address = f"{local}{at}{ascii_host(domain)}"
    except ValueError:
        raise ValueError(AN_ADDRESS) from None
    is_too_long = len(local) > MAX_LOCAL or len(address) > MAX_ADDRESS
    if is_too_long or not _ADDRESS.fullmatch(address):
        raise ValueError(AN_ADDRESS)
    return address
