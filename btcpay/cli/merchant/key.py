"""`key`: API keys, whose secrets are shown once."""

import sys
from datetime import timedelta
from typing import Any

import click

from btcpay.cli.context import Shell, answering, say, with_shell
from btcpay.merchants import keys
from btcpay.merchants.merchants import find_merchant
from btcpay.values.parts import brought
from btcpay.values.times import utc_now
from storage.queries import keys as stored_keys

KEY_COLUMNS = "id name merchant_id merchant scope last_four created_at last_used_at revoked_at"

OTHER_KINDS = brought("keys")


@click.group()
def key() -> None:
    """API keys: issued once, stored as a hash."""


@key.command("issue", params=[option for part in OTHER_KINDS for option in part.OPTIONS])
@click.argument("merchant")
@click.option("--scope", type=click.Choice(["read", "write"]))
@click.option("--name", default="", help="A text to tell keys apart.")
@answering
def key_issue(shell: Shell, merchant: str, scope: str | None, name: str, **options: Any) -> None:
    """Issue a key; its secret is shown once."""
    network, owner, now = shell.settings.network, find_merchant(shell.db, merchant), utc_now()
    for part in OTHER_KINDS:
        if found := part.issue(shell.db, shell.settings, owner.id, now, scope, options):
            issued, known, hints = found
            shell.answer(known | issued._asdict(), "\n".join([*known.values(), issued.secret]))
            for hint in hints:
                say(hint)
            return
    if scope is None:
        raise click.UsageError("give --scope, or the options of another kind of key: see --help")
    _show_secret(shell, keys.issue(shell.db, network, owner.id, scope, name, now))


def _show_secret(shell: Shell, issued: keys.Issued) -> None:
    """Called after the transaction, so that a secret that was shown works."""
    shell.answer(issued._asdict(), issued.secret)
    if sys.stderr.isatty() and not shell.as_json:
        say("shown only this once: only its hash is kept")


@key.command("list")
@answering
def key_list(shell: Shell) -> None:
    """All keys, without their secrets."""
    shell.show(shell.db.rows(stored_keys.ALL), KEY_COLUMNS)


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@with_shell
def key_revoke(shell: Shell, key_id: str) -> None:
    """Revoke a key now."""
    keys.revoke(shell.db, key_id, utc_now())
    say(f"revoked {key_id}")


@key.command("rotate")
@click.argument("key_id", metavar="ID")
@click.option("--grace", metavar="HOURS", type=click.IntRange(0, 8760), default=24, help="[24]")
@answering
def key_rotate(shell: Shell, key_id: str, grace: int) -> None:
    """Issue a new secret; the old one works for the HOURS of --grace."""
    network, period = shell.settings.network, timedelta(hours=grace)
    _show_secret(shell, keys.rotate(shell.db, network, key_id, period, utc_now()))
    say(f"the old key {key_id} works for {grace} more hours")
