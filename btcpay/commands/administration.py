"""`migrate`, `merchant`, `key`, `link`: what the owner of the service sets up."""

from datetime import timedelta

import click
from peewee import IntegrityError

from btcpay import keys
from btcpay.addresses import SCRIPT_TYPES, Account, derive, parse_account
from btcpay.clock import utc_now
from btcpay.commands.shell import Shell, answer_json, as_json, plain, say, show, with_shell
from btcpay.errors import AccountKeyRefused, CommandError
from btcpay.instants import to_ms
from storage import keys as stored_keys
from storage import links, merchants, schema
from storage.database import Database, Row

ACCOUNT_DEPTH = 3  # BIP44: m / purpose' / coin_type' / account'
MERCHANT_COLUMNS = ("name", "script_type", "next_index", "created_at")
KEY_COLUMNS = (
    "id",
    "name",
    "merchant",
    "scope",
    "last_four",
    "created_at",
    "last_used_at",
    "revoked_at",
)
LINK_COLUMNS = ("id", "status", "title", "amount_mode", "amount_usd", "created_at")


@click.command()
@as_json
@with_shell
def migrate(shell: Shell, as_json: bool) -> None:
    """Bring the database to this version."""
    done = schema.migrate(shell.settings.database_url, shell.settings.network.name)
    if as_json:
        answer_json({"version": schema.VERSION, "applied": done})
    else:
        click.echo(f"at version {schema.VERSION}, applied: {', '.join(done) or 'nothing to do'}")


@click.group()
def merchant() -> None:
    """Merchants and the account keys that their addresses come from."""


def add_merchant(db: Database, name: str, account: Account) -> None:
    """Stores a merchant. Raises CommandError for a name or a key that another one has."""
    taken = db.row(merchants.BY_ACCOUNT_KEY, account_key=account.identity)
    if taken:
        raise AccountKeyRefused(f"merchant {taken['name']} has this key already")
    try:
        with db.write():
            db.run(
                merchants.ADD,
                name=name,
                script_type=account.script_type,
                xpub=account.text,
                account_key=account.identity,
                next_index=0,
                created_at=to_ms(utc_now()),
            )
    except IntegrityError:
        raise CommandError(f"there is a merchant {name!r}, or one with this key, already") from None


@merchant.command("add")
@click.argument("name")
@click.option("--xpub", required=True, metavar="KEY", help="The account's extended public key.")
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
@click.option("--yes", is_flag=True, help="Do not ask whether the addresses are right.")
@as_json
@with_shell
def merchant_add(
    shell: Shell, name: str, xpub: str, script: str | None, yes: bool, as_json: bool
) -> None:
    """Add a merchant by the account key of a wallet."""
    network = shell.settings.network
    account = parse_account(xpub.strip(), network, script)
    first = [derive(account.text, account.script_type, index, network) for index in range(3)]
    if not name.strip() or not name.isprintable():
        raise CommandError("the merchant's name must be printable text")
    say("The first three receiving addresses; compare them with the wallet:")
    for address in first:
        say(f"  {address}")
    if account.depth != ACCOUNT_DEPTH:
        say(f"Note: this key has depth {account.depth}; an account key (BIP44) has depth 3.")
    if not yes:
        click.confirm("Are they the wallet's own?", abort=True, err=True)
    add_merchant(shell.db, name, account)
    row = shell.db.only(merchants.BY_NAME, name=name)
    if as_json:
        answer_json(plain(row, MERCHANT_COLUMNS) | {"addresses": first})
    else:
        click.echo(f"added {name}")


@merchant.command("list")
@as_json
@with_shell
def merchant_list(shell: Shell, as_json: bool) -> None:
    """All merchants, and the index of their next address."""
    show(shell.db.rows(merchants.ALL), MERCHANT_COLUMNS, as_json)


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
    owner = shell.db.row(merchants.BY_NAME, name=merchant)
    if owner is None:
        raise CommandError(f"there is no merchant {merchant!r}")
    _issue(shell, owner["id"], scope, name, as_json)


def _issue(shell: Shell, merchant_id: int, scope: str, name: str, as_json: bool) -> None:
    network = shell.settings.network
    with shell.db.write():
        key_id, secret = keys.issue(shell.db, network, merchant_id, scope, name, utc_now())
    if as_json:
        answer_json({"id": key_id, "scope": scope, "name": name, "secret": secret})
    else:
        click.echo(secret)


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


def _end_key(db: Database, key_id: str, at: int) -> None:
    if db.run(stored_keys.END, id=key_id, at=at) != 1:
        raise CommandError(f"the key {key_id} was revoked before")


@key.command("revoke")
@click.argument("key_id", metavar="ID")
@with_shell
def key_revoke(shell: Shell, key_id: str) -> None:
    """Revoke a key now."""
    _find_key(shell.db, key_id)
    with shell.db.write():
        _end_key(shell.db, key_id, to_ms(utc_now()))
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
    with shell.db.write():
        _end_key(shell.db, key_id, to_ms(utc_now() + timedelta(hours=grace)))
        _issue(shell, old["merchant_id"], old["scope"], old["name"], as_json)
    say(f"the old key {key_id} works for {grace} more hours")


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


COMMANDS = (migrate, merchant, key, link)
