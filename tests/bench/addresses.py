"""What a new address costs in one thread, and what the first one costs once."""

import time

from btcpay.bitcoin.secp256k1 import G
from btcpay.merchants.account import SCRIPT_TYPES, derive
from btcpay.values.networks import NETWORKS

# BIP32's test vector 1, m/0'.
XPUB = (
    "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9"
    "xv5ski8PX9rL2dZXvgGDnw"
)
ROUNDS, PER_ROUND = 20, 25


def table_ms() -> float:
    """Processor time of the first sum in a process, which makes the curve's table."""
    start_s = time.thread_time()
    G.add(1)
    return (time.thread_time() - start_s) * 1000


def address_ms(script_type: str) -> float:
    """Processor time of an address with a new index, in the quietest round."""
    rounds_s = []
    for number in range(ROUNDS):
        start_s = time.thread_time()
        for index in range(PER_ROUND):
            derive(XPUB, script_type, number * PER_ROUND + index, NETWORKS["mainnet"])
        rounds_s.append((time.thread_time() - start_s) / PER_ROUND)
    return min(rounds_s) * 1000


def addresses_ms() -> dict[str, float]:
    return {script_type: address_ms(script_type) for script_type in SCRIPT_TYPES}
