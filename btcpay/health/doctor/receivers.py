"""Examines webhooks that fail, mail that waits or was given up, and the mail server."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from btcpay.health.doctor.shop import Shop
from btcpay.notify.mail.replies import USUAL
from btcpay.notify.mail.server import (
    HOW_TO_SET,
    MailAccount,
    has_mail,
    is_in_settings,
    mail_account,
)
from btcpay.notify.mail.smtp import NoSession, open_session
from btcpay.settings.settings import Settings
from btcpay.values.finding import GREEN, YELLOW, Finding
from btcpay.values.times import from_ms, iso, to_ms
from storage.database import Database
from storage.queries import deliveries, mail_servers, receivers
from storage.queries.receivers import ListedReceiver

# Shorter failures, as during a restart of the endpoint, give no finding.
PATIENCE = timedelta(hours=1)
RECENT = timedelta(days=1)
MAIL_SERVER = "mail server"
SERVER_REMEDY = (
    "check BLOCKTILL_SMTP_URL or the mail server in Settings, and the server"
)
FOR_SEVERAL = "set BLOCKTILL_SMTP_URL and BLOCKTILL_MAIL_FROM"


def webhooks(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a yellow finding for each receiver that is disabled or has failed for an hour.

    A receiver is a webhook or a command. If there is no such receiver, yields one green
    finding, with the number of deliveries that wait.
    """
    rows = db.rows(receivers.LIST)
    now = shop.now()
    is_well = True
    for row in rows:
        finding = _of_failing_webhook(row, now)
        if finding:
            is_well = False
            yield finding
    if not is_well:
        return
    if rows:
        yield Finding("webhooks", GREEN, _of_working_webhooks(rows))
    else:
        yield Finding("webhooks", GREEN, "there are none")


def _of_failing_webhook(row: ListedReceiver, now: datetime) -> Finding | None:
    """Returns the finding about a disabled or failing receiver; None if it works."""
    name = f"webhook {row.id}"
    if row.disabled_ms is not None:
        since = iso(from_ms(row.disabled_ms))
        sentence = f"has been disabled since {since}: {row.disabled_reason}"
        remedy = (
            f"`blocktill webhook resend {row.id} --failed`"
            " tries again what was given up"
        )
        return Finding(name, YELLOW, sentence, remedy)
    if row.failing_since_ms and now - from_ms(row.failing_since_ms) >= PATIENCE:
        since = iso(from_ms(row.failing_since_ms))
        sentence = f"has accepted nothing since {since}; {row.pending} wait for it"
        remedy = f"`blocktill webhook deliveries {row.id}` shows what it answered"
        return Finding(name, YELLOW, sentence, remedy)
    return None


def _of_working_webhooks(rows: Sequence[ListedReceiver]) -> str:
    """Returns a sentence about webhooks of which none has failed for an hour."""
    sentence = f"{len(rows)} of them, none failing"
    failing = [row for row in rows if row.failing_since_ms is not None]
    if failing:
        sentence = f"{len(rows)} of them, {len(failing)} failing for less than an hour"
    waiting = sum(row.pending for row in rows)
    if waiting:
        sentence += f"; deliveries that wait: {waiting}"
    return sentence


def mail(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding about mails that are not sent.

    It is yellow if a mail has waited for an hour, if one was given up in the last day, or
    if a merchant wants mail but no mail server is set. Otherwise it is green; but there
    is no green finding if no merchant wants mail.
    """
    now = shop.now()
    waiting_count, oldest_ms, last_answer = db.get(deliveries.MAILS_WAITING)
    lost_count, _, last_reason = db.get(
        deliveries.MAILS_GIVEN_UP, since=to_ms(now - RECENT)
    )
    rows = db.rows(receivers.WANT_MAIL)
    names = [row.name for row in rows if row.address or row.receipts]
    if names and not has_mail(shop.settings, db):
        sentence = f"{', '.join(names)} should get mail, but no mail server is set"
        yield Finding("mail", YELLOW, sentence, HOW_TO_SET)
    elif oldest_ms is not None and now - from_ms(oldest_ms) >= PATIENCE:
        since = iso(from_ms(oldest_ms))
        sentence = (
            f"{waiting_count} wait, the oldest since {since}; last: {last_answer}"
        )
        yield Finding("mail", YELLOW, sentence, SERVER_REMEDY)
    elif lost_count:
        sentence = f"{lost_count} were given up in the last day; last: {last_reason}"
        yield Finding("mail", YELLOW, sentence, "check the addresses")
    elif names:
        sentence = "none waits"
        if waiting_count:
            sentence = f"{waiting_count} wait, none for long"
        yield Finding("mail", GREEN, sentence)


def mail_server(shop: Shop, db: Database | None) -> Iterator[Finding]:
    """Yields a finding about the mail server; nothing if none is set.

    If the account on the mail server is complete, opens an SMTP session without sending
    a mail. `db` is None if the database cannot be read.
    """
    settings = shop.settings
    if is_in_settings(settings):
        yield _of_server_in_settings(settings)
    elif db:
        yield from _of_stored_server(settings, db)


def _of_server_in_settings(settings: Settings) -> Finding:
    """Returns the finding about the mail server that environment variables name."""
    if settings.smtp_url is None or settings.mail_from is None:
        sentence = (
            "only one of BLOCKTILL_SMTP_URL and BLOCKTILL_MAIL_FROM is set:"
            " no mail is sent"
        )
        return Finding(MAIL_SERVER, YELLOW, sentence, "set both, or neither")
    return _test_session(MailAccount(settings.smtp_url, settings.mail_from))


def _of_stored_server(settings: Settings, db: Database) -> Iterator[Finding]:
    """Yields a finding about the server that a merchant has set on the page Settings."""
    account = mail_account(settings, db)
    if account:
        yield _test_session(account)
    elif db.rows(mail_servers.IN_USE):
        sentence = "the one in Settings is invalid: no mail is sent"
        yield Finding(MAIL_SERVER, YELLOW, sentence, "store it again in Settings")
    elif db.rows(mail_servers.GET):
        sentence = "the one in Settings counts only while there is one merchant"
        yield Finding(MAIL_SERVER, YELLOW, sentence, FOR_SEVERAL)


def _test_session(account: MailAccount) -> Finding:
    """Opens an SMTP session, and returns the finding about it."""
    server = account.server
    try:
        open_session(server, account.sender.domain, USUAL).close()
    except NoSession as error:
        sentence = f"{server.host} {error}"
        return Finding(MAIL_SERVER, YELLOW, sentence, SERVER_REMEDY)
    sentence = f"{server.host} takes mail from {account.sender.address}"
    return Finding(MAIL_SERVER, GREEN, sentence)
