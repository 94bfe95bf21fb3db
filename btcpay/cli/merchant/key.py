"""`key`: API keys, whose secrets are shown once."""

import sys
from datetime import timedelta

import click

from btcpay.cli.context import Shell, answering, say, with_shell
from btcpay.merchants import keys
from btcpay.merchants.merchants import find_merchant
from btcpay.merchants.shops import BY_BUTTON, PERMISSIONS, store_of
from btcpay.values.times import utc_now
from storage.queries import keys as stored_keys
from storage.statement import as_dict

KEY_COLUMNS = "id name merchant_id merchant scope last_four created_at last_used_at revoked_at"


@click.group()
def key() -> None:
    """API keys: issued once, stored as a hash."""


@key.command("issue")
@click.argument("merchant")
@click.option("--scope", type=click.Choice(["read", "write"]))
@click.option("--name", default="", help="A text to tell keys apart.")
@click.option("--for", "plugin", type=click.Choice(sorted(PERMISSIONS)), help="A shop's plug-in.")
@click.option("--shop", metavar="URL", help="Where that shop is: its key is bound to it.")
@answering
def key_issue(
    shell: Shell, merchant: str, scope: str | None, name: str, plugin: str | None, shop: str | None
) -> None:
    """Issue a key; its secret is shown once. A plug-in's key needs --for and --shop, no --scope."""
    if (plugin is None) != (shop is None) or (plugin is None) == (scope is None):
        raise click.UsageError("either --scope, or --for and --shop together")
    network, owner, now = shell.settings.network, find_merchant(shell.db, merchant), utc_now()
    if plugin is None or shop is None:
        issued = keys.issue(shell.db, network, owner.id, scope or "", name, now)
        return _show_secret(shell, issued)
    store_id = store_of(shell.db, owner.id, shop, now)
    of_shop = (store_id, PERMISSIONS[plugin])
    issued = keys.issue(shell.db, network, owner.id, "write", plugin, now, *of_shop)
    known = {"base_url": shell.settings.base_url, "store_id": store_id}
    shell.answer(known | issued._asdict(), "\n".join([*known.values(), issued.secret]))
    if plugin in BY_BUTTON:
        say(f"{plugin} gets its key only by its own button: docs/merchants/shop-plugins.md")
    if not shell.settings.greenfield:
        say("plug-ins are answered by the sandbox, and elsewhere only with BTCPAY_GREENFIELD=on")
    return None


def _show_secret(shell: Shell, issued: keys.Issued) -> None:
    """After the transaction: a secret that was shown works."""
    shell.answer(issued._asdict(), issued.secret)
    if sys.stderr.isatty() and not shell.as_json:
        say("shown only this once: only its hash is kept")


@key.command("list")
@answering
def key_list(shell: Shell) -> None:
    """All keys, without their secrets."""
    shell.show(list(map(as_dict, shell.db.rows(stored_keys.ALL))), KEY_COLUMNS)


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@with_shell
def key_revoke(shell: Shell, key_id: str) -> None:
    """Revoke a key now."""
    keys.revoke(shell.db, key_id, utc_now())
    say(f"revoked {key_id}")


@key.command("rotate")
@click.argument("key_id", metavar="ID")
@click.option(
    "--grace",
    type=click.IntRange(0, 8760),
    default=24,
    show_default=True,
    metavar="HOURS",
    help="How long the old secret still works.",
)
@answering
def key_rotate(shell: Shell, key_id: str, grace: int) -> None:
    """Issue a new secret; the old one works for the grace time."""
    network, period = shell.settings.network, timedelta(hours=grace)
    _show_secret(shell, keys.rotate(shell.db, network, key_id, period, utc_now()))
    say(f"the old key {key_id} works for {grace} more hours")
