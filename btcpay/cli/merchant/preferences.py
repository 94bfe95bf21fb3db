"""`merchant brand`, `currency`, `timezone`, `mail`, `return`: each shows what is set or sets it."""

from typing import BinaryIO, cast

import click

from btcpay.cli.context import Shell, printable, say, with_json_shell
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants import branding, merchants
from btcpay.prices.price import Prices
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError
from btcpay.values.money import checked_currency
from btcpay.values.times import checked_zone
from storage.statement import as_dict
from storage.values import Values

BRAND_COLUMNS = "merchant name accent contact logo_type logo_sha256"
LOGO_KIB = branding.MAX_LOGO_BYTES // 1024


@click.command("brand")
@click.argument("merchant")
@click.option(
    "--name", help="The name that the pages show; wallets show it as the recipient."
)
@click.option(
    "--logo", type=click.File("rb"), help=f"PNG, JPEG or WebP, at most {LOGO_KIB} KiB."
)
@click.option("--accent", metavar="'#rrggbb'", help="The colour of the pages' button.")
@click.option(
    "--contact", metavar="TEXT", help="How customers reach the merchant, in one line."
)
@click.option("--clear", is_flag=True, help="Forget what was set before.")
@with_json_shell
def brand(
    shell: Shell, merchant: str, logo: BinaryIO | None, clear: bool, **texts: str | None
) -> None:
    """Show or set what a merchant's pages look like."""
    content = logo.read(branding.MAX_LOGO_BYTES + 1) if logo else None
    owner = merchants.find_merchant(shell.db, merchant)
    change = branding.brand_columns(content, **texts)
    row = merchants.set_brand(shell.db, owner.id, cast(Values, change), clear)
    shell.show([as_dict(row) | {"merchant": merchant}], BRAND_COLUMNS)


@click.command("currency")
@click.argument("merchant")
@click.argument("code", required=False, metavar="[EUR]")
@with_json_shell
def currency(shell: Shell, merchant: str, code: str | None) -> None:
    """Show or set the currency that a merchant counts in: till, links, sums, mails, exports.

    Prints what a bitcoin costs in it. Past payments keep their value in the former one.
    """
    owner = merchants.find_merchant(shell.db, merchant)
    kept = owner.currency
    if code is not None:
        kept = checked_currency(code)
        merchants.set_currency(shell.db, owner.id, kept)
    price = Prices(shell.settings).rate_for(kept).current_price_or_none()
    if price is None:
        say(f"no price in {kept} now: nothing can be sold until enough sources agree")
    row = {"merchant": merchant, "currency": kept, "price": price and f"{price:f}"}
    shell.show([row], "merchant currency price")


@click.command("timezone")
@click.argument("merchant")
@click.argument("name", required=False, metavar="[Europe/Berlin]")
@with_json_shell
def timezone(shell: Shell, merchant: str, name: str | None) -> None:
    """Show or set the time zone that divides a merchant's days, past ones too."""
    owner = merchants.find_merchant(shell.db, merchant)
    kept = owner.timezone
    if name is not None:
        kept = checked_zone(name)
        merchants.set_timezone(shell.db, owner.id, kept)
    shell.show([{"merchant": merchant, "timezone": kept}], "merchant timezone")


@click.command("mail")
@click.argument("merchant")
@click.argument("address", required=False, metavar="[ADDRESS|off]")
@click.option(
    "--receipts/--no-receipts", default=None, help="Mail customers a receipt when paid."
)
@click.option(
    "--evening/--no-evening",
    default=None,
    help="A mail about each day, in the evening.",
)
@click.option(
    "--language", type=click.Choice(list(LANGUAGES)), help="Of all these mails."
)
@with_json_shell
def mail(
    shell: Shell,
    merchant: str,
    address: str | None,
    language: str | None,
    **switches: bool | None,
) -> None:
    """Show or set where a merchant gets mail about payments; `off`: no mail, no receipts."""
    owner = merchants.find_merchant(shell.db, merchant)
    asked = {name: int(is_on) for name, is_on in switches.items() if is_on is not None}
    change = cast(Values, asked)
    if language:
        change["language"] = language
    if address == "off":
        change = {"address": None, "receipts": 0, "evening": 0, **change}
    elif address is not None:
        try:
            change["address"] = checked_address(address.strip())
        except ValueError as error:
            raise CommandError(f"{printable(address)} is not {error}") from None
    row = merchants.set_mail(shell.db, owner.id, change, shell.now)
    if change and not shell.settings.has_mail:
        say("nothing is sent until BLOCKTILL_SMTP_URL and BLOCKTILL_MAIL_FROM are set")
    switched = {name: bool(getattr(row, name)) for name in switches}
    shown = as_dict(row) | {"merchant": merchant} | switched
    shell.show([shown], "merchant address receipts evening language")


@click.command("return")
@click.argument("merchant")
@click.argument("off", required=False, type=click.Choice(["off"]), metavar="[off]")
@click.option("--paid", metavar="URL", help="Where the page of a paid invoice leads.")
@click.option("--unpaid", metavar="URL", help="Where the page of an unpaid one leads.")
@with_json_shell
def way_back(
    shell: Shell, merchant: str, off: str | None, paid: str | None, unpaid: str | None
) -> None:
    """Show or set the pages' link back to the shop; {invoice} is replaced by the id."""
    if (off and paid) or (unpaid and not paid):
        raise click.UsageError(
            "either --paid URL and maybe --unpaid URL, or off, or nothing"
        )
    owner = merchants.find_merchant(shell.db, merchant)
    change = Values()
    if off or paid:
        urls = [
            None if url is None else branding.checked_url(url) for url in (paid, unpaid)
        ]
        change = {"return_paid": urls[0], "return_unpaid": urls[1]}
    row = merchants.set_brand(shell.db, owner.id, change)
    shell.show(
        [as_dict(row) | {"merchant": merchant}], "merchant return_paid return_unpaid"
    )
