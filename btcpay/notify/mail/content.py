"""A mail's content, and its plain text part."""

from collections.abc import Sequence
from dataclasses import dataclass

from btcpay.values.texts import display_line


@dataclass(frozen=True)
class MailText:
    """The content of a mail, in the order in which it is shown.

    `amount` is shown in large type; `within` are the lines below it, such as the tax
    that it includes. Then come the sentences, the button `link`, the facts as (label,
    text), and the lines of the `footer`, such as the seller's address. `link` and
    `stop` are pairs (label, URL). `stop` is the page that ends such mails; a mail
    program may send a request to it on its own (RFC 8058).
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
        """The plain text part; its links follow the facts."""
        facts = "\n".join(f"{label}: {one_line(text)}" for label, text in self.facts)
        links = []
        for link in (self.link, self.stop):
            if link:
                label, url = link
                links.append(f"{label}:\n{url}")
        footer = "\n".join(one_line(line) for line in self.footer)
        amount = "\n".join([self.amount, *self.within])
        parts = [amount, *self.sentences, facts, *links, footer]
        return "\n\n".join(part for part in parts if part) + "\n"


def one_line(text: str) -> str:
    """Returns the text on one line, without invisible characters."""
    return " ".join(display_line(text).split())
