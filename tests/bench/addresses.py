"""What a new address costs in one thread, and what the first one costs once."""

import time

from accounts import ACCOUNTS

from btcpay.bitcoin.secp256k1 import G
from btcpay.merchants.account import derive
from btcpay.values.networks import NETWORKS

ROUNDS, PER_ROUND = 20, 25


def table_ms() -> float:
    """Processor time of the first sum in a process, which makes the curve's table."""
    start_s = time.thread_time()
    G.add(1)
    return (time.thread_time() - start_s) * 1000


def address_ms(descriptor: str) -> float:
    """Processor time of an address with a new index, in the quietest round."""
    rounds_s = []
    for number in range(ROUNDS):
        start_s = time.thread_time()
        for index in range(PER_ROUND):
            derive(descriptor, number * PER_ROUND + index, NETWORKS["regtest"])
        rounds_s.append((time.thread_time() - start_s) / PER_ROUND)
    return min(rounds_s) * 1000


def addresses_ms() -> dict[str, float]:
    return {name: address_ms(descriptor) for name, (descriptor, _) in ACCOUNTS.items()}
