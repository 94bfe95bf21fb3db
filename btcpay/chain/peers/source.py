"""Nodes of the network as a kind of source."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from btcpay.chain.peers import book
from btcpay.chain.peers.listener import NEEDED, Listener
from btcpay.chain.peers.peer import Peer
from btcpay.chain.pool import Place, Pool
from btcpay.settings.settings import Settings
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import AUTO
from storage.database import Database


class Peers(Pool[Peer]):
    """`liars`: peers that have shown something false in this run."""

    most_at_once = 4  # blocks of 4 MB are held, each with its parsed parts
    lag = timedelta(minutes=1)  # an explorer has the peers' announcements, too, but later

    def __init__(
        self,
        settings: Settings,
        db: Database,
        now: Callable[[], datetime],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        network, proxy = settings.network, settings.proxy
        places = book.chosen(db, settings, now())
        super().__init__(
            lambda skew: [Peer(network, place, skew.on_time, proxy) for place in places],
            db.close,
            pause,
        )
        if settings.peers == (AUTO,):
            self.needed = NEEDED
        self.liars: set[Peer] = set()

    def _may_pass(self, place: Place[Peer], error: Exception) -> bool:
        if isinstance(error, ProofFailed):
            self.liars.add(place.one)
        return super()._may_pass(place, error)

    def close(self) -> None:
        for peer in self.all:
            peer.close()

    def note(self, db: Database, settings: Settings, now: datetime) -> None:
        is_online = any(peer.has_answered for peer in self.all)
        is_auto = settings.peers == (AUTO,)
        for peer in self.all:
            is_silent = is_auto and is_online and peer.has_failed and not peer.has_answered
            if peer in self.liars or peer.has_wasted_its_time or is_silent:
                book.leave(db, peer.host, now)
            elif peer.has_answered:
                book.note_good(db, peer.host, peer.shown_height, now)
        if is_auto:
            book.forget(db, now)


def source(settings: Settings, db: Database, now: Callable[[], datetime]) -> Peers | None:
    return Peers(settings, db, now) if settings.peers else None


def listener(settings: Settings, db: Database, now: Callable[[], datetime]) -> Listener | None:
    if not settings.peers:
        return None

    def choose() -> list[str]:
        try:
            return book.chosen(db, settings, now())
        finally:
            db.close()  # that of the listener's thread

    needed = NEEDED if settings.peers == (AUTO,) else 1
    return Listener(settings.network, choose, now, settings.proxy, needed)
