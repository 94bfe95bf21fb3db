"""The coins of the payer's wallet, and the selection of coins for a payment."""

from collections.abc import Iterable
from typing import NamedTuple

from btcpay.bitcoin.tx import Outpoint
from btcpay.sandbox.errors import BadRequest


class Spendable(NamedTuple):
    """A coin of the wallet.

    `is_waiting` is True while the transaction that created the coin is unconfirmed.
    """

    outpoint: Outpoint
    value_sats: int
    is_waiting: bool


def choose(coins: Iterable[Spendable], needed_sats: int) -> list[Spendable]:
    """Returns the first coins that together have at least `needed_sats`.

    Raises BadRequest if all coins together have less.
    """
    selection: list[Spendable] = []
    for coin in coins:
        selection.append(coin)
        if sum_sats(selection) >= needed_sats:
            return selection
    raise BadRequest(
        f"the sandbox wallet has {sum_sats(selection)} sat to spend, not {needed_sats};"
        " mine some blocks"
    )


def sum_sats(coins: Iterable[Spendable]) -> int:
    return sum(coin.value_sats for coin in coins)
