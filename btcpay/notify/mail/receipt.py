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
    number_fact = (gettext("Receipt number"), number)
    return MailText(
        language,
        subject_of(title, invoice),
        sentences=[thanks],
        facts=[number_fact, *invoice_facts(about, language, is_for_payer=True)],
        link=(gettext("Open the receipt"), about.page_url),
        amount=price(invoice, language),
        within=_parts_of_price(invoice, language),
        footer=business_lines(brand, language),
    )


def _parts_of_price(invoice: Invoice, language: str) -> list[str]:
    """Returns a sentence about the tip and one about the tax, if the price has them."""
    gettext = catalog(language).gettext
    tip_lines = []
    tip = stored_amount(invoice.gratuity or "0")
    if tip:
        amount = formats.money(tip, amount_due(invoice).currency, language)
        sentence = gettext("Including a tip of %(amount)s")
        tip_lines.append(sentence % {"amount": amount})
    return tip_lines + tax_lines(tax_of(invoice), language)


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
    """Returns the lines at the end of a receipt that say who the seller is.

    They have the seller's name and address, the tax number, and the contact. What the
    merchant has not set is left out; the name is left out without an address.
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
