"""Command `link`: creates, lists, activates and deactivates payment links."""

import re
from decimal import Decimal
from typing import Any

import click

from btcpay.cli.operation_options import (
    parse_amount_option,
    parse_number,
    require_units,
    validate,
)
from btcpay.cli.output import say
from btcpay.cli.resource_commands import merchant_names
from btcpay.cli.shell import Shell, limit_option, with_json_shell, with_shell
from btcpay.invoices import links
from btcpay.invoices.quotes import live_price
from btcpay.merchants.account import dust_limit_of_account
from btcpay.merchants.merchants import find_merchant
from btcpay.prices.price import Prices
from btcpay.values.money import checked_currency
from btcpay.values.texts import check_texts
from schemas.requests import NEW_PRICED_LINK
from schemas.resources import Resources
from storage.queries import links as stored_links
from storage.queries.lists import listings
from storage.statement import as_dict

LINK_COLUMNS = "id merchant status title amount_mode currency amount created_at"
SUGGESTED = re.compile(r"(0|[1-9][0-9]{0,10})(\.[0-9]{1,3})?")
# A single comma without a space may be a decimal mark or a thousands separator.
AMBIGUOUS = re.compile(r"[0-9]+,[0-9]{1,3}")
# The option of each field that is an amount. The fields are named as in the API, where amounts are
# in dollars; here they are in --currency.
AMOUNT_OPTIONS = {
    "amount_usd": "--amount",
    "min_amount_usd": "--min",
    "max_amount_usd": "--max",
}
link = click.Group("link", help="Payment links.")


def _amounts(_context: Any, _option: Any, text: str | None) -> list[Decimal]:
    """Parses the amounts in a text such as `5,10,19.90`. Returns [] for None.

    Commas separate the amounts. Raises UsageError for a text that may be a single
    amount, such as `5,10`. Also raises it for a number with a leading zero: otherwise
    `1,000` would be two amounts.
    """
    if text is None:
        return []
    words = text.replace(",", " ").split()
    if not words or not all(map(SUGGESTED.fullmatch, words)):
        raise click.UsageError(
            "separate suggested amounts by commas, such as 5,10,19.90"
        )
    if AMBIGUOUS.fullmatch(text.strip()):
        with_space = ", ".join(words)
        two_amounts = " and ".join(words)
        raise click.UsageError(
            f"--suggest: {text.strip()} can be read as one amount:"
            f" write {with_space} for {two_amounts}"
        )
    return [Decimal(word) for word in words]


@link.command("create")
@click.argument("merchant")
@click.option(
    "--amount",
    "amount_usd",
    metavar="AMOUNT",
    callback=parse_number,
    help="A fixed price.",
)
@click.option("--min", "min_amount_usd", metavar="AMOUNT", callback=parse_number)
@click.option("--max", "max_amount_usd", metavar="AMOUNT", callback=parse_number)
@click.option(
    "--currency", metavar="EUR", help="Of all amounts [default: the merchant's]."
)
@click.option("--title", metavar="TEXT", help="Shown on the page.")
@click.option(
    "--description", metavar="TEXT", help="Shown on the page and on its invoices."
)
@click.option(
    "--suggest",
    metavar="5,10,20",
    callback=_amounts,
    help="Amounts shown as buttons.",
)
@with_json_shell
def link_create(
    shell: Shell,
    merchant: str,
    suggest: list[Decimal],
    currency: str | None,
    **options: Any,
) -> None:
    """Make a payment link, like the API's create-payment-link; prints its id and its URL.

    Without --amount the payer chooses the amount.
    """
    owner = find_merchant(shell.db, merchant)
    now = shell.now
    currency = checked_currency(currency or owner.currency)
    for name, option in AMOUNT_OPTIONS.items():
        options[name] = parse_amount_option(currency, options[name], option)
    fields = check_texts(validate(NEW_PRICED_LINK, options))
    fields["suggested"] = suggest
    require_units(currency, [fields.get(name) for name in AMOUNT_OPTIONS])
    if links.is_nameless(fields):
        raise click.UsageError(
            "give --title or an amount, so that customers know the link"
        )
    price = live_price(Prices(shell.settings), now, currency)
    dust_limit_sats = dust_limit_of_account(owner.descriptor)
    with shell.db.write():
        row = links.new_link(
            shell.db,
            now,
            owner.id,
            fields=fields,
            price=price,
            dust_limit_sats=dust_limit_sats,
        )
    answer = Resources(shell.settings.base_url).payment_link.dump(row)
    shell.answer(answer, f"{answer['id']}\n{answer['link_url']}")


@link.command("list")
@limit_option
@with_json_shell
def link_list(shell: Shell, limit: int) -> None:
    """List the newest payment links of all merchants."""
    names = merchant_names(shell.db)
    rows = []
    for row in listings.newest(shell.db, stored_links.LIST, limit):
        rows.append(as_dict(row) | {"merchant": names[row.merchant_id]})
    shell.show(rows, LINK_COLUMNS)


@link.command("deactivate")
@click.argument("link_id", metavar="ID")
@with_shell
def link_deactivate(shell: Shell, link_id: str) -> None:
    """Stop a link from making invoices; its page then says so (HTTP status 410)."""
    links.set_active(shell.db, link_id, active=False, now=shell.now)
    say(f"{link_id} is inactive")


@link.command("activate")
@click.argument("link_id", metavar="ID")
@with_shell
def link_activate(shell: Shell, link_id: str) -> None:
    """Let a link make invoices again."""
    links.set_active(shell.db, link_id, active=True, now=shell.now)
    say(f"{link_id} is active")
