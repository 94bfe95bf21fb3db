"""Prints a newer checkpoint for the next release: a block that every explorer has, deep enough.

The network and its explorers are those of the settings (BLOCKTILL_NETWORK, BLOCKTILL_EXPLORERS).
"""

import os
import sys
from collections.abc import Sequence

from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.sources import Explorer
from btcpay.settings.settings import read_or_exit
from btcpay.values.errors import FetchError
from btcpay.values.networks import Known, Network

DEPTH = 2016  # blocks below the lowest tip: a fortnight, which nobody ever replaced on mainnet


def newest_checkpoint(network: Network, explorers: Sequence[Explorer]) -> Known:
    """Exits unless all answer, alike, on a chain with the checkpoint of today."""
    point = network.checkpoint
    try:
        height = min(one.require_chain(0)[0] for one in explorers) - DEPTH
        if height < 0:
            sys.exit(f"the chain has no {DEPTH} blocks yet")
        if point and any(
            one.block_hash(point.height) != point.hash for one in explorers
        ):
            sys.exit(f"they do not all have the checkpoint {point.height}")
        said = [one.block_hash(height) for one in explorers]
    except FetchError as error:
        sys.exit(f"an explorer cannot say: {error}")
    if len(set(said)) > 1:
        pairs = zip(explorers, said, strict=True)
        shown = ", ".join(f"{one.host} has {hash}" for one, hash in pairs)
        sys.exit(f"they differ at block {height}: {shown}")
    return Known(height, said[0])


if __name__ == "__main__":
    settings = read_or_exit(os.environ)
    found = newest_checkpoint(settings.network, open_explorers(settings, None).all)
    print(found.height, found.hash)
