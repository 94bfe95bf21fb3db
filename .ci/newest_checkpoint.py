"""Prints a newer checkpoint for the next release: a deep block that every explorer has.

The settings name the network and its explorers (BLOCKTILL_NETWORK,
BLOCKTILL_EXPLORERS).
"""

import os
import sys
from collections.abc import Sequence

from btcpay.chain.explorers.pool import open_explorers
from btcpay.chain.sources import Explorer
from btcpay.settings.settings import read_or_exit
from btcpay.values.errors import FetchError
from btcpay.values.networks import BlockId, Network

DEPTH = 2016  # blocks below the lowest tip: two weeks; mainnet never had such a reorganisation


def newest_checkpoint(network: Network, explorers: Sequence[Explorer]) -> BlockId:
    """Returns the block that is DEPTH blocks below the lowest tip of the explorers.

    Exits unless all explorers agree on it, and all have the present checkpoint.
    """
    try:
        tips = [explorer.require_chain(0) for explorer in explorers]
        height = min(tip_height for tip_height, _ in tips) - DEPTH
        if height < 0:
            sys.exit(f"the chain has no {DEPTH} blocks yet")
        _require_checkpoint(network.checkpoint, explorers)
        hashes = [explorer.block_hash(height) for explorer in explorers]
    except FetchError as error:
        sys.exit(f"an explorer cannot say: {error}")
    if len(set(hashes)) > 1:
        phrases = []
        for explorer, block_hash in zip(explorers, hashes, strict=True):
            phrases.append(f"{explorer.host} has {block_hash}")
        sys.exit(f"they differ at block {height}: {', '.join(phrases)}")
    return BlockId(height, hashes[0])


def _require_checkpoint(point: BlockId | None, explorers: Sequence[Explorer]) -> None:
    """Exits unless all explorers have this block. Raises FetchError."""
    if point is None:
        return
    for explorer in explorers:
        if explorer.block_hash(point.height) != point.hash:
            sys.exit(f"they do not all have the checkpoint {point.height}")


if __name__ == "__main__":
    settings = read_or_exit(os.environ)
    explorers = open_explorers(settings, None).all
    newest = newest_checkpoint(settings.network, explorers)
    print(newest.height, newest.hash)
