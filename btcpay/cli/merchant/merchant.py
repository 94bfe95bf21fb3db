"""Command `merchant`: adds and lists merchants."""

import click

from btcpay.bitcoin.descriptor import Descriptor
from btcpay.check.beginning import begin_chain
from btcpay.cli.merchant.access import login, logout, sessions
from btcpay.cli.merchant.account_start import choose_account_start, skip_option
from btcpay.cli.merchant.account_text import (
    choose_account,
    choose_option,
    key_of,
    key_option,
    show_reading,
)
from btcpay.cli.merchant.preferences import brand, currency, mail, return_, timezone
from btcpay.cli.merchant.receipt import receipt
from btcpay.cli.output import json_object, say
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.merchants.account import (
    SCRIPT_TYPES,
    derive,
    stored_account,
)
from btcpay.merchants.merchants import (
    add_merchant,
    checked_name,
    gap_of_merchant,
    refuse_taken,
)
from btcpay.notify.mail.server import has_mail
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network
from btcpay.values.times import utc_now
from storage.queries import merchants
from storage.statement import as_dict

MERCHANT_COLUMNS = "id name script_type next_index created_at"
LIST_COLUMNS = f"{MERCHANT_COLUMNS} highest_paid gap_limit wallet_gap_limit"
# How many of a key's last characters are shown. Its first ones encode its place in the key tree.
KEY_CHARACTERS = 8
FIRST_ADDRESSES = 3  # how many addresses are shown, for comparison with the wallet
NO_MAIL_NOW = (
    "No mail is sent from now on: the mail server in Settings counts only while there is"
    " one merchant. Set BLOCKTILL_SMTP_URL and BLOCKTILL_MAIL_FROM."
)


merchant = click.Group(
    "merchant",
    commands=[
        *(brand, currency, login, logout, mail, receipt),
        *(sessions, timezone, return_),
    ],
    help="Merchants and the account keys that their addresses come from.",
)


# Further words on the command line may be seed words, so click must not repeat them in an error.
@merchant.command("add", context_settings={"allow_extra_args": True})
@click.argument("name")
@key_option(
    required=True,
    help="The account's key, descriptor or wallet file; - to read it from standard input.",
)
@choose_option()
@click.option("--script", type=click.Choice(SCRIPT_TYPES), help="For an xpub or tpub.")
@skip_option()
@click.option("--yes", is_flag=True, help="Do not ask whether the addresses are right.")
@with_json_shell
def merchant_add(
    shell: Shell,
    name: str,
    xpub: str,
    choose: str | None,
    script: str | None,
    skip: int | None,
    yes: bool,
) -> None:
    """Add a merchant with its account: a key, a descriptor, or the wallet's export file."""
    network = shell.settings.network
    key = key_of(xpub, click.get_current_context().args)
    text, chosen = choose_account(key, network, script, choose, asks=not yes)
    account = chosen.descriptor
    name = checked_name(name)
    refuse_taken(shell.db, account)  # before the user compares addresses
    show_reading(text, chosen)
    start = choose_account_start(shell.db, shell.settings, account, skip, asks=not yes)
    addresses = show_first_addresses(account, network, start.index)
    if not yes and not click.confirm("Does the wallet show the same?", err=True):
        raise CommandError("nothing was added")
    # The mail server in a shop's settings counts only while the shop is alone.
    had_mail = has_mail(shell.settings, shell.db)
    row = add_merchant(
        shell.db,
        name,
        account,
        shell.now,
        next_index=start.index,
        used_before=start.used_before,
    )
    if had_mail and not has_mail(shell.settings, shell.db):
        say(NO_MAIL_NOW)
    begin_chain(shell.db, shell.settings, utc_now)
    cells = as_dict(row) | {"script_type": account.script_type}
    answer = json_object(cells, MERCHANT_COLUMNS) | {"addresses": addresses}
    shell.answer(answer, f"added {name}")


def show_first_addresses(
    account: Descriptor, network: Network, start: int = 0
) -> list[str]:
    """Prints and returns the shop's first three addresses, to compare with the wallet.

    `start` is the index of the first of them in the account. For a multisig account,
    also prints the keys, and how many of them must sign.
    """
    if account.is_multi:
        _show_keys(account)
    descriptor = str(account)
    indexes = range(start, start + FIRST_ADDRESSES)
    addresses = [derive(descriptor, index, network) for index in indexes]
    if start:
        say(
            f"The shop's first three addresses, which are numbers {start} to {indexes[-1]} of the"
            " account (from 0); compare them with the wallet:"
        )
    else:
        say("The first three receiving addresses; compare them with the wallet:")
    for address in addresses:
        say(f"  {address}")
    return addresses


def _show_keys(account: Descriptor) -> None:
    """Prints the keys of a multisig account, and how many of them must sign."""
    say(f"To spend, {account.threshold} of these {len(account.keys)} sign:")
    for key in account.keys:
        short_key = f"{key.text[:4]}...{key.text[-KEY_CHARACTERS:]}"
        say(f"  {short_key} {key.origin}".rstrip())


@merchant.command("list")
@with_json_shell
def merchant_list(shell: Shell) -> None:
    """List all merchants: next address, highest paid address, needed and noted gap limit."""
    rows = []
    for row in shell.db.rows(merchants.ALL):
        gap = gap_of_merchant(shell.db, row)
        facts = {
            "highest_paid": gap.highest_paid,
            "gap_limit": gap.limit,
            "script_type": stored_account(row.descriptor).script_type,
        }
        rows.append(as_dict(row) | facts)
    shell.show(rows, LIST_COLUMNS)
