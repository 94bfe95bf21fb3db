"""Finds the mail server in use: the one in the settings, else the one in the database."""

import logging
from typing import NamedTuple

from btcpay.settings.mail_settings import (
    MailServer,
    Sender,
    checked_address,
    checked_host,
    checked_login,
    checked_sender_name,
)
from btcpay.settings.settings import Settings
from btcpay.values.errors import BadRow
from storage.database import Database
from storage.models import StoredMailServer
from storage.queries import mail_servers

log = logging.getLogger(__name__)

HOW_TO_SET = (
    "set BLOCKTILL_SMTP_URL and BLOCKTILL_MAIL_FROM, or, with one merchant, the mail"
    " server in Settings"
)


class MailAccount(NamedTuple):
    """The server and the sender with which mail is sent."""

    server: MailServer
    sender: Sender


def is_in_settings(settings: Settings) -> bool:
    """True if the settings name a mail server or a sender.

    If they do, a mail server that the owner has stored in the database is ignored.
    """
    return bool(settings.smtp_url or settings.mail_from)


def mail_account(settings: Settings, db: Database) -> MailAccount | None:
    """Returns the mail server and the sender in use; None if no mail can be sent.

    - If the settings name both a mail server and a sender, these are used.
    - If the settings name only one of them, no mail can be sent.
    - If the settings name neither, the mail server that the owner has stored in the
      database is used, but only while the service has one merchant.

    If the stored values are invalid, perhaps because somebody has tampered with a backup,
    logs an error and returns None.
    """
    if is_in_settings(settings):
        if settings.smtp_url and settings.mail_from:
            return MailAccount(settings.smtp_url, settings.mail_from)
        return None
    row = db.get_or_none(mail_servers.IN_USE)
    if row is None:
        return None
    try:
        return account_of(row)
    except BadRow as error:
        log.error("%s", error)
        return None


def has_mail(settings: Settings, db: Database) -> bool:
    """True if a mail server and a sender are set up."""
    return mail_account(settings, db) is not None


def account_of(row: StoredMailServer) -> MailAccount:
    """Converts a row to a mail server and its sender. Raises BadRow if a value is invalid."""
    try:
        server = MailServer(
            host=checked_host(row.host),
            port=row.port,
            is_tls=bool(row.is_tls),
            user=checked_login(row.user_name),
            password=checked_login(row.password),
        )
        sender = Sender(
            name=checked_sender_name(row.sender_name),
            address=checked_address(row.sender_address),
        )
    except ValueError:
        raise BadRow("the mail server in Settings is invalid: store it again") from None
    return MailAccount(server, sender)
