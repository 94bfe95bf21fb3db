"""`migrate` and `merchant`: what is set up once."""

import click
from peewee import IntegrityError

from btcpay.addresses import SCRIPT_TYPES, Account, derive, parse_account
from btcpay.clock import utc_now
from btcpay.commands.shell import Shell, answer_json, as_json, plain, say, show, with_shell
from btcpay.errors import AccountKeyRefused, CommandError
from btcpay.instants import to_ms
from storage import balances, merchants, schema
from storage.database import Database

ACCOUNT_DEPTH = 3  # BIP44: m / purpose' / coin_type' / account'
MERCHANT_COLUMNS = ("name", "script_type", "next_index", "created_at")


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
            db.run(balances.OPEN, merchant_id=db.only(merchants.BY_NAME, name=name)["id"])
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


COMMANDS = (migrate, merchant)
