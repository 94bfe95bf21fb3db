"""Commands `merchant brand`, `currency`, `timezone`, `mail` and `return`.

Each command changes a preference of a merchant, and prints it.
"""

from typing import BinaryIO, cast

import click

from btcpay.cli.output import printable, say
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.languages.catalogs import LANGUAGES
from btcpay.merchants import branding, merchants
from btcpay.notify.mail.server import HOW_TO_SET, has_mail
from btcpay.prices.price import Prices
from btcpay.settings.mail_settings import checked_address
from btcpay.values.errors import CommandError
from btcpay.values.hosts import is_without_mail
from btcpay.values.money import checked_currency
from btcpay.values.times import checked_zone
from storage.statement import as_dict
from storage.values import Values

BRAND_COLUMNS = "merchant name accent contact logo_type logo_sha256"
LOGO_KIB = branding.MAX_LOGO_BYTES // 1024
NO_MAIL: Values = {"address": None, "receipts": 0, "evening": 0}


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
    """Show or set the look of a merchant's pages: name, logo, colour and contact."""
    content = None
    if logo:
        # One byte more than the maximum, to detect a file that is too large.
        content = logo.read(branding.MAX_LOGO_BYTES + 1)
    owner = merchants.find_merchant(shell.db, merchant)
    change = branding.brand_columns(content, **texts)
    row = merchants.set_brand(shell.db, owner.id, cast(Values, change), clear)
    shell.show([as_dict(row) | {"merchant": merchant}], BRAND_COLUMNS)


@click.command("currency")
@click.argument("merchant")
@click.argument("code", required=False, metavar="[EUR]")
@with_json_shell
def currency(shell: Shell, merchant: str, code: str | None) -> None:
    """Show or set the currency of a merchant's till, links, sums, mails and exports.

    Also prints the price of one bitcoin in this currency. Past payments keep their value in the
    currency of their time.
    """
    owner = merchants.find_merchant(shell.db, merchant)
    current = owner.currency
    if code is not None:
        current = checked_currency(code)
        merchants.set_currency(shell.db, owner.id, current)
    price = Prices(shell.settings).rate_for(current).current_price_or_none()
    row = {"merchant": merchant, "currency": current, "price": None}
    if price is None:
        say(
            f"no price in {current} now: nothing can be sold until enough sources agree"
        )
    else:
        row["price"] = f"{price:f}"
    shell.show([row], "merchant currency price")


@click.command("timezone")
@click.argument("merchant")
@click.argument("name", required=False, metavar="[Europe/Berlin]")
@with_json_shell
def timezone(shell: Shell, merchant: str, name: str | None) -> None:
    """Show or set the time zone in which a merchant's days begin, past days too."""
    owner = merchants.find_merchant(shell.db, merchant)
    zone = owner.timezone
    if name is not None:
        zone = checked_zone(name)
        merchants.set_timezone(shell.db, owner.id, zone)
    shell.show([{"merchant": merchant, "timezone": zone}], "merchant timezone")


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
    receipts: bool | None,
    evening: bool | None,
) -> None:
    """Show or set the address for a merchant's mail; `off` ends all mail, receipts too."""
    owner = merchants.find_merchant(shell.db, merchant)
    change = _address_change(address)
    if receipts is not None:
        change["receipts"] = int(receipts)
    if evening is not None:
        change["evening"] = int(evening)
    if language:
        change["language"] = language
    row = merchants.set_mail(shell.db, owner.id, change, shell.now)
    if change and not has_mail(shell.settings, shell.db):
        say(f"nothing is sent until there is a mail server: {HOW_TO_SET}")
    cells = as_dict(row) | {
        "merchant": merchant,
        "receipts": bool(row.receipts),
        "evening": bool(row.evening),
    }
    shell.show([cells], "merchant address receipts evening language")


def _address_change(address: str | None) -> Values:
    """Returns the columns that the argument ADDRESS changes.

    Prints a warning if no mail can arrive at the domain of the address. Raises
    CommandError if the address is invalid.
    """
    if address is None:
        return {}
    if address == "off":
        return {**NO_MAIL}
    checked = _mail_address(address)
    domain = checked.rpartition("@")[2]
    if is_without_mail(domain):
        say(f"is the address right? No mail from outside arrives at {domain}")
    return {"address": checked}


def _mail_address(text: str) -> str:
    """Returns the address without spaces around it. Raises CommandError if it is invalid."""
    try:
        return checked_address(text.strip())
    except ValueError as error:
        raise CommandError(f"{printable(text)} is not {error}") from None


@click.command("return")
@click.argument("merchant")
@click.argument("off", required=False, type=click.Choice(["off"]), metavar="[off]")
@click.option("--paid", metavar="URL", help="Where the page of a paid invoice leads.")
@click.option("--unpaid", metavar="URL", help="Where the page of an unpaid one leads.")
@with_json_shell
def return_(
    shell: Shell, merchant: str, off: str | None, paid: str | None, unpaid: str | None
) -> None:
    """Show or set the link from invoices' pages to the shop; {invoice} becomes the id."""
    is_contradictory = off and paid
    is_incomplete = unpaid and not paid  # the page of an unpaid invoice needs both
    if is_contradictory or is_incomplete:
        raise click.UsageError(
            "either --paid URL and maybe --unpaid URL, or off, or nothing"
        )
    owner = merchants.find_merchant(shell.db, merchant)
    change: Values = {}
    if off or paid:
        change["return_paid"] = _url_or_none(paid)
        change["return_unpaid"] = _url_or_none(unpaid)
    row = merchants.set_brand(shell.db, owner.id, change)
    cells = as_dict(row) | {"merchant": merchant}
    shell.show([cells], "merchant return_paid return_unpaid")


def _url_or_none(text: str | None) -> str | None:
    """Returns the URL; None stays None. Raises CommandError if the URL is invalid."""
    if text is None:
        return None
    return branding.checked_url(text)
