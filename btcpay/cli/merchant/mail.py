"""`merchant mail`: where a merchant is told of payments, and whether customers get receipts."""

import click

from btcpay.cli.context import Shell, as_json, printable, say, show, with_shell
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants.merchants import find_merchant, set_mail
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError
from storage.database import Row

MAIL_COLUMNS = ("merchant", "address", "receipts", "language")


@click.command("mail")
@click.argument("merchant_name", metavar="MERCHANT")
@click.argument("address", required=False, metavar="[ADDRESS|off]")
@click.option(
    "--receipts/--no-receipts", default=None, help="Whether customers get one by mail when paid."
)
@click.option("--language", type=click.Choice(list(LANGUAGES)), help="Of all these mails.")
@as_json
@with_shell
def mail(
    shell: Shell,
    merchant_name: str,
    address: str | None,
    receipts: bool | None,
    language: str | None,
    as_json: bool,
) -> None:
    """Show or set where a merchant is told of payments; `off`: no mail, no receipts."""
    owner = find_merchant(shell.db, merchant_name)
    change: Row = {} if receipts is None else {"receipts": int(receipts)}
    change |= {"language": language} if language else {}
    if address == "off":
        change = {"address": None, "receipts": 0} | change
    elif address is not None:
        try:
            change["address"] = checked_address(address)
        except ValueError as error:
            raise CommandError(f"{printable(address)} is not {error}") from None
    row = set_mail(shell.db, owner, change)
    if change and not (shell.settings.smtp_url and shell.settings.mail_from):
        say("nothing is sent before BTCPAY_SMTP_URL and BTCPAY_MAIL_FROM are set")
    receipts = bool(row["receipts"])
    show([row | {"merchant": merchant_name, "receipts": receipts}], MAIL_COLUMNS, as_json)
