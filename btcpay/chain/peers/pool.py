"""The peers of a run: asked all at once, or one after another."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from btcpay.chain.peers import book
from btcpay.chain.peers.peer import Peer
from btcpay.chain.pool import Place, Pool
from btcpay.settings.settings import Settings
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import AUTO, Network
from storage.database import Database


class Peers(Pool[Peer]):
    """`after` is called at the end of each question's thread; `liars` have shown what is not so."""

    most_at_once = 4  # blocks of 4 MB are held, each with what is read from it
    announces = True

    def __init__(
        self,
        network: Network,
        places: Sequence[str],
        after: Callable[[], None],
        pause: Callable[[float], None] = time.sleep,
        proxy: str = "",
    ) -> None:
        super().__init__(
            lambda skew: [Peer(network, place, skew.on_time, proxy) for place in places],
            after,
            pause,
        )
        self.liars: set[Peer] = set()

    def _may_pass(self, place: Place[Peer], error: Exception) -> bool:
        if isinstance(error, ProofFailed):
            self.liars.add(place.one)
        return super()._may_pass(place, error)

    def close(self) -> None:
        for peer in self.all:
            peer.close()

    def note(self, db: Database, settings: Settings, now: datetime) -> None:
        """Who was good, and who is left for a day."""
        is_online = any(peer.has_answered for peer in self.all)
        is_auto = settings.peers == (AUTO,)
        for peer in self.all:
            is_silent = is_auto and is_online and peer.calls and not peer.has_answered
            if peer in self.liars or peer.has_wasted_its_time or is_silent:
                book.leave(db, peer.host, now)
            elif peer.has_answered:
                book.note_good(db, peer.host, peer.shown_height, now)
