"""`wallet`: what a wallet needs to see every address that was given out, and is said to have."""

import click
import orjson

from btcpay.cli.context import Shell, answer_json, as_json, with_shell
from btcpay.networks import Network
from btcpay.wallet.account import derive, parse_account
from btcpay.wallet.descriptor import receiving
from btcpay.wallet.gap_limit import MARGIN, gap_of_merchant
from btcpay.wallet.merchants import find_merchant
from storage.database import Row
from storage.queries import merchants

MS_PER_S = 1000
MOST = 1_000_000  # Bitcoin Core refuses a longer range


@click.group()
def wallet() -> None:
    """What a merchant's wallet needs to know."""


@wallet.command("export")
@click.argument("merchant")
@click.option(
    "--count",
    type=click.IntRange(1, MOST),
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
        listed = [derive(row["xpub"], row["script_type"], index, network) for index in indexes]
        answer_json(listed) if as_json else click.echo("\n".join(listed))
        return
    request = _request(row, network, indexes[-MOST:], fingerprint)
    # One line, so that the shell hands it over as one word; --json for whoever reads it.
    answer_json([request]) if as_json else click.echo(orjson.dumps([request]))


def _request(row: Row, network: Network, indexes: range, fingerprint: str | None) -> Row:
    """One request of importdescriptors: addresses to watch, none to hand out.

    `timestamp` is when the merchant was added, in unix seconds: no address was paid before.
    """
    account = parse_account(row["xpub"], network, row["script_type"])
    lowered = None if fingerprint is None else fingerprint.lower()
    return {
        "desc": receiving(account, network, lowered),
        "active": False,
        "range": [indexes[0], indexes[-1]],
        "timestamp": row["created_at"] // MS_PER_S,
        "internal": False,
    }


@wallet.command("gap")
@click.argument("merchant")
@click.argument("limit", type=click.IntRange(1, MOST), required=False)
@as_json
@with_shell
def wallet_gap(shell: Shell, merchant: str, limit: int | None, as_json: bool) -> None:
    """Say which gap limit the wallet has now; without LIMIT, what was said last.

    It is 20 until you say otherwise. `btcpay doctor` warns when three quarters of it are used.
    """
    row = find_merchant(shell.db, merchant)
    if limit is not None:
        shell.db.run(merchants.SAY_GAP, id=row["id"], wallet_gap_limit=limit)
    said = limit or row["wallet_gap_limit"]
    needed = gap_of_merchant(shell.db, row).limit
    if as_json:
        answer_json({"needed": needed, "said": said})
    else:
        click.echo(f"the wallet needs a gap limit of {needed}; its own is said to be {said}")


COMMANDS = (wallet,)
