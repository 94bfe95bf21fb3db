"""`merchant currency`: the currency that a merchant's pages and exports have beside the dollar."""

import click

from btcpay.cli.context import Shell, as_json, number, say, show, with_shell
from btcpay.merchants.merchants import find_merchant, set_currency
from btcpay.prices.price import new_prices
from btcpay.values.currencies import checked_currency

CURRENCY_COLUMNS = ("merchant", "currency", "price")


@click.command("currency")
@click.argument("merchant_name", metavar="MERCHANT")
@click.argument("code", required=False, metavar="[EUR|off]")
@as_json
@with_shell
def currency(shell: Shell, merchant_name: str, code: str | None, as_json: bool) -> None:
    """Show or set a second currency: beside the dollars on the pages, and in exports.

    Says what a bitcoin costs in it now.
    """
    owner = find_merchant(shell.db, merchant_name)
    if code is not None:
        owner["currency"] = None if code == "off" else checked_currency(code)
        set_currency(shell.db, owner, owner["currency"])
    row = {"merchant": merchant_name, "currency": owner["currency"], "price": None}
    if owner["currency"]:
        price = _price_in(shell, owner["currency"])
        row["price"] = number("usd", price) if as_json else price
    show([row], CURRENCY_COLUMNS, as_json)


def _price_in(shell: Shell, currency: str) -> str | None:
    """What a bitcoin costs now; None, and said, when the sources do not agree on it."""
    price = new_prices(shell.settings).beside.asked(currency)
    if price is None:
        say(f"no price in {currency} right now: nothing is shown in it until enough sources agree")
    return None if price is None else f"{price:f}"
