"""`key`: API keys, whose secrets are shown once."""

import sys
from datetime import timedelta

import click

from btcpay import keys
from btcpay.cli.context import Shell, answer_json, as_json, merchant_named, say, show, with_shell
from btcpay.errors import CommandError
from btcpay.times import to_ms, utc_now
from storage.database import Database, Row
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
    owner = merchant_named(shell.db, merchant)
    with shell.db.write():
        issued = _issue(shell, owner["id"], scope, name)
    _show_secret(issued, as_json)


def _issue(shell: Shell, merchant_id: int, scope: str, name: str) -> Row:
    network = shell.settings.network
    key_id, secret = keys.issue(shell.db, network, merchant_id, scope, name, utc_now())
    return {"id": key_id, "scope": scope, "name": name, "secret": secret}


def _show_secret(issued: Row, as_json: bool) -> None:
    """After the transaction: a secret that was shown works."""
    if as_json:
        answer_json(issued)
    else:
        click.echo(issued["secret"])
        if sys.stderr.isatty():
            say("shown this once: only its hash is kept")


@key.command("list")
@as_json
@with_shell
def key_list(shell: Shell, as_json: bool) -> None:
    """All keys, without their secrets."""
    show(shell.db.rows(stored_keys.ALL), KEY_COLUMNS, as_json)


def _find_key(db: Database, key_id: str) -> Row:
    row = db.row(stored_keys.BY_ID, id=key_id)
    if row is None:
        raise CommandError(f"there is no key {key_id!r}")
    return row


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@with_shell
def key_revoke(shell: Shell, key_id: str) -> None:
    """Revoke a key now."""
    _find_key(shell.db, key_id)
    if shell.db.run(stored_keys.REVOKE, id=key_id, at=to_ms(utc_now())) != 1:
        raise CommandError(f"the key {key_id} was revoked before")
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
    old = _find_key(shell.db, key_id)
    ends_at = to_ms(utc_now() + timedelta(hours=grace))
    with shell.db.write():
        if shell.db.run(stored_keys.EXPIRE, id=key_id, at=ends_at) != 1:
            raise CommandError(f"the key {key_id} was revoked or rotated before")
        issued = _issue(shell, old["merchant_id"], old["scope"], old["name"])
    _show_secret(issued, as_json)
    say(f"the old key {key_id} works for {grace} more hours")


COMMANDS = (key,)
