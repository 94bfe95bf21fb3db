"""The texts of mails about an invoice, worded as on the pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.message import MailText
from btcpay.values.money import asked_of, price_of, stored_amount, tax_of
from storage.models import Invoice
from storage.queries import merchants


@dataclass(frozen=True)
class InvoiceNews:
    """An invoice, its state at the event, its page's URL and the seller's time zone."""

    invoice: Invoice
    state: Mapping[str, Any]
    page_url: str
    zone: tzinfo


def paid_invoice(about: InvoiceNews, language: str) -> MailText:
    """Returns the mail to a merchant that an invoice is paid."""
    gettext = catalog(language).gettext
    sentences = [gettext("This invoice is paid.")]
    return _mail(about, language, gettext("Invoice paid: %(amount)s"), sentences)


def receipt(about: InvoiceNews, language: str, brand: merchants.Shown) -> MailText:
    """Returns the receipt to a customer; `brand` says who the seller is."""
    gettext = catalog(language).gettext
    title = gettext("Receipt from %(name)s") % {"name": brand.seller}
    number = formats.digits(str(about.invoice.receipt_number), language)
    facts = [(gettext("Receipt number"), number), *_facts(about, language)]
    business = [
        (gettext("Seller"), ", ".join((brand.business_address or "").split("\n"))),
        (gettext("Tax number"), brand.tax_number),
        (gettext("Contact"), brand.contact),
    ]
    facts += [(label, text) for label, text in business if text]
    return MailText(
        language,
        subject_of(title, about.invoice),
        [
            gettext("Thank you. This is your receipt."),
            *_parts_of_price(about, language),
        ],
        facts,
        (gettext("Print receipt"), about.page_url),
    )


def _parts_of_price(about: InvoiceNews, language: str) -> list[str]:
    """Returns sentences about the tip and the tax in the price, if there are any."""
    gettext = catalog(language).gettext
    invoice = about.invoice
    sentences = []
    tip = stored_amount(invoice.gratuity or "0")
    if tip:
        amount = formats.money(tip, asked_of(invoice).currency, language)
        sentence = gettext("Including a tip of %(amount)s")
        sentences.append(sentence % {"amount": amount})
    tax = tax_of(invoice)
    if tax:
        words = {
            "percent": formats.percent(tax.percent, language),
            "amount": formats.format_money(tax.money, language),
        }
        sentences.append(gettext("Includes %(percent)s tax: %(amount)s") % words)
    return sentences


def attention(about: InvoiceNews, language: str) -> MailText:
    """Returns the mail to a merchant that an invoice needs attention, and why."""
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
        about,
        language,
        subject,
        [reasons[about.state["attention"]], show % command],
    )


def _mail(
    about: InvoiceNews,
    language: str,
    subject: str,
    sentences: list[str],
) -> MailText:
    """Returns the mail about an invoice; `subject` contains `%(amount)s`."""
    link = (catalog(language).gettext("Invoice"), about.page_url)
    title = subject % {"amount": _amount_of(about, language)}
    whole_subject = subject_of(title, about.invoice)
    return MailText(language, whole_subject, sentences, _facts(about, language), link)


def subject_of(title: str, invoice: Invoice) -> str:
    """Returns the title followed by the shop's order number.

    People search their mails for that number.
    """
    if invoice.reference:
        return f"{title} · {invoice.reference}"
    return title


def _amount_of(about: InvoiceNews, language: str) -> str:
    return formats.format_money(asked_of(about.invoice), language)


def _facts(about: InvoiceNews, language: str) -> list[tuple[str, str]]:
    """Returns the same facts as the receipt on the page, as (label, text)."""
    gettext = catalog(language).gettext
    invoice = about.invoice
    state = about.state
    currency = asked_of(invoice).currency
    price = formats.money(price_of(invoice), currency, language)
    facts = [
        (gettext("Amount"), f"{formats.btc(invoice.amount_sats, language)} BTC"),
        (gettext("Value when quoted"), _amount_of(about, language)),
        (gettext("Price of one bitcoin"), price),
    ]
    received_sats = state["received_sats"]
    if received_sats != invoice.amount_sats:
        facts.append(
            (gettext("Received"), f"{formats.btc(received_sats, language)} BTC")
        )
    paid_ms = state["paid_ms"]
    time = ""
    if paid_ms:
        time = formats.moment(paid_ms, language, about.zone)
    optional = [
        (gettext("Reference"), invoice.reference),
        (gettext("For"), invoice.description),
        (gettext("Name"), invoice.customer_name),
        (gettext("Note"), invoice.customer_note),
        (gettext("Time"), time),
        (gettext("Transaction"), state["tx_hash"]),
        (gettext("Number"), invoice.id),
    ]
    return facts + [(label, text) for label, text in optional if text]
