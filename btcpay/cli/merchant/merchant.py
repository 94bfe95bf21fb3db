"""`merchant`: who is paid, the account keys of their wallets, and how their pages look."""

import re
import sys
from pathlib import Path

import click

from btcpay.cli.context import Shell, answer_json, as_json, plain, say, show, with_shell
from btcpay.cli.merchant.currency import currency
from btcpay.cli.merchant.login import login, logout, sessions
from btcpay.cli.merchant.mail import mail
from btcpay.merchants import branding
from btcpay.merchants.account import SCRIPT_TYPES, are_seed_words, derive, parse_account
from btcpay.merchants.gap_limit import gap_of_merchant
from btcpay.merchants.merchants import (
    add_merchant,
    find_merchant,
    refuse_taken,
    require_name,
    set_brand,
    set_return,
)
from btcpay.values.errors import CommandError
from btcpay.values.times import utc_now
from storage.database import Database, Row
from storage.queries import brands, merchants

MOST_OF_A_LINE = 1000  # letters; an extended key has 111
ACCOUNT_DEPTH = 3  # BIP44: m / purpose' / coin_type' / account'
EXAMPLE = re.compile(r"[xyztuv]pub\w{0,4}(\.{3}|\u2026)")
MERCHANT_COLUMNS = ("id", "name", "script_type", "next_index", "created_at")
LIST_COLUMNS = (*MERCHANT_COLUMNS, "highest_paid", "gap_limit", "wallet_gap_limit")
BRAND_COLUMNS = ("merchant", "name", "accent", "logo_type", "logo_sha256")
RETURN_COLUMNS = ("merchant", *(column.name for column in brands.RETURNS))


@click.group()
def merchant() -> None:
    """Merchants and the account keys that their addresses come from."""


for command in (login, sessions, logout, currency, mail):
    merchant.add_command(command)


# Words that nobody asked for may be seed words: no message of click's may repeat them.
@merchant.command("add", context_settings={"allow_extra_args": True})
@click.argument("name")
@click.option(
    "--xpub",
    required=True,
    metavar="KEY",
    callback=lambda _context, _option, text: text.encode(errors="replace").decode(),
    help="The account's extended public key; - to read it from standard input.",
)
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
@click.option("--yes", is_flag=True, help="Do not ask whether the addresses are right.")
@as_json
@with_shell
def merchant_add(
    shell: Shell, name: str, xpub: str, script: str | None, yes: bool, as_json: bool
) -> None:
    """Add a merchant by the account key of a wallet."""
    network = shell.settings.network
    account = parse_account(key_of(xpub, click.get_current_context().args), network, script)
    first = [derive(account.text, account.script_type, index, network) for index in range(3)]
    require_name(name)
    refuse_taken(shell.db, account)  # before anybody compares addresses in vain
    say("The first three receiving addresses; compare them with the wallet:")
    for address in first:
        say(f"  {address}")
    if account.depth != ACCOUNT_DEPTH:
        say(f"Note: this key has depth {account.depth}; an account key (BIP44) has depth 3.")
    if not yes:
        _require_yes()
    row = add_merchant(shell.db, name, account, utc_now())
    if as_json:
        answer_json(plain(row, MERCHANT_COLUMNS) | {"addresses": first})
    else:
        click.echo(f"added {name}")


def _require_yes() -> None:
    try:
        agreed = click.confirm("Are they the wallet's own?", err=True)
    except click.Abort:
        say("")  # the question's line
        told = "nothing was added: no answer came; add --yes, or a second line y"
        raise CommandError(told) from None
    if not agreed:
        raise CommandError("nothing was added")


def key_of(xpub: str, others: list[str]) -> str:
    """The key as given, or the first line of standard input; what follows answers the question."""
    if others and not are_seed_words(" ".join([xpub, *others])):
        raise click.UsageError("there are more words than MERCHANT and KEY: quotes may be missing")
    if xpub == "-" and not others:
        if sys.stdin.isatty():
            say("Paste the account's extended PUBLIC key:")
        return _required(sys.stdin.readline(MOST_OF_A_LINE).strip())
    return _required(" ".join([xpub, *others]).strip())


def _required(key: str) -> str:
    """Raises CommandError for none, and for the one that README has in its place."""
    if not key:
        raise CommandError("no key was given")
    if EXAMPLE.fullmatch(key):
        raise CommandError(f"{key} is the example; put your wallet's key there")
    return key


@merchant.command("list")
@as_json
@with_shell
def merchant_list(shell: Shell, as_json: bool) -> None:
    """All merchants: next address, highest paid one, gap limits that wallets need and have."""
    show([_with_gap(shell.db, row) for row in shell.db.rows(merchants.ALL)], LIST_COLUMNS, as_json)


def _with_gap(db: Database, row: Row) -> Row:
    gap = gap_of_merchant(db, row)
    return row | {"highest_paid": gap.highest_paid, "gap_limit": gap.limit}


@merchant.command("brand")
@click.argument("merchant_name", metavar="MERCHANT")
@click.option("--name", help="The name that the pages show; wallets show it as the recipient.")
@click.option(
    "--logo",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"A PNG, JPEG or WebP image of at most {branding.MAX_LOGO_BYTES // 1024} KiB.",
)
@click.option("--accent", metavar="'#rrggbb'", help="The colour of the pages' button.")
@click.option("--clear", is_flag=True, help="Forget what was set before.")
@as_json
@with_shell
def merchant_brand(
    shell: Shell,
    merchant_name: str,
    name: str | None,
    logo: Path | None,
    accent: str | None,
    clear: bool,
    as_json: bool,
) -> None:
    """Show or set what a merchant's pages look like."""
    content = None
    if logo is not None:
        with logo.open("rb") as file:
            content = file.read(branding.MAX_LOGO_BYTES + 1)
    change = branding.checked(name, accent, content)
    row = set_brand(shell.db, find_merchant(shell.db, merchant_name), change, clear)
    show([row | {"merchant": merchant_name}], BRAND_COLUMNS, as_json)


@merchant.command("return")
@click.argument("merchant_name", metavar="MERCHANT")
@click.argument("off", required=False, type=click.Choice(["off"]), metavar="[off]")
@click.option("--paid", metavar="URL", help="Where the page of a paid invoice leads.")
@click.option("--unpaid", metavar="URL", help="Where the page of an unpaid one leads.")
@as_json
@with_shell
def merchant_return(
    shell: Shell,
    merchant_name: str,
    off: str | None,
    paid: str | None,
    unpaid: str | None,
    as_json: bool,
) -> None:
    """Show or set a way back to the shop, a link on the pages; {invoice} stands for the id."""
    if (off and paid) or (unpaid and not paid):
        raise click.UsageError("either --paid URL and maybe --unpaid URL, or off, or nothing")
    owner = find_merchant(shell.db, merchant_name)
    if off or paid:
        urls = [None if url is None else branding.checked_url(url) for url in (paid, unpaid)]
        set_return(shell.db, owner, *urls)
    row = shell.db.row(brands.OF_MERCHANT, merchant_id=owner["id"]) or brands.BLANK
    show([row | {"merchant": merchant_name}], RETURN_COLUMNS, as_json)
