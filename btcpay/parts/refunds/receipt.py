"""The receipt lines about refunds on an invoice's page."""

from markupsafe import Markup

from btcpay import hooks
from btcpay.languages import formats
from btcpay.parts.refunds import queries
from btcpay.parts.refunds.sums import worth_of
from btcpay.web.pages.languages import bitcoin, current_language, gettext
from storage.database import Database


def receipt_lines(db: Database, invoice_id: str) -> list[hooks.ReceiptLine]:
    """Returns a line for each of the invoice's refunds that is in a block, in block order.

    Each line has the sums that the refund's page has: the bitcoin, and their value in a
    currency if it is known.
    """
    language = current_language()
    lines: list[hooks.ReceiptLine] = []
    for row in db.rows(queries.SENT_OF_INVOICE, invoice_id=invoice_id):
        height = formats.whole(row.sent_height or 0, language)
        amount = bitcoin(row.sent_sats or 0)
        worth = worth_of(row)
        if worth is not None:
            money = formats.format_money(worth, language)
            amount = Markup("{} · {}").format(money, amount)
        text = gettext("%(amount)s in block %(height)s", amount=amount, height=height)
        line = hooks.ReceiptLine(
            term=gettext("Sent back"), text=Markup(text), css_class="refund"
        )
        lines.append(line)
    return lines


def returned_sats(db: Database, invoice_id: str) -> int:
    """Returns the sum in satoshis of those refunds of the invoice that are in blocks."""
    rows = db.rows(queries.SENT_OF_INVOICE, invoice_id=invoice_id)
    return sum(row.sent_sats or 0 for row in rows)


HOOK = hooks.Receipts(receipt_lines=receipt_lines, returned_sats=returned_sats)
