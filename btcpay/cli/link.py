"""`link`: payment links, on and off."""

import click

from btcpay.cli.context import Shell, as_json, say, show, with_shell
from btcpay.invoices import links
from btcpay.times import utc_now
from storage.queries import links as stored_links

LINK_COLUMNS = ("id", "status", "title", "amount_mode", "amount_usd", "created_at")


@click.group()
def link() -> None:
    """Payment links."""


@link.command("list")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@as_json
@with_shell
def link_list(shell: Shell, limit: int, as_json: bool) -> None:
    """The newest payment links of all merchants."""
    show(shell.db.rows(stored_links.ALL, limit=limit), LINK_COLUMNS, as_json)


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
