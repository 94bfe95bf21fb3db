"""A mail as one message with a plain text part and an HTML part. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape

from btcpay.settings.mail_settings import Sender

_STYLE = "font-family:sans-serif;line-height:1.5"


@dataclass(frozen=True)
class MailText:
    """A mail's content: sentences, then facts as (label, text), then a link as (label, URL)."""

    language: str
    subject: str
    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]] = ()
    link: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        facts = "\n".join(f"{label}: {one_line(text)}" for label, text in self.facts)
        link = f"{self.link[0]}:\n{self.link[1]}" if self.link else ""
        return "\n\n".join(part for part in (*self.sentences, facts, link) if part) + "\n"

    @property
    def html(self) -> str:
        """The HTML part: nothing is loaded, nothing runs."""
        said = "".join(f"<p>{escape(sentence)}</p>\n" for sentence in self.sentences)
        rows = "".join(
            f'<tr><th align="left" valign="top">{escape(label)}</th>'
            f"<td>{escape(one_line(text))}</td></tr>\n"
            for label, text in self.facts
        )
        table = f'<table cellpadding="4">\n{rows}</table>\n' if rows else ""
        link = self.link and f'<p><a href="{escape(self.link[1])}">{escape(self.link[0])}</a></p>\n'
        head = f'<meta charset="utf-8"><title>{escape(self.subject)}</title>'
        return (
            f'<!doctype html>\n<html lang="{self.language}"><head>{head}</head>\n'
            f'<body style="{_STYLE}">\n{said}{table}{link or ""}</body></html>\n'
        )


def one_line(text: str) -> str:
    """A customer's or a shop's text as one line, without signs that cannot be seen."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())


def _header(text: str) -> str:
    """Breaks encoded words (RFC 2047): Python's email would decode them, line ends too."""
    return one_line(text).replace("=?", "= ?")


def message_of(mail: MailText, sender: Sender, to: str, id: str, at: datetime) -> EmailMessage:
    """The mail to an address that `checked_address` made; the same `id` is the same mail."""
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(_header(sender.name), addr_spec=sender.address)
    message["To"] = Address(addr_spec=to)
    message["Subject"] = _header(mail.subject)
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answer by a machine
    message.set_content(mail.text, cte="quoted-printable")
    message.add_alternative(mail.html, subtype="html", cte="quoted-printable")
    return message
