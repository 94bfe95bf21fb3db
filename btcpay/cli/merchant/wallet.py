"""`wallet`: what a wallet needs to see every address that was given out, and is said to have."""

import click
import orjson

from btcpay.cli.context import Shell, answer_json, answer_lines, as_json, with_shell
from btcpay.merchants.account import derive
from btcpay.merchants.descriptor import MOST_IN_RANGE, import_request
from btcpay.merchants.gap_limit import MARGIN, gap_of_merchant, set_gap_limit
from btcpay.merchants.merchants import find_merchant


@click.group()
def wallet() -> None:
    """What a merchant's wallet needs to know."""


@wallet.command("export")
@click.argument("merchant")
@click.option(
    "--count",
    type=click.IntRange(1, MOST_IN_RANGE),
    help=f"So many addresses (default: those given out, and {MARGIN} more).",
)
@click.option("--addresses", is_flag=True, help="A plain list of addresses instead.")
@click.option("--fingerprint", metavar="HEX", help="The master key's, for signing devices.")
@as_json
@with_shell
def wallet_export(
    shell: Shell,
    merchant: str,
    count: int | None,
    addresses: bool,
    fingerprint: str | None,
    as_json: bool,
) -> None:
    """Write the descriptor for Bitcoin Core's importdescriptors, with its range.

    For a wallet without private keys:
    bitcoin-cli -rpcwallet=NAME importdescriptors "$(btcpay wallet export MERCHANT)".
    """
    row, network = find_merchant(shell.db, merchant), shell.settings.network
    indexes = range(count) if count else range(row["next_index"] + MARGIN + 1)
    if addresses:
        answer_lines(
            (derive(row["xpub"], row["script_type"], index, network) for index in indexes), as_json
        )
        return
    request = import_request(row, network, indexes[-MOST_IN_RANGE:], fingerprint)
    # One line, so that the shell hands it over as one word; --json for whoever reads it.
    answer_json([request]) if as_json else click.echo(orjson.dumps([request]))


@wallet.command("gap")
@click.argument("merchant")
@click.argument("limit", type=click.IntRange(1, MOST_IN_RANGE), required=False)
@as_json
@with_shell
def wallet_gap(shell: Shell, merchant: str, limit: int | None, as_json: bool) -> None:
    """Say which gap limit the wallet has now; without LIMIT, what was said last.

    It is 20 until you say otherwise. `btcpay doctor` warns when three quarters of it are used.
    """
    row = find_merchant(shell.db, merchant)
    if limit is not None:
        row = set_gap_limit(shell.db, row, limit)
    needed, said = gap_of_merchant(shell.db, row).limit, row["wallet_gap_limit"]
    if as_json:
        answer_json({"needed": needed, "said": said})
    else:
        click.echo(f"the wallet needs a gap limit of {needed}; its own is said to be {said}")
