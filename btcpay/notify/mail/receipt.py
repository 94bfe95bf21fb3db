"""Makes the text of receipts, and the lines about the seller in mails to customers."""

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.content import MailText
from btcpay.notify.mail.texts import InvoiceNews, invoice_facts, price, subject_of
from btcpay.values.money import Tax, amount_due, stored_amount, tax_of
from storage.models import Invoice
from storage.queries import merchants


def receipt(
    about: InvoiceNews, language: str, brand: merchants.BrandOnPages
) -> MailText:
    """Returns the content of a mail to a customer: the receipt of a paid invoice.

    `brand` has the seller's name and address.
    """
    gettext = catalog(language).gettext
    invoice = about.invoice
    title = gettext("Receipt from %(name)s") % {"name": brand.seller}
    number = formats.digits(str(invoice.receipt_number), language)
    thanks = gettext("Thank you. This is your receipt.")
    return MailText(
        language,
        subject_of(title, invoice),
        [thanks],
        [
            (gettext("Receipt number"), number),
            *invoice_facts(about, language, is_for_payer=True),
        ],
        (gettext("Open the receipt"), about.page_url),
        amount=price(invoice, language),
        within=_parts_of_price(invoice, language),
        footer=business_lines(brand, language),
    )


def _parts_of_price(invoice: Invoice, language: str) -> list[str]:
    """Returns sentences about the tip and the tax in the price, if there are any."""
    gettext = catalog(language).gettext
    sentences = []
    tip = stored_amount(invoice.gratuity or "0")
    if tip:
        amount = formats.money(tip, amount_due(invoice).currency, language)
        sentence = gettext("Including a tip of %(amount)s")
        sentences.append(sentence % {"amount": amount})
    return sentences + tax_lines(tax_of(invoice), language)


def tax_lines(tax: Tax | None, language: str) -> list[str]:
    """Returns the sentence about the tax in a price; [] if there is no tax."""
    if tax is None:
        return []
    words = {
        "percent": formats.percent(tax.percent, language),
        "amount": formats.format_money(tax.money, language),
    }
    sentence = catalog(language).gettext("Includes %(percent)s tax: %(amount)s")
    return [sentence % words]


def business_lines(brand: merchants.BrandOnPages, language: str) -> list[str]:
    """Returns the lines about the seller at the end of a receipt.

    They have the seller's address, tax number and contact, as far as these are set.
    """
    gettext = catalog(language).gettext
    lines = []
    if brand.business_address:
        lines = [brand.seller, *brand.business_address.split("\n")]
    if brand.tax_number:
        lines.append(f"{gettext('Tax number')}: {brand.tax_number}")
    return lines + contact_lines(brand, language)


def contact_lines(brand: merchants.BrandOnPages, language: str) -> list[str]:
    """Returns the line that says how to reach the seller; [] if no contact is set."""
    if not brand.contact:
        return []
    return [f"{catalog(language).gettext('Contact')}: {brand.contact}"]
