"""`key`: API keys, whose secrets are shown once."""

import sys
from datetime import timedelta

import click

from btcpay.cli.context import Shell, answer_json, as_json, say, show, with_shell
from btcpay.merchants import keys
from btcpay.merchants.merchants import find_merchant
from btcpay.values.times import utc_now
from storage.queries import keys as stored_keys

KEY_COLUMNS = (
    "id",
    "name",
    "merchant_id",
    "merchant",
    "scope",
    "last_four",
    "created_at",
    "last_used_at",
    "revoked_at",
)


@click.group()
def key() -> None:
    """API keys: issued once, stored as a hash."""


@key.command("issue")
@click.argument("merchant")
@click.option("--scope", type=click.Choice(["read", "write"]), required=True)
@click.option("--name", default="", help="A text to tell keys apart.")
@as_json
@with_shell
def key_issue(shell: Shell, merchant: str, scope: str, name: str, as_json: bool) -> None:
    """Issue a key; the secret is shown this once."""
    owner = find_merchant(shell.db, merchant)
    network = shell.settings.network
    _show_secret(keys.issue(shell.db, network, owner["id"], scope, name, utc_now()), as_json)


def _show_secret(issued: keys.Issued, as_json: bool) -> None:
    """After the transaction: a secret that was shown works."""
    if as_json:
        answer_json(issued._asdict())
    else:
        click.echo(issued.secret)
        if sys.stderr.isatty():
            say("shown this once: only its hash is kept")


@key.command("list")
@as_json
@with_shell
def key_list(shell: Shell, as_json: bool) -> None:
    """All keys, without their secrets."""
    show(shell.db.rows(stored_keys.ALL), KEY_COLUMNS, as_json)


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
@as_json
@with_shell
def key_rotate(shell: Shell, key_id: str, grace: int, as_json: bool) -> None:
    """Issue a new secret; the old one works for the grace time."""
    network, period = shell.settings.network, timedelta(hours=grace)
    _show_secret(keys.rotate(shell.db, network, key_id, period, utc_now()), as_json)
    say(f"the old key {key_id} works for {grace} more hours")
