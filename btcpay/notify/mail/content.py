"""Holds the content of a mail, and makes its plain text part."""

from collections.abc import Sequence
from dataclasses import dataclass

from btcpay.values.texts import display_line

# Marks and isolates of Unicode (UAX 9), with which btcpay/languages/formats.py writes.
_MARKS = frozenset("\u061c\u200e\u200f\u2068\u2069")


@dataclass(frozen=True)
class MailText:
    """The content of a mail.

    The mail shows `amount` in large type, and the lines `within` below it, such as the
    tax in the amount. Then it shows the sentences, a button for `link`, the facts as
    (label, text), and the lines of the footer, such as the seller's address. `link` and
    `stop` are (label, URL) pairs. `stop` is the page on which the recipient
    unsubscribes from mails of this kind. A mail program may also unsubscribe by sending
    a request to that URL (RFC 8058).
    """

    language: str
    subject: str
    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]] = ()
    link: tuple[str, str] | None = None
    stop: tuple[str, str] | None = None
    amount: str = ""
    within: Sequence[str] = ()
    footer: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The plain text part of the mail, in which the links come after the facts."""
        facts = "\n".join(f"{label}: {fact_line(text)}" for label, text in self.facts)
        links = []
        for link in (self.link, self.stop):
            if link:
                label, url = link
                links.append(f"{label}:\n{url}")
        footer = "\n".join(one_line(line) for line in self.footer)
        amount = "\n".join([self.amount, *self.within])
        parts = [amount, *self.sentences, facts, *links, footer]
        return "\n\n".join(part for part in parts if part) + "\n"


def fact_line(text: str) -> str:
    """Returns the text on one line, without invisible characters except direction marks.

    Amounts and dates need these marks in languages that are written from the right.
    """
    signs = [sign if sign in _MARKS else display_line(sign) or " " for sign in text]
    return " ".join("".join(signs).split())


def one_line(text: str) -> str:
    """Returns the text on one line, without invisible characters."""
    return " ".join(display_line(text).split())
