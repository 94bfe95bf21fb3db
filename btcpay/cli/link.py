"""`link`: payment links, made, on and off."""

from typing import Any

import click

from btcpay.cli.context import Shell, as_json, say, show, with_shell
from btcpay.cli.operation_options import number, tell, validated
from btcpay.invoices import links
from btcpay.times import utc_now
from btcpay.wallet.merchants import find_merchant
from schemas.requests import NEW_PAYMENT_LINK
from schemas.resources import Resources
from storage.queries import listings

LINK_COLUMNS = ("id", "status", "title", "amount_mode", "amount_usd", "created_at")


@click.group()
def link() -> None:
    """Payment links."""


@link.command("create")
@click.argument("merchant_name", metavar="MERCHANT")
@click.option("--usd", "amount_usd", metavar="AMOUNT", callback=number, help="A fixed price.")
@click.option("--min-usd", "min_amount_usd", metavar="AMOUNT", callback=number)
@click.option("--max-usd", "max_amount_usd", metavar="AMOUNT", callback=number)
@click.option("--title", metavar="TEXT", help="Shown on the page.")
@click.option("--description", metavar="TEXT", help="Shown on the page and on its invoices.")
@as_json
@with_shell
def link_create(shell: Shell, merchant_name: str, as_json: bool, **fields: Any) -> None:
    """Make a payment link, as create-payment-link does; prints its id and its page.

    Without --usd the payer chooses the amount.
    """
    owner = find_merchant(shell.db, merchant_name)
    wanted = validated(NEW_PAYMENT_LINK, fields)
    with shell.db.write():
        row = links.new_link(shell.db, utc_now(), owner["id"], wanted)
    tell(Resources(shell.settings.base_url).payment_link.dump(row), "link_url", as_json)


@link.command("list")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@as_json
@with_shell
def link_list(shell: Shell, limit: int, as_json: bool) -> None:
    """The newest payment links of all merchants."""
    show(listings.newest_links(shell.db, limit), LINK_COLUMNS, as_json)


@link.command("deactivate")
@click.argument("link_id", metavar="ID")
@with_shell
def link_deactivate(shell: Shell, link_id: str) -> None:
    """Stop a link from making invoices; its page answers 410."""
    links.set_active(shell.db, link_id, False, utc_now())
    say(f"{link_id} is inactive")


@link.command("activate")
@click.argument("link_id", metavar="ID")
@with_shell
def link_activate(shell: Shell, link_id: str) -> None:
    """Let a link make invoices again."""
    links.set_active(shell.db, link_id, True, utc_now())
    say(f"{link_id} is active")
