"""A newer checkpoint for the next release, which every explorer that is set has."""

from collections.abc import Sequence

from btcpay.chain.explorers.esplora import Esplora
from btcpay.values.errors import CommandError, FetchError
from btcpay.values.networks import Checkpoint

DEPTH = 2016  # blocks below the lowest tip: a fortnight, which nobody ever replaced on mainnet


def newest_checkpoint(explorers: Sequence[Esplora]) -> Checkpoint:
    """Raises CommandError unless all answer, alike, on a chain with the checkpoint of today."""
    try:
        for one in explorers:
            one.require_checkpoint()
        height = min(one.tip_height() for one in explorers) - DEPTH
        if height < 0:
            raise CommandError(f"the chain has no {DEPTH} blocks yet")
        said = [one.block_hash(height) for one in explorers]
    except FetchError as error:
        raise CommandError(f"an explorer cannot say: {error}") from error
    if len(set(said)) > 1:
        pairs = zip(explorers, said, strict=True)
        shown = ", ".join(f"{one.host} has {hash}" for one, hash in pairs)
        raise CommandError(f"they differ at block {height}: {shown}")
    return Checkpoint(height, said[0])
