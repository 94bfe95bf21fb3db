"""Makes Bitcoin nodes (peers) a source of blocks for the check."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from btcpay import hooks
from btcpay.chain.pool import Pool, PoolEntry
from btcpay.http.clock_skew import ClockSkew
from btcpay.parts.peers.choice import ban_peer, choose_peers, note_good_peer
from btcpay.parts.peers.listener import QUORUM, PeerListener
from btcpay.parts.peers.peer import Peer
from btcpay.settings.settings import Settings
from btcpay.values.errors import ProofFailed
from btcpay.values.networks import AUTO
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import sources


class Peers(Pool[Peer]):
    """The peers of one run of the check, as a pool of sources.

    `liars` are the peers that have sent false or malformed data in this run.
    """

    max_concurrent = 4  # each holds a block of up to 4 MB and its parsed contents
    # Explorers receive the same announcements, but later.
    lag = timedelta(minutes=1)

    def __init__(
        self,
        settings: Settings,
        db: Database,
        now: Callable[[], datetime],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        places = choose_peers(db, settings, now())

        def open_all(skew: ClockSkew) -> list[Peer]:
            return [
                Peer(settings.network, place, skew.on_time, settings.proxy)
                for place in places
            ]

        super().__init__(open_all, db.close, pause)
        if settings.peers == (AUTO,):
            self.quorum = QUORUM
        self.liars: set[Peer] = set()

    def _note_failure(self, entry: PoolEntry[Peer], error: Exception) -> bool:
        if isinstance(error, ProofFailed):
            self.liars.add(entry.source)
        return super()._note_failure(entry, error)

    def close(self) -> None:
        for peer in self.all:
            peer.close()

    def store_outcomes(self, db: Database, settings: Settings, now: datetime) -> None:
        """Bans peers that lied or never responded, and stores which peers responded.

        A peer is always banned if it lied, or if it used up its time without a response.
        A peer that failed without a response, for example because it could not be
        reached, is banned only with `auto`, and only if another peer has responded:
        otherwise our own connection may be down.
        """
        is_auto = settings.peers == (AUTO,)
        is_online = any(peer.has_answered for peer in self.all)
        # Other peers can be found, and our own connection works.
        are_replaceable = is_auto and is_online
        for peer in self.all:
            is_dead = peer.has_failed and not peer.has_answered
            is_bad = peer in self.liars or peer.has_wasted_its_time
            if is_bad or (is_dead and are_replaceable):
                ban_peer(db, peer.host, now)
            elif peer.has_answered:
                note_good_peer(db, peer.host, peer.shown_height, now)
        if is_auto:
            # Deletes all but banned peers and the eight that were good last.
            db.run(sources.FORGET_PEERS, now=to_ms(now))


def open_pool(
    settings: Settings,
    db: Database,
    now: Callable[[], datetime],
) -> Peers | None:
    if settings.peers:
        return Peers(settings, db, now)
    return None


def open_listener(
    settings: Settings,
    db: Database,
    now: Callable[[], datetime],
) -> PeerListener | None:
    if not settings.peers:
        return None

    def choose() -> list[str]:
        try:
            return choose_peers(db, settings, now())
        finally:
            db.close()  # closes the database connection of the listener's thread

    quorum = 1
    if settings.peers == (AUTO,):
        quorum = QUORUM
    return PeerListener(settings.network, choose, now, settings.proxy, quorum)


HOOK = hooks.Sources(open_pool=open_pool, open_listener=open_listener)
