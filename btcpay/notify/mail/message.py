"""A mail's content, and the message with a plain text part and an HTML part."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape

from btcpay.notify.mail import headers
from btcpay.settings.mail_settings import Sender
from btcpay.values.texts import shown_line

_STYLE = "font-family:sans-serif;line-height:1.5"


@dataclass(frozen=True)
class MailText:
    """The content of a mail: sentences, then facts as (label, text), then links.

    `link` and `stop` are pairs (label, URL). `stop` leads to the page that ends such
    mails. A mail program may send a request to it by itself (RFC 8058).
    """

    language: str
    subject: str
    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]] = ()
    link: tuple[str, str] | None = None
    stop: tuple[str, str] | None = None

    @property
    def links(self) -> list[tuple[str, str]]:
        links = []
        if self.link:
            links.append(self.link)
        if self.stop:
            links.append(self.stop)
        return links

    @property
    def text(self) -> str:
        facts = "\n".join(f"{label}: {one_line(text)}" for label, text in self.facts)
        links = [f"{label}:\n{url}" for label, url in self.links]
        parts = [*self.sentences, facts, *links]
        return "\n\n".join(part for part in parts if part) + "\n"

    @property
    def html(self) -> str:
        """The HTML part. It loads nothing and runs no script."""
        head = f'<meta charset="utf-8"><title>{escape(self.subject)}</title>'
        lines = [
            f'<!doctype html>\n<html lang="{self.language}"><head>{head}</head>\n'
            f'<body style="{_STYLE}">\n'
        ]
        for sentence in self.sentences:
            lines.append(f"<p>{escape(sentence)}</p>\n")
        if self.facts:
            lines.append(self._html_table())
        for label, url in self.links:
            lines.append(f'<p><a href="{escape(url)}">{escape(label)}</a></p>\n')
        lines.append("</body></html>\n")
        return "".join(lines)

    def _html_table(self) -> str:
        rows = "".join(
            f'<tr><th align="left" valign="top">{escape(label)}</th>'
            f"<td>{escape(one_line(text))}</td></tr>\n"
            for label, text in self.facts
        )
        return f'<table cellpadding="4">\n{rows}</table>\n'


def one_line(text: str) -> str:
    """Returns the text on one line, without invisible characters."""
    return " ".join(shown_line(text).split())


def message_of(
    mail: MailText,
    sender: Sender,
    to: str,
    id: str,
    at: datetime,
) -> EmailMessage:
    """Returns the message to `to`, an address that `checked_address` has returned.

    The Message-ID is made from `id`, so a retry with the same `id` is the same mail.
    """
    message = EmailMessage(policy=headers.POLICY)
    message["From"] = headers.mailbox("From", sender)
    message["To"] = to
    message["Subject"] = headers.text("Subject", one_line(mail.subject))
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: prevents automatic replies
    if mail.stop:  # RFC 8058: one-click unsubscribe
        message["List-Unsubscribe"] = f"<{mail.stop[1]}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(mail.text, cte="quoted-printable")
    message.add_alternative(mail.html, subtype="html", cte="quoted-printable")
    return message
