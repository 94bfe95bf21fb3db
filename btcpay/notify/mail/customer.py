"""A prepared mail to a customer, which the merchant looks through and sends."""

from urllib.parse import quote

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.values.money import asked_of
from storage.queries import invoices


def mailto(row: invoices.InvoiceWith, page_url: str, seller: str, language: str) -> str:
    """The link (RFC 6068) for an invoice of `merchant_lists.WANTING`, in the language of mails."""
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
    amount = formats.written(asked_of(row), language)
    subject = gettext("About your payment of %(amount)s") % {"amount": amount}
    if row.reference:
        subject += f" \u00b7 {row.reference}"
    body = "\r\n\r\n".join(filter(None, (asks.get(row.attention or ""), page_url, seller)))
    address = quote(row.customer_email or "", safe="@")
    return f"mailto:{address}?subject={quote(subject, safe='')}&body={quote(body, safe='')}"
