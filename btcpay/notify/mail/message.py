"""Builds a mail's message: a plain text part, and an HTML part with the shop's logo."""

from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from btcpay.notify.mail import headers
from btcpay.notify.mail.content import MailText, one_line
from btcpay.notify.mail.html_part import html_of
from btcpay.settings.mail_settings import Sender
from storage.queries.merchants import MailBrand


def message_of(
    mail: MailText,
    brand: MailBrand,
    sender: Sender,
    to: str,
    id: str,
    at: datetime,
) -> EmailMessage:
    """Builds the message to the address `to`, which is a result of `checked_address`.

    `id` becomes the first half of the Message-ID, so a retry with the same `id` has the
    same Message-ID. `at` is the time in the header Date.
    """
    message = EmailMessage(policy=headers.POLICY)
    message["From"] = headers.mailbox("From", sender)
    message["To"] = to
    message["Subject"] = headers.text("Subject", one_line(mail.subject))
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: prevents automatic replies
    if mail.stop:  # RFC 8058: one-click unsubscribe
        _, unsubscribe_url = mail.stop
        message["List-Unsubscribe"] = f"<{unsubscribe_url}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(mail.text, cte="quoted-printable")
    _add_html(message, mail, brand, f"logo@{sender.domain}")
    return message


def _add_html(
    message: EmailMessage, mail: MailText, brand: MailBrand, logo_id: str
) -> None:
    """Adds the HTML part, and attaches the logo with `logo_id` as its Content-ID."""
    logo_url = None
    if brand.logo:
        logo_url = f"cid:{logo_id}"
    html = html_of(mail, brand, logo_url)
    message.add_alternative(html, subtype="html", cte="quoted-printable")
    if brand.logo and brand.logo_type:
        main_type, _, subtype = brand.logo_type.partition("/")
        *_, html_part = message.iter_parts()  # the part that was just added
        html_part.add_related(
            brand.logo,
            main_type,
            subtype,
            cid=f"<{logo_id}>",
            disposition="inline",
            filename=f"logo.{subtype}",
        )
