"""Command `wallet`: exports descriptors and addresses, and stores a wallet's gap limit."""

import click
import orjson

from btcpay.cli.output import json_lines, write_data
from btcpay.cli.shell import Shell, with_json_shell
from btcpay.merchants.account import MOST_IN_RANGE, derive, import_request
from btcpay.merchants.merchants import MARGIN, find_merchant, gap_of_merchant
from storage.queries import merchants
from storage.statement import replace

A_COUNT = click.IntRange(1, MOST_IN_RANGE)
wallet = click.Group("wallet", help="The facts that a merchant's wallet needs.")


@wallet.command("export")
@click.argument("merchant")
@click.option(
    "--count", type=A_COUNT, help=f"[default: all given out, and {MARGIN} more]"
)
@click.option(
    "--addresses",
    "as_addresses",
    is_flag=True,
    help="A plain list of addresses instead.",
)
@with_json_shell
def wallet_export(
    shell: Shell,
    merchant: str,
    count: int | None,
    as_addresses: bool,
) -> None:
    """Write the descriptor for Bitcoin Core's importdescriptors, with its range.

    For a wallet without private keys:
    bitcoin-cli -rpcwallet=NAME importdescriptors "$(blocktill wallet export MERCHANT)".
    """
    row = find_merchant(shell.db, merchant)
    indexes = range(count or row.next_index + MARGIN + 1)
    if as_addresses:
        _write_addresses(shell, row.descriptor, indexes)
        return
    request = import_request(row, indexes[-MOST_IN_RANGE:])
    # One line, for the command substitution in the help text.
    shell.answer([request], orjson.dumps([request]).decode())


def _write_addresses(shell: Shell, descriptor: str, indexes: range) -> None:
    """Prints each address as soon as it is derived, since there may be a million."""
    network = shell.settings.network
    addresses = (derive(descriptor, index, network) for index in indexes)
    if shell.as_json:
        for line in json_lines(addresses):
            write_data(line.encode())
        return
    for address in addresses:
        write_data(f"{address}\n".encode())


@wallet.command("gap")
@click.argument("merchant")
@click.argument("limit", type=A_COUNT, required=False)
@with_json_shell
def wallet_gap(shell: Shell, merchant: str, limit: int | None) -> None:
    """Note the gap limit that is set in the wallet; without LIMIT, show the noted one.

    Until you note one, it is 20. `blocktill doctor` warns when three quarters of it are used.
    """
    row = find_merchant(shell.db, merchant)
    if limit is not None:
        shell.db.run(merchants.SET_GAP_LIMIT, id=row.id, wallet_gap_limit=limit)
        row = replace(row, wallet_gap_limit=limit)
    needed_limit = gap_of_merchant(shell.db, row).limit
    noted_limit = row.wallet_gap_limit
    shell.answer(
        {"needed": needed_limit, "said": noted_limit},
        f"the wallet needs a gap limit of {needed_limit}; it is taken to have {noted_limit}",
    )
