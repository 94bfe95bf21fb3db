"""`payment`: what was received and confirmed."""

import click

from btcpay.cli.context import Shell, answering, limited
from btcpay.invoices.status import find_invoice
from btcpay.merchants.merchants import find_merchant
from storage.queries.lists import listings
from storage.statement import as_dict

LIST_COLUMNS = (
    "id merchant invoice_id address_invoice_id amount_sats currency value_at_receipt "
    "amount_usd_at_receipt created_at tx_hash"
)


@click.group()
def payment() -> None:
    """Confirmed payments."""


@payment.command("list")
@click.option("--merchant", metavar="MERCHANT", help="Only this merchant's.")
@click.option("--invoice", "invoice_id", metavar="ID", help="What came to this invoice's address.")
@limited
@answering
def payment_list(shell: Shell, merchant: str | None, invoice_id: str | None, limit: int) -> None:
    """The newest payments: the invoice that each settled, and the one whose address it came to.

    The first is empty for a part, and for what came late or as a further payment.
    """
    if merchant is not None and invoice_id is not None:
        raise click.UsageError("--merchant and --invoice do not go together")
    if invoice_id is not None:
        find_invoice(shell.db, invoice_id)
        rows = shell.db.rows(listings.PAYMENTS_OF_INVOICE, invoice_id=invoice_id, limit=limit)
    elif merchant is not None:
        of = find_merchant(shell.db, merchant).id
        rows = shell.db.rows(listings.PAYMENTS_OF_MERCHANT, merchant_id=of, limit=limit)
    else:
        rows = listings.newest(shell.db, listings.PAYMENTS_OF_MERCHANT, limit)
    shell.show(list(map(as_dict, rows)), LIST_COLUMNS)
