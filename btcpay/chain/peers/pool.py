"""The peers of the settings, opened here alone: asked all at once, or one after another."""

import time
from collections.abc import Callable, Sequence

from btcpay.chain.peers.peer import Peer
from btcpay.chain.pool import Pool
from btcpay.settings.settings import Settings
from btcpay.values.networks import Network
from storage.database import Database


class Peers(Pool[Peer]):
    """`after` is called at the end of each question's thread."""

    def __init__(
        self,
        network: Network,
        places: Sequence[str],
        after: Callable[[], None],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(
            lambda skew: [Peer(network, place, skew.on_time) for place in places], after, pause
        )

    def close(self) -> None:
        for peer in self.all:
            peer.close()


def open_peers(settings: Settings, db: Database) -> Peers | None:
    """None where no peer is set."""
    return Peers(settings.network, settings.peers, db.close) if settings.peers else None
