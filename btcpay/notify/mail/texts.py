"""The texts of mails about an invoice, in the words of the pages, and the messages of all mails.

A message has a plain text part and an HTML part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from typing import Any
from urllib.parse import quote

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail import headers
from btcpay.settings.mail_settings import Sender, checked_address
from btcpay.values.money import asked_of, price_of
from btcpay.values.texts import shown_line
from storage.models import Invoice
from storage.queries import invoices, merchants

_STYLE = "font-family:sans-serif;line-height:1.5"


@dataclass(frozen=True)
class MailText:
    """A mail's content: sentences, then facts as (label, text), then a link as (label, URL).

    `stop`: a link to the page that ends such mails, to which a mail program may send by itself.
    """

    language: str
    subject: str
    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]] = ()
    link: tuple[str, str] | None = None
    stop: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        facts = "\n".join(f"{label}: {one_line(text)}" for label, text in self.facts)
        links = [
            f"{label}:\n{url}" for label, url in filter(None, (self.link, self.stop))
        ]
        return (
            "\n\n".join(part for part in (*self.sentences, facts, *links) if part)
            + "\n"
        )

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
        links = "".join(
            f'<p><a href="{escape(url)}">{escape(label)}</a></p>\n'
            for label, url in filter(None, (self.link, self.stop))
        )
        head = f'<meta charset="utf-8"><title>{escape(self.subject)}</title>'
        return (
            f'<!doctype html>\n<html lang="{self.language}"><head>{head}</head>\n'
            f'<body style="{_STYLE}">\n{said}{table}{links}</body></html>\n'
        )


def one_line(text: str) -> str:
    """A customer's or a shop's text as one line, without signs that cannot be seen."""
    return " ".join(shown_line(text).split())


def message_of(
    mail: MailText, sender: Sender, to: str, id: str, at: datetime
) -> EmailMessage:
    """The mail to an address that `checked_address` made; the same `id` is the same mail."""
    message = EmailMessage(policy=headers.POLICY)
    message["From"] = headers.mailbox("From", sender)
    message["To"] = to
    message["Subject"] = headers.text("Subject", one_line(mail.subject))
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{id}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answer by a machine
    if mail.stop:  # RFC 8058
        message["List-Unsubscribe"] = f"<{mail.stop[1]}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(mail.text, cte="quoted-printable")
    message.add_alternative(mail.html, subtype="html", cte="quoted-printable")
    return message


@dataclass(frozen=True)
class InvoiceNews:
    """A mail's invoice, its state at the event, its page, and the seller's time zone."""

    invoice: Invoice
    state: Mapping[str, Any]
    page_url: str
    zone: tzinfo


def paid(about: InvoiceNews, language: str) -> MailText:
    """To the merchant: an invoice is paid."""
    gettext = catalog(language).gettext
    sentences = [gettext("This invoice is paid.")]
    return _mail(about, language, gettext("Invoice paid: %(amount)s"), sentences)


def receipt(about: InvoiceNews, language: str, brand: merchants.Shown) -> MailText:
    """To the customer; `brand` has the seller's name and contact."""
    gettext = catalog(language).gettext
    contact = [(gettext("Contact"), brand.contact)] if brand.contact else []
    return MailText(
        language,
        _subject(
            gettext("Receipt from %(name)s") % {"name": brand.seller}, about.invoice
        ),
        [gettext("Thank you. This is your receipt.")],
        [*_facts(about, language), *contact],
        (gettext("Print receipt"), about.page_url),
    )


def attention(about: InvoiceNews, language: str) -> MailText:
    """To the merchant: an invoice needs a human, with the reason."""
    gettext = catalog(language).gettext
    reasons = {
        "reorganised": gettext(
            "A reorganisation of the blockchain has taken its payment back."
        ),
        "paid_late": gettext("It was paid after the deadline."),
        "short": gettext("Too little had arrived by the deadline."),
        "too_much": gettext("More has arrived than was asked for."),
        "after_cancellation": gettext("It was paid after it was canceled."),
        "dust_missing": gettext("The missing amount is too small for wallets to send."),
        "vanished": gettext("The whole amount was on its way, but it never arrived."),
        "refunded_twice": gettext(
            "A refund was sent, and then the same amount once more."
        ),
        "older_coin": gettext(
            "It was paid by a coin that may be older than the invoice."
        ),
    }
    show = gettext("For details, run %(command)s on the server.")
    subject = gettext("An invoice needs your attention: %(amount)s")
    command = {"command": f"blocktill invoice show {about.invoice.id}"}
    return _mail(
        about, language, subject, [reasons[about.state["attention"]], show % command]
    )


def mailto(row: invoices.InvoiceWith, page_url: str, seller: str, language: str) -> str:
    """A link (RFC 6068) that opens a mail to the customer, for the merchant to read and send."""
    gettext = catalog(language).gettext
    asks = {
        "paid_late": gettext(
            "Your payment arrived after the deadline."
            " Please tell us whether you still want what you ordered."
        ),
        "short": gettext(
            "Less than the whole amount has arrived."
            " Please tell us where we may send it back, or how you would like to pay the rest."
        ),
        "too_much": gettext(
            "You have paid more than was asked for."
            " Please tell us where we may send the difference."
        ),
        "after_cancellation": gettext(
            "Your payment arrived after the order was canceled."
            " Please tell us where we may send it back."
        ),
        "vanished": gettext(
            "Your payment was seen but never arrived: it was replaced, or dropped by the network."
            " Please pay again."
        ),
    }
    amount = formats.format_money(asked_of(row), language)
    about = gettext("About your payment of %(amount)s") % {"amount": amount}
    subject = _subject(about, row)
    body = "\r\n\r\n".join(
        filter(None, (asks.get(row.attention or ""), page_url, seller))
    )
    return mail_link(row.customer_email, subject, body)


def mail_link(to: str | None, subject: str, body: str) -> str:
    """A link (RFC 6068) that opens a mail; lines of the body end with CR and LF.

    The address is as we would send to it, since mail programs read other letters differently; one
    that nobody can send to stays as it was typed.
    """
    try:
        address = checked_address(to or "")
    except ValueError:
        address = to or ""
    subject = quote(subject, safe="")
    body = quote(body, safe="")
    return f"mailto:{quote(address, safe='@')}?subject={subject}&body={body}"


def _mail(
    about: InvoiceNews, language: str, subject: str, sentences: list[str]
) -> MailText:
    link = (catalog(language).gettext("Invoice"), about.page_url)
    whole = _subject(subject % {"amount": _asked(about, language)}, about.invoice)
    return MailText(language, whole, sentences, _facts(about, language), link)


def _subject(text: str, invoice: Invoice) -> str:
    """The text followed by the shop's order number, for which people search their mails."""
    if invoice.reference:
        return f"{text} · {invoice.reference}"
    return text


def _asked(about: InvoiceNews, language: str) -> str:
    return formats.format_money(asked_of(about.invoice), language)


def _facts(about: InvoiceNews, language: str) -> list[tuple[str, str]]:
    """The same facts as in the receipt on the page."""
    gettext = catalog(language).gettext
    invoice = about.invoice
    state = about.state
    currency = asked_of(about.invoice).currency
    facts = [
        (gettext("Amount"), f"{formats.btc(invoice.amount_sats, language)} BTC"),
        (gettext("Value when quoted"), _asked(about, language)),
        (
            gettext("Price of one bitcoin"),
            formats.money(price_of(invoice), currency, language),
        ),
    ]
    if state["received_sats"] != invoice.amount_sats:
        facts.append(
            (
                gettext("Received"),
                f"{formats.btc(state['received_sats'], language)} BTC",
            )
        )
    at_ms = state["paid_at"]
    known = [
        (gettext("Reference"), invoice.reference),
        (gettext("For"), invoice.description),
        (gettext("Name"), invoice.customer_name),
        (gettext("Note"), invoice.customer_note),
        (gettext("Time"), at_ms and formats.moment(at_ms, language, about.zone)),
        (gettext("Transaction"), state["tx_hash"]),
        (gettext("Invoice"), invoice.id),
    ]
    return facts + [(label, text) for label, text in known if text]
