"""`merchant brand`, `currency`, `timezone`, `mail`, `return`: each shows what is set or sets it."""

from typing import BinaryIO

import click

from btcpay.cli.context import Shell, answering, number, printable, say
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants import branding
from btcpay.merchants.merchants import (
    find_merchant,
    set_brand,
    set_currency,
    set_mail,
    set_timezone,
)
from btcpay.prices.price import new_prices
from btcpay.settings.mail_settings import checked_address
from btcpay.values.currencies import checked_currency
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from btcpay.values.zones import checked_zone
from storage.database import Row


@click.command("brand")
@click.argument("merchant")
@click.option("--name", help="The name that the pages show; wallets show it as the recipient.")
@click.option(
    "--logo",
    type=click.File("rb"),
    help=f"A PNG, JPEG or WebP image of at most {branding.MAX_LOGO_BYTES // 1024} KiB.",
)
@click.option("--accent", metavar="'#rrggbb'", help="The colour of the pages' button.")
@click.option("--contact", metavar="TEXT", help="How customers reach the merchant, in one line.")
@click.option("--clear", is_flag=True, help="Forget what was set before.")
@answering
def brand(
    shell: Shell, merchant: str, logo: BinaryIO | None, clear: bool, **texts: str | None
) -> None:
    """Show or set what a merchant's pages look like."""
    content = logo.read(branding.MAX_LOGO_BYTES + 1) if logo else None
    change = branding.checked(logo=content, **texts)
    row = set_brand(shell.db, find_merchant(shell.db, merchant), change, clear)
    shell.show([row | {"merchant": merchant}], "merchant name accent contact logo_type logo_sha256")


@click.command("currency")
@click.argument("merchant")
@click.argument("code", required=False, metavar="[EUR]")
@answering
def currency(shell: Shell, merchant: str, code: str | None) -> None:
    """Show or set the currency that a merchant counts in: till, links, sums, mails, exports.

    Prints what a bitcoin costs in it. Past payments keep their value in the former one.
    """
    owner = find_merchant(shell.db, merchant)
    if code is not None:
        owner["currency"] = checked_currency(code)
        set_currency(shell.db, owner, owner["currency"])
    row = {"merchant": merchant, "currency": owner["currency"], "price": None}
    price = new_prices(shell.settings).of(owner["currency"]).current_or_none()
    if price is not None:
        row["price"] = number("usd", f"{price:f}") if shell.as_json else f"{price:f}"
    else:
        say(f"no price in {owner['currency']} now: nothing can be sold until enough sources agree")
    shell.show([row], "merchant currency price")


@click.command("timezone")
@click.argument("merchant")
@click.argument("name", required=False, metavar="[Europe/Berlin]")
@answering
def timezone(shell: Shell, merchant: str, name: str | None) -> None:
    """Show or set the time zone that divides a merchant's days, past ones too."""
    owner = find_merchant(shell.db, merchant)
    if name is not None:
        owner["timezone"] = checked_zone(name)
        set_timezone(shell.db, owner, owner["timezone"])
    shell.show([{"merchant": merchant, "timezone": owner["timezone"]}], "merchant timezone")


@click.command("mail")
@click.argument("merchant")
@click.argument("address", required=False, metavar="[ADDRESS|off]")
@click.option(
    "--receipts/--no-receipts", default=None, help="Whether customers get one by mail when paid."
)
@click.option("--language", type=click.Choice(list(LANGUAGES)), help="Of all these mails.")
@answering
def mail(
    shell: Shell, merchant: str, address: str | None, receipts: bool | None, language: str | None
) -> None:
    """Show or set where a merchant gets mail about payments; `off`: no mail, no receipts."""
    owner = find_merchant(shell.db, merchant)
    change: Row = {} if receipts is None else {"receipts": int(receipts)}
    change |= {"language": language} if language else {}
    if address == "off":
        change = {"address": None, "receipts": 0} | change
    elif address is not None:
        try:
            change["address"] = checked_address(address)
        except ValueError as error:
            raise CommandError(f"{printable(address)} is not {error}") from None
    row = set_mail(shell.db, owner, change, utc_now())
    if change and not (shell.settings.smtp_url and shell.settings.mail_from):
        say("nothing is sent until BTCPAY_SMTP_URL and BTCPAY_MAIL_FROM are set")
    shown = row | {"merchant": merchant, "receipts": bool(row["receipts"])}
    shell.show([shown], "merchant address receipts language")


@click.command("return")
@click.argument("merchant")
@click.argument("off", required=False, type=click.Choice(["off"]), metavar="[off]")
@click.option("--paid", metavar="URL", help="Where the page of a paid invoice leads.")
@click.option("--unpaid", metavar="URL", help="Where the page of an unpaid one leads.")
@answering
def way_back(
    shell: Shell, merchant: str, off: str | None, paid: str | None, unpaid: str | None
) -> None:
    """Show or set the pages' link back to the shop; {invoice} is replaced by the id."""
    if (off and paid) or branding.is_half_a_way_back(paid, unpaid):
        raise click.UsageError("either --paid URL and maybe --unpaid URL, or off, or nothing")
    owner, change = find_merchant(shell.db, merchant), {}
    if off or paid:
        urls = [None if url is None else branding.checked_url(url) for url in (paid, unpaid)]
        change = {"return_paid": urls[0], "return_unpaid": urls[1]}
    row = set_brand(shell.db, owner, change)
    shell.show([row | {"merchant": merchant}], "merchant return_paid return_unpaid")
