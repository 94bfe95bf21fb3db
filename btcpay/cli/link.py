"""`link`: payment links, on and off."""

import click

from btcpay.cli.context import Shell, as_json, say, show, with_shell
from btcpay.errors import CommandError
from storage.queries import links

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
    show(shell.db.rows(links.ALL, limit=limit), LINK_COLUMNS, as_json)


def _set_link(shell: Shell, link_id: str, status: str) -> None:
    if shell.db.run(links.SET_STATUS, id=link_id, status=status) != 1:
        raise CommandError(f"there is no payment link {link_id!r}")
    say(f"{link_id} is {status}")


@link.command("deactivate")
@click.argument("link_id", metavar="ID")
@with_shell
def link_deactivate(shell: Shell, link_id: str) -> None:
    """Stop a link from making invoices; its page answers 410."""
    _set_link(shell, link_id, "inactive")


@link.command("activate")
@click.argument("link_id", metavar="ID")
@with_shell
def link_activate(shell: Shell, link_id: str) -> None:
    """Let a link make invoices again."""
    _set_link(shell, link_id, "active")


COMMANDS = (link,)
