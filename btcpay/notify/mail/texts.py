"""Makes the texts of mails to a merchant about an invoice, worded as on the pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.content import MailText
from btcpay.values.money import SATS_PER_BTC, amount_due, price_of, stored_amount
from storage.models import Invoice


@dataclass(frozen=True)
class InvoiceNews:
    """An invoice, its state at the time of an event, and the merchant's time zone.

    `state` has the values that can change, by their names. `page_url` is the URL of the
    invoice's page for the payer. `merchant_url` is the URL of its page for the merchant;
    None if the merchant's pages are off.
    """

    invoice: Invoice
    state: Mapping[str, Any]
    page_url: str
    zone: tzinfo
    merchant_url: str | None = None


def paid_invoice(about: InvoiceNews, language: str) -> MailText:
    """Returns the mail that tells a merchant that an invoice is paid."""
    gettext = catalog(language).gettext
    amount = price(about.invoice, language)
    title = gettext("Invoice paid: %(amount)s") % {"amount": amount}
    sentences = [gettext("This invoice is paid.")]
    return _to_merchant(
        about, language, title=title, amount=amount, sentences=sentences
    )


def attention(about: InvoiceNews, language: str) -> MailText:
    """Returns the mail that tells a merchant that an invoice needs attention, and why."""
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
    sentences = [reasons[about.state["attention"]]]
    if about.merchant_url is None:
        advice = gettext("For details, run %(command)s on the server.")
        command = f"blocktill invoice show {about.invoice.id}"
        sentences.append(advice % {"command": command})
    amount = _difference(about, language) or price(about.invoice, language)
    title = gettext("An invoice needs your attention: %(amount)s") % {"amount": amount}
    return _to_merchant(
        about, language, title=title, amount=amount, sentences=sentences
    )


def _difference(about: InvoiceNews, language: str) -> str | None:
    """Returns the excess or the missing amount as text, in the invoice's currency.

    Returns None if the mail is about another problem. The amount is converted at the
    invoice's exchange rate.
    """
    gettext = catalog(language).gettext
    invoice = about.invoice
    reason = about.state["attention"]
    if reason == "too_much":
        sats = about.state["stake_sats"]
        words = gettext("%(amount)s too much")
    elif reason in ("short", "dust_missing"):
        sats = invoice.amount_sats - about.state["received_sats"]
        words = gettext("%(amount)s is missing")
    else:
        return None
    value = sats * stored_amount(invoice.price) / SATS_PER_BTC
    return words % {"amount": formats.money(value, invoice.currency, language)}


def _to_merchant(
    about: InvoiceNews,
    language: str,
    title: str,
    amount: str,
    sentences: Sequence[str],
) -> MailText:
    """Returns the mail to a merchant about an invoice.

    `title` begins the subject. `amount` is shown in large type. The button opens the
    invoice's page for the merchant, or the page for the payer if the merchant's pages
    are off.
    """
    gettext = catalog(language).gettext
    url = about.merchant_url or about.page_url
    asked_for = price(about.invoice, language)
    facts = invoice_facts(about, language)
    if amount != asked_for:
        facts.insert(0, (gettext("Asked for"), asked_for))
    return MailText(
        language,
        subject_of(title, about.invoice),
        sentences,
        facts,
        link=(gettext("Open the invoice"), url),
        amount=amount,
    )


def subject_of(title: str, invoice: Invoice) -> str:
    """Returns the title, followed by the shop's order number if the invoice has one.

    People search their mails for that number.
    """
    if invoice.reference:
        return f"{title} · {invoice.reference}"
    return title


def price(invoice: Invoice, language: str) -> str:
    return formats.format_money(amount_due(invoice), language)


def invoice_facts(
    about: InvoiceNews, language: str, is_for_payer: bool = False
) -> list[tuple[str, str]]:
    """Returns the facts about an invoice, as pairs of a label and a text.

    The page of a receipt shows the same facts. Facts without a value are left out. In a
    mail to the payer (`is_for_payer`), the invoice's id is labelled "Payment number",
    since the mail also has a receipt number.
    """
    gettext = catalog(language).gettext
    id_label = gettext("Number")
    if is_for_payer:
        id_label = gettext("Payment number")
    invoice = about.invoice
    state = about.state
    currency = amount_due(invoice).currency
    bitcoin_price = formats.money(price_of(invoice), currency, language)
    paid_at = ""
    if state["paid_ms"]:
        paid_at = formats.moment(state["paid_ms"], language, about.zone)
    received = ""
    if state["received_sats"] != invoice.amount_sats:
        received = f"{formats.btc(state['received_sats'], language)} BTC"
    facts = [
        (gettext("Reference"), invoice.reference),
        (gettext("For"), invoice.description),
        (gettext("Name"), invoice.customer_name),
        (gettext("Note"), invoice.customer_note),
        (gettext("Time"), paid_at),
        (gettext("Amount"), f"{formats.btc(invoice.amount_sats, language)} BTC"),
        (gettext("Received"), received),
        (gettext("Price of one bitcoin"), bitcoin_price),
        (gettext("Transaction"), state["tx_hash"]),
        (id_label, invoice.id),
    ]
    return [(label, text) for label, text in facts if text]
