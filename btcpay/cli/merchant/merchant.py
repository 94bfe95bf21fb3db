"""`merchant`: the merchants, and the account keys of their wallets."""

import re
import sys

import click

from btcpay.bitcoin.descriptor import MAX_CHARS, Descriptor
from btcpay.cli.context import Shell, answering, plain, say
from btcpay.cli.merchant.login import login, logout, sessions
from btcpay.cli.merchant.preferences import brand, currency, mail, timezone, way_back
from btcpay.merchants.account import (
    ACCOUNT_DEPTH,
    SCRIPT_TYPES,
    are_seed_words,
    derive,
    parse_account,
    stored_account,
)
from btcpay.merchants.merchants import add_merchant, gap_of_merchant, refuse_taken, require_name
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network
from btcpay.values.times import utc_now
from storage.queries import merchants
from storage.statement import as_dict

EXAMPLE = re.compile(r"[xyztuv]pub\w{0,4}(\.{3}|\u2026)")
MERCHANT_COLUMNS = "id name script_type next_index created_at"
KEY_OPTION = ("--xpub", "--descriptor", "xpub")  # one option with two names
KEY_SHOWN = 8  # last characters of a key; the first ones are its place in the tree


@click.group()
def merchant() -> None:
    """Merchants and the account keys that their addresses come from."""


for command in (brand, currency, login, logout, mail, sessions, timezone, way_back):
    merchant.add_command(command)


# Words that nobody asked for may be seed words: no message of click's may repeat them.
@merchant.command("add", context_settings={"allow_extra_args": True})
@click.argument("name")
@click.option(
    *KEY_OPTION,
    required=True,
    metavar="KEY",
    callback=lambda _context, _option, text: text.encode(errors="replace").decode(),
    help="The account's extended public key or descriptor; - to read it from standard input.",
)
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
@click.option("--yes", is_flag=True, help="Do not ask whether the addresses are right.")
@answering
def merchant_add(shell: Shell, name: str, xpub: str, script: str | None, yes: bool) -> None:
    """Add a merchant with its wallet's account key or descriptor."""
    network = shell.settings.network
    account = parse_account(key_of(xpub, click.get_current_context().args), network, script)
    require_name(name)
    refuse_taken(shell.db, account)  # before anybody compares addresses in vain
    first = show_first_addresses(account, network)
    depth = account.keys[0].key.depth
    if depth != ACCOUNT_DEPTH and not account.is_multi:
        say(f"Note: this key has depth {depth}; an account key (BIP44) has depth 3.")
    try:
        agreed = yes or click.confirm("Does the wallet show the same?", err=True)
    except click.Abort:
        say("")  # the question's line
        message = "nothing was added: no answer came; add --yes, or a second line y"
        raise CommandError(message) from None
    if not agreed:
        raise CommandError("nothing was added")
    row = add_merchant(shell.db, name, account, utc_now())
    added = as_dict(row) | {"script_type": account.script_type}
    shell.answer(plain(added, MERCHANT_COLUMNS) | {"addresses": first}, f"added {name}")


def show_first_addresses(account: Descriptor, network: Network) -> list[str]:
    """Shows the first three addresses, to compare with the wallet's, and the signers of several."""
    if account.is_multi:
        say(f"To spend, {account.threshold} of these {len(account.keys)} sign:")
        for key in account.keys:
            say(f"  {key.text[:4]}...{key.text[-KEY_SHOWN:]} {key.origin}".rstrip())
    if any(key.steps[-1:] == (1,) for key in account.keys):
        say("Note: /1/* is for change (BIP44): the wallet's own change would pay invoices.")
    first = [derive(str(account), index, network) for index in range(3)]
    say("The first three receiving addresses; compare them with the wallet:")
    for address in first:
        say(f"  {address}")
    return first


def key_of(xpub: str, others: list[str]) -> str:
    """The key as given, or for `-` the first line of standard input; the next answers the question.

    Raises CommandError for no key, and for README's example.
    """
    if others and not are_seed_words(" ".join([xpub, *others])):
        raise click.UsageError("there are more words than MERCHANT and KEY: quotes may be missing")
    key = " ".join([xpub, *others]).strip()
    if key == "-":
        if sys.stdin.isatty():
            say("Paste the account's extended PUBLIC key, or its descriptor:")
        key = sys.stdin.readline(MAX_CHARS).strip()
    if not key:
        raise CommandError("no key was given")
    if EXAMPLE.fullmatch(key):
        raise CommandError(f"{key} is the example: use your wallet's key")
    return key


@merchant.command("list")
@answering
def merchant_list(shell: Shell) -> None:
    """All merchants: next address, highest paid one, gap limits needed and set in the wallet."""
    rows = []
    for row in shell.db.rows(merchants.ALL):
        gap, script_type = (
            gap_of_merchant(shell.db, row),
            stored_account(row.descriptor).script_type,
        )
        found = {"highest_paid": gap.highest_paid, "gap_limit": gap.limit}
        rows.append(as_dict(row) | found | {"script_type": script_type})
    shell.show(rows, f"{MERCHANT_COLUMNS} highest_paid gap_limit wallet_gap_limit")
