"""Command `merchant receipt`: sets the address, tax number and tax rate on receipts."""

import click

from btcpay.cli.shell import Shell, with_json_shell
from btcpay.merchants import business, merchants
from btcpay.values.texts import checked_line
from storage.statement import as_dict
from storage.values import Values

NO_BUSINESS: Values = {
    "business_address": None,
    "tax_number": None,
    "tax_percent": None,
}


@click.command("receipt")
@click.argument("merchant")
@click.argument("off", required=False, type=click.Choice(["off"]), metavar="[off]")
@click.option("--address", metavar="TEXT", help="Of the business: up to six lines.")
@click.option("--tax-number", metavar="TEXT", help="Of the business, in one line.")
@click.option("--tax", metavar="PERCENT", help="The tax that prices include, as 19.")
@with_json_shell
def receipt(
    shell: Shell,
    merchant: str,
    off: str | None,
    address: str | None,
    tax_number: str | None,
    tax: str | None,
) -> None:
    """Show or set the address, tax number and tax rate on receipts; `off` first removes all three.

    Receipts of past payments keep their tax rate.
    """
    owner = merchants.find_merchant(shell.db, merchant)
    change: Values = {}
    if off:
        change |= NO_BUSINESS
    if address is not None:
        change["business_address"] = business.checked_business_address(address)
    if tax_number is not None:
        change["tax_number"] = checked_line("tax number", tax_number)
    if tax is not None:
        change["tax_percent"] = business.checked_tax_percent(tax)
    row = merchants.set_brand(shell.db, owner.id, change)
    cells = as_dict(row) | {"merchant": merchant}
    shell.show([cells], "merchant business_address tax_number tax_percent")
