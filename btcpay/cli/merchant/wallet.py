"""`wallet`: descriptor, addresses and gap limit, by which a wallet sees every payment."""

import click
import orjson

from btcpay.cli.context import Shell, answering, json_lines
from btcpay.merchants.account import MOST_IN_RANGE, derive, import_request
from btcpay.merchants.merchants import MARGIN, find_merchant, gap_of_merchant
from storage.queries import merchants
from storage.statement import changed

A_COUNT = click.IntRange(1, MOST_IN_RANGE)


@click.group()
def wallet() -> None:
    """The facts that a merchant's wallet needs."""


@wallet.command("export")
@click.argument("merchant")
@click.option("--count", type=A_COUNT, help=f"[default: all given out, and {MARGIN} more]")
@click.option("--addresses", is_flag=True, help="A plain list of addresses instead.")
@click.option("--fingerprint", metavar="HEX", help="The master key's, for signing devices.")
@answering
def wallet_export(
    shell: Shell, merchant: str, count: int | None, addresses: bool, fingerprint: str | None
) -> None:
    """Write the descriptor for Bitcoin Core's importdescriptors, with its range.

    For a wallet without private keys:
    bitcoin-cli -rpcwallet=NAME importdescriptors "$(btcpay wallet export MERCHANT)".
    """
    row, network = find_merchant(shell.db, merchant), shell.settings.network
    indexes = range(count) if count else range(row.next_index + MARGIN + 1)
    if addresses:
        found = (derive(row.descriptor, index, network) for index in indexes)
        for line in json_lines(found) if shell.as_json else (f"{address}\n" for address in found):
            click.echo(line, nl=False)
        return
    request = import_request(row, indexes[-MOST_IN_RANGE:], fingerprint)
    # One line, so that the shell passes it on as one word.
    shell.answer([request], orjson.dumps([request]).decode())


@wallet.command("gap")
@click.argument("merchant")
@click.argument("limit", type=A_COUNT, required=False)
@answering
def wallet_gap(shell: Shell, merchant: str, limit: int | None) -> None:
    """Note the gap limit that the wallet has now; without LIMIT, show the last one noted.

    It is 20 until you set it. `btcpay doctor` warns when three quarters of it are used.
    """
    row = find_merchant(shell.db, merchant)
    if limit is not None:
        shell.db.run(merchants.SAY_GAP, id=row.id, wallet_gap_limit=limit)
        row = changed(row, wallet_gap_limit=limit)
    needed, said = gap_of_merchant(shell.db, row).limit, row.wallet_gap_limit
    shell.answer(
        {"needed": needed, "said": said},
        f"the wallet needs a gap limit of {needed}; it is taken to have {said}",
    )
