"""Holds the content of a mail, and makes its plain text part."""

from collections.abc import Sequence
from dataclasses import dataclass

from btcpay.values.texts import display_line

# The direction marks and isolates of Unicode (UAX 9) that btcpay/languages/formats.py writes.
_MARKS = frozenset("\u061c\u200e\u200f\u2068\u2069")


@dataclass(frozen=True)
class MailText:
    """The content of a mail. The HTML part shows its pieces in this order.

    - `amount`: shown in large type; "" if the mail is about no amount.
    - `within`: lines about parts of the amount, such as the tax.
    - `sentences`: each is a paragraph.
    - `link`: the label and the URL of the button.
    - `facts`: pairs of a label and a text.
    - `footer`: lines such as the seller's address.
    - `stop`: the label and the URL of the page on which the recipient unsubscribes from
      mails of this kind. A mail program may also unsubscribe by sending a request to the
      URL (RFC 8058).
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
    visible = "".join(_visible_or_mark(character) for character in text)
    return " ".join(visible.split())


def _visible_or_mark(character: str) -> str:
    """Returns the character; a blank if it is invisible and no direction mark."""
    if character in _MARKS:
        return character
    return display_line(character) or " "


def one_line(text: str) -> str:
    """Returns the text on one line, without invisible characters."""
    return " ".join(display_line(text).split())
