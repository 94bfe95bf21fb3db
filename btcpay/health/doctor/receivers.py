"""Examines webhooks that fail, mail that waits or was given up, and the mail server."""

from collections.abc import Iterator
from datetime import timedelta

from btcpay.health.doctor.shop import Shop
from btcpay.notify.mail.replies import USUAL
from btcpay.notify.mail.smtp import NoSession, open_session
from btcpay.values.finding import GREEN, YELLOW, Finding
from btcpay.values.times import from_ms, iso, to_ms
from storage.database import Database
from storage.queries import deliveries, receivers

# Shorter failures, as during a restart of the endpoint, give no finding.
PATIENCE = timedelta(hours=1)
RECENT = timedelta(days=1)
SERVER_REMEDY = "check BLOCKTILL_SMTP_URL, and the mail server"
SETTINGS_REMEDY = "set BLOCKTILL_SMTP_URL and BLOCKTILL_MAIL_FROM"


def webhooks(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding for each endpoint that is disabled or has failed for an hour.

    If there is none, yields one green finding.
    """
    rows = db.rows(receivers.LIST)
    now = shop.now()
    is_well = True
    for row in rows:
        if row.disabled_ms is not None:
            since = iso(from_ms(row.disabled_ms))
            sentence = f"has been disabled since {since}: {row.disabled_reason}"
            remedy = f"`blocktill webhook resend {row.id} --failed` tries again what was given up"
        elif row.failing_since_ms and now - from_ms(row.failing_since_ms) >= PATIENCE:
            since = iso(from_ms(row.failing_since_ms))
            sentence = f"has accepted nothing since {since}; {row.pending} wait for it"
            remedy = f"`blocktill webhook deliveries {row.id}` shows what it answered"
        else:
            continue
        is_well = False
        yield Finding(f"webhook {row.id}", YELLOW, sentence, remedy)
    if not is_well:
        return
    if rows:
        yield Finding("webhooks", GREEN, f"{len(rows)} of them, none failing")
    else:
        yield Finding("webhooks", GREEN, "there are none")


def mail(shop: Shop, db: Database) -> Iterator[Finding]:
    """Yields a finding if mail has waited for an hour, was given up, or has no mail server."""
    now = shop.now()
    waiting, oldest_ms, answer = db.get(deliveries.MAILS_WAITING)
    lost_count, _, last = db.get(deliveries.MAILS_GIVEN_UP, since=to_ms(now - RECENT))
    rows = db.rows(receivers.WANT_MAIL)
    names = [row.name for row in rows if row.address or row.receipts]
    if names and not shop.settings.has_mail:
        sentence = f"{', '.join(names)} should get mail, but no mail server is set"
        yield Finding("mail", YELLOW, sentence, SETTINGS_REMEDY)
    elif oldest_ms is not None and now - from_ms(oldest_ms) >= PATIENCE:
        since = iso(from_ms(oldest_ms))
        sentence = f"{waiting} wait, the oldest since {since}; last: {answer}"
        yield Finding("mail", YELLOW, sentence, SERVER_REMEDY)
    elif lost_count:
        sentence = f"{lost_count} were given up in the last day; last: {last}"
        yield Finding("mail", YELLOW, sentence, "check the addresses")
    elif names:
        yield Finding("mail", GREEN, "none has waited for long")


def mail_server(shop: Shop) -> Iterator[Finding]:
    """Yields a finding about the mail server: opens an SMTP session, and sends nothing.

    Yields nothing if there are no mail settings.
    """
    name = "mail server"
    server = shop.settings.smtp_url
    sender = shop.settings.mail_from
    if server is None and sender is None:
        return
    if server is None or sender is None:
        sentence = (
            "only one of BLOCKTILL_SMTP_URL and BLOCKTILL_MAIL_FROM is set:"
            " no mail is sent"
        )
        yield Finding(name, YELLOW, sentence, "set both, or neither")
        return
    try:
        open_session(server, sender.domain, USUAL).close()
    except NoSession as error:
        yield Finding(name, YELLOW, f"{server.host} {error}", SERVER_REMEDY)
    else:
        sentence = f"{server.host} takes mail from {sender.address}"
        yield Finding(name, GREEN, sentence)
