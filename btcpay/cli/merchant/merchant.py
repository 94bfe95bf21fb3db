"""`merchant`: the merchants and their account keys; `wallet`: the facts that their wallets need."""

import sys
from functools import partial
from typing import Any

import click
import orjson

from btcpay.bitcoin.descriptor import MAX_CHARS, Descriptor
from btcpay.check.beginning import begin_chain
from btcpay.cli.context import (
    Shell,
    json_lines,
    plain,
    say,
    with_json_shell,
    write_data,
)
from btcpay.cli.merchant.access import login, logout, sessions
from btcpay.cli.merchant.preferences import brand, currency, mail, timezone, way_back
from btcpay.merchants.account import (
    MOST_IN_RANGE,
    SCRIPT_TYPES,
    are_seed_words,
    derive,
    import_request,
    parse_account,
    stored_account,
)
from btcpay.merchants.merchants import (
    MARGIN,
    add_merchant,
    checked_name,
    find_merchant,
    gap_of_merchant,
    refuse_taken,
)
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network
from btcpay.values.times import utc_now
from storage.queries import merchants
from storage.statement import as_dict, changed

MERCHANT_COLUMNS = "id name script_type next_index created_at"
KEY_NAMES = ("--xpub", "--descriptor", "xpub")  # one option with two names
KEY_SHOWN = 8  # last characters of a key; its first ones say its place in the tree


def _one_key(_context: Any, _option: Any, given: tuple[str, ...]) -> str | None:
    if len(given) > 1:
        raise click.UsageError("give one key: either --xpub or --descriptor, once")
    if given:
        return given[0].encode(errors="replace").decode()
    return None


key_option = partial(
    click.option, *KEY_NAMES, metavar="KEY", multiple=True, callback=_one_key
)
merchant = click.Group(
    "merchant",
    commands=[brand, currency, login, logout, mail, sessions, timezone, way_back],
    help="Merchants and the account keys that their addresses come from.",
)


# Unexpected words may be seed words, so none of click's messages may repeat them.
@merchant.command("add", context_settings={"allow_extra_args": True})
@click.argument("name")
@key_option(
    required=True,
    help="The account's extended public key or descriptor; - to read it from standard input.",
)
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
@click.option("--yes", is_flag=True, help="Do not ask whether the addresses are right.")
@with_json_shell
def merchant_add(
    shell: Shell, name: str, xpub: str, script: str | None, yes: bool
) -> None:
    """Add a merchant with its wallet's account key or descriptor."""
    network = shell.settings.network
    account = parse_account(
        key_of(xpub, click.get_current_context().args), network, script
    )
    checked_name(name)
    refuse_taken(shell.db, account)  # before anybody compares addresses in vain
    first = show_first_addresses(account, network)
    if not (yes or click.confirm("Does the wallet show the same?", err=True)):
        raise CommandError("nothing was added")
    row = add_merchant(shell.db, name, account, shell.now)
    begin_chain(shell.db, shell.settings, utc_now)
    added = as_dict(row) | {"script_type": account.script_type}
    shell.answer(plain(added, MERCHANT_COLUMNS) | {"addresses": first}, f"added {name}")


def show_first_addresses(account: Descriptor, network: Network) -> list[str]:
    """Shows the first three addresses, to compare with the wallet's, and the signers of several."""
    if account.is_multi:
        say(f"To spend, {account.threshold} of these {len(account.keys)} sign:")
        for key in account.keys:
            say(f"  {key.text[:4]}...{key.text[-KEY_SHOWN:]} {key.origin}".rstrip())
    if any(key.steps[-1:] == (1,) for key in account.keys):
        say(
            "Note: /1/* is for change (BIP44): the wallet's own change would pay invoices."
        )
    first = [derive(str(account), index, network) for index in range(3)]
    say("The first three receiving addresses; compare them with the wallet:")
    for address in first:
        say(f"  {address}")
    return first


def key_of(xpub: str, others: list[str]) -> str:
    """The key as given, or for `-` a line of standard input. Raises CommandError for none."""
    if others and not are_seed_words(" ".join([xpub, *others])):
        raise click.UsageError(
            "there are more words than MERCHANT and KEY: quotes may be missing"
        )
    key = " ".join([xpub, *others]).strip()
    if key == "-":
        if sys.stdin.isatty():
            say("Paste the account's extended PUBLIC key, or its descriptor:")
        key = sys.stdin.readline(MAX_CHARS).strip()
    if not key:
        raise CommandError("no key was given")
    return key


@merchant.command("list")
@with_json_shell
def merchant_list(shell: Shell) -> None:
    """All merchants: next address, highest paid one, gap limits needed and set in the wallet."""
    rows = []
    for row in shell.db.rows(merchants.ALL):
        gap = gap_of_merchant(shell.db, row)
        found = as_dict(row) | {
            "highest_paid": gap.highest_paid,
            "gap_limit": gap.limit,
        }
        rows.append(found | {"script_type": stored_account(row.descriptor).script_type})
    shell.show(rows, f"{MERCHANT_COLUMNS} highest_paid gap_limit wallet_gap_limit")


A_COUNT = click.IntRange(1, MOST_IN_RANGE)
wallet = click.Group("wallet", help="The facts that a merchant's wallet needs.")


@wallet.command("export")
@click.argument("merchant")
@click.option(
    "--count", type=A_COUNT, help=f"[default: all given out, and {MARGIN} more]"
)
@click.option("--addresses", is_flag=True, help="A plain list of addresses instead.")
@with_json_shell
def wallet_export(
    shell: Shell, merchant: str, count: int | None, addresses: bool
) -> None:
    """Write the descriptor for Bitcoin Core's importdescriptors, with its range.

    For a wallet without private keys:
    bitcoin-cli -rpcwallet=NAME importdescriptors "$(blocktill wallet export MERCHANT)".
    """
    row = find_merchant(shell.db, merchant)
    network = shell.settings.network
    indexes = range(count) if count else range(row.next_index + MARGIN + 1)
    if addresses:
        found = (derive(row.descriptor, index, network) for index in indexes)
        for line in (
            json_lines(found)
            if shell.as_json
            else (f"{address}\n" for address in found)
        ):
            write_data(line.encode())
        return
    request = import_request(row, indexes[-MOST_IN_RANGE:])
    # One line, so that the shell passes it on as one word.
    shell.answer([request], orjson.dumps([request]).decode())


@wallet.command("gap")
@click.argument("merchant")
@click.argument("limit", type=A_COUNT, required=False)
@with_json_shell
def wallet_gap(shell: Shell, merchant: str, limit: int | None) -> None:
    """Note the gap limit that the wallet has now; without LIMIT, show the last one noted.

    It is 20 until you set it. `blocktill doctor` warns when three quarters of it are used.
    """
    row = find_merchant(shell.db, merchant)
    if limit is not None:
        shell.db.run(merchants.SAY_GAP, id=row.id, wallet_gap_limit=limit)
        row = changed(row, wallet_gap_limit=limit)
    needed = gap_of_merchant(shell.db, row).limit
    said = row.wallet_gap_limit
    shell.answer(
        {"needed": needed, "said": said},
        f"the wallet needs a gap limit of {needed}; it is taken to have {said}",
    )
