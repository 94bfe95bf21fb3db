"""Nodes of the network as a kind of source, and the book of them.

In it are those that a run asks, those that were good, and those that rest a day.
"""

import ipaddress
import logging
import random
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from btcpay import hooks
from btcpay.chain.pool import Pool, PoolEntry
from btcpay.http.deadline import run_in_thread, run_within
from btcpay.parts.peers.listener import NEEDED, PeerListener
from btcpay.parts.peers.peer import Peer
from btcpay.settings.settings import Settings
from btcpay.values.errors import ProofFailed, TimedOut
from btcpay.values.hosts import host_and_port
from btcpay.values.networks import AUTO
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import blocks, sources

log = logging.getLogger(__name__)

MOST = 8  # with `auto`; Bitcoin Core has as many that relay
FRESH = (
    2  # of them are strangers, so that nobody who was good once can keep every place
)
QUIET = timedelta(minutes=30)  # without a block, after which all are strangers
LEFT_FOR = timedelta(days=1)
LOOKUP_TIMEOUT_S = 5.0
MOST_OF_SEED = 40  # addresses of one seed, so that naming more gives no greater say
LookUp = Callable[[str, int], Sequence[str]]


def resolve_seed(name: str, port: int) -> list[str]:
    """Places (host:port) that a DNS seed names; none when it does not answer."""
    try:
        found = run_within(
            LOOKUP_TIMEOUT_S,
            lambda: socket.getaddrinfo(name, port, type=socket.SOCK_STREAM),
        )
    except (OSError, UnicodeError, TimedOut) as error:
        log.warning("DNS seed %s: %s", name, error)
        return []
    hosts = {str(address[0]) for *_, address in found}
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts]


def choose_peers(
    db: Database, settings: Settings, now: datetime, look_up: LookUp = resolve_seed
) -> list[str]:
    """The peers of a run: those of the settings, or with `auto` eight of different networks.

    Two of these come from the seeds, all of them when no block has come for half an hour. Peers
    that are left alone are not among them, unless there are no others.
    """
    rows = db.rows(sources.PEERS)
    left = {row.place for row in rows if (row.left_until or 0) > to_ms(now)}
    if settings.peers != (AUTO,):
        return [one for one in settings.peers if one not in left] or list(
            settings.peers
        )
    network = settings.network
    if (
        settings.proxy
    ):  # which looks the names up: each leads to a node of that seed's choice
        seeds = [f"{name}:{network.port}" for name in network.seeds]
        return [one for one in seeds if one not in left] or seeds
    top = db.row(blocks.TOP)
    is_quiet = not top or to_ms(now - QUIET) > top.mined_at
    good = [row.place for row in rows if row.good_at and row.place not in left]
    coming = [
        run_in_thread(partial(look_up, name, network.port)) for name in network.seeds
    ]
    named = [
        one
        for seed in coming
        for one in seed.result()[:MOST_OF_SEED]
        if one not in left
    ]
    for places in (good, named):
        random.shuffle(places)
    return one_per_network(
        [*([] if is_quiet else one_per_network(good)[: MOST - FRESH]), *named, *good]
    )


def one_per_network(places: Iterable[str]) -> list[str]:
    """The first of each network, so that an owner of many addresses is not many peers."""
    found: dict[str, str] = {}
    for place in places:
        found.setdefault(network_of(place), place)
    return list(found.values())[:MOST]


def network_of(place: str) -> str:
    """The /16 of an IPv4 address, the /32 of an IPv6 one; of a name all of it."""
    host, _ = host_and_port(place)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    address = getattr(address, "ipv4_mapped", None) or address
    return str(
        ipaddress.ip_network(
            (address, 16 if address.version == 4 else 32), strict=False
        )
    )


def note_good_peer(db: Database, place: str, height: int | None, now: datetime) -> None:
    db.run(sources.PEER_GOOD, place=place, height=height, good_at=to_ms(now))


def ban_peer(db: Database, place: str, now: datetime) -> None:
    db.run(sources.LEAVE_PEER, place=place, left_until=to_ms(now + LEFT_FOR))


class Peers(Pool[Peer]):
    """`liars`: peers that have shown something false in this run."""

    max_concurrent = 4  # blocks of 4 MB are held, each with its parsed parts
    lag = timedelta(
        minutes=1
    )  # an explorer has the peers' announcements, too, but later

    def __init__(
        self,
        settings: Settings,
        db: Database,
        now: Callable[[], datetime],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        network = settings.network
        proxy = settings.proxy
        places = choose_peers(db, settings, now())
        super().__init__(
            lambda skew: [
                Peer(network, place, skew.on_time, proxy) for place in places
            ],
            db.close,
            pause,
        )
        if settings.peers == (AUTO,):
            self.needed = NEEDED
        self.liars: set[Peer] = set()

    def _may_pass(self, place: PoolEntry[Peer], error: Exception) -> bool:
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
            is_silent = (
                is_auto and is_online and peer.has_failed and not peer.has_answered
            )
            if peer in self.liars or peer.has_wasted_its_time or is_silent:
                ban_peer(db, peer.host, now)
            elif peer.has_answered:
                note_good_peer(db, peer.host, peer.shown_height, now)
        if (
            is_auto
        ):  # all but the eight that were good last, and those that are left alone
            db.run(sources.FORGET_PEERS, now=to_ms(now))


def open_pool(
    settings: Settings, db: Database, now: Callable[[], datetime]
) -> Peers | None:
    if settings.peers:
        return Peers(settings, db, now)
    return None


def open_listener(
    settings: Settings, db: Database, now: Callable[[], datetime]
) -> PeerListener | None:
    if not settings.peers:
        return None

    def choose() -> list[str]:
        try:
            return choose_peers(db, settings, now())
        finally:
            db.close()  # that of the listener's thread

    needed = NEEDED if settings.peers == (AUTO,) else 1
    return PeerListener(settings.network, choose, now, settings.proxy, needed)


HOOK = hooks.Sources(open_pool=open_pool, open_listener=open_listener)
