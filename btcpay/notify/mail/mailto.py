"""Links (RFC 6068) that open a mail to a customer in the merchant's mail program."""

from contextlib import suppress
from urllib.parse import quote

from btcpay.languages import formats
from btcpay.languages.catalogs import catalog
from btcpay.notify.mail.texts import subject_of
from btcpay.settings.mail_settings import checked_address
from btcpay.values.money import amount_due
from storage.queries import invoices


def mailto(row: invoices.InvoiceWith, page_url: str, seller: str, language: str) -> str:
    """Returns a link (RFC 6068) that opens a mail to the invoice's customer.

    The mail's text depends on the reason why the invoice needs attention. The merchant
    reads the mail before sending it.
    """
    gettext = catalog(language).gettext
    requests = {
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
        "refunded_twice": gettext(
            "By mistake, your refund was sent to you twice."
            " Please send one of the two back, to the address on this page:"
        ),
    }
    amount = formats.format_money(amount_due(row), language)
    title = gettext("About your payment of %(amount)s") % {"amount": amount}
    request = requests.get(row.attention or "")
    paragraphs = [text for text in (request, page_url, seller) if text]
    body = "\r\n\r\n".join(paragraphs)
    return mail_link(row.customer_email, subject_of(title, row), body)


def mail_link(to: str | None, subject: str, body: str) -> str:
    """Returns a link (RFC 6068) that opens a mail in the user's mail program.

    `to` is the recipient's address; if it is None, the user enters an address. A valid
    address is converted to ASCII, since some mail programs do not accept other
    characters. An invalid address stays as it is. The lines of `body` must end with CR
    and LF.
    """
    address = to or ""
    with suppress(ValueError):
        address = checked_address(address)
    subject = quote(subject, safe="")
    body = quote(body, safe="")
    return f"mailto:{quote(address, safe='@')}?subject={subject}&body={body}"
