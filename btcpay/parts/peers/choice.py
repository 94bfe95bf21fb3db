"""Chooses the peers for one run of the check, and stores what is known about peers.

It stores which peers have responded, and which are banned. A ban lasts a day.
"""

import ipaddress
import logging
import random
import socket
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime, timedelta
from functools import partial

from btcpay.http.deadline import run_in_thread, run_within
from btcpay.settings.settings import Settings
from btcpay.values.errors import TimedOut
from btcpay.values.hosts import host_and_port
from btcpay.values.networks import AUTO, Network
from btcpay.values.times import to_ms
from storage.database import Database
from storage.queries import blocks, sources

log = logging.getLogger(__name__)

MAX_PEERS = 8  # with `auto`; Bitcoin Core has as many full-relay connections
# The number of peers that come from DNS seeds. Without these, the same peers could be
# chosen for ever once they have responded.
PEERS_FROM_SEEDS = 2
# After this time without a new block, peers from DNS seeds come first.
QUIET = timedelta(minutes=30)
BAN_TIME = timedelta(days=1)
LOOKUP_TIMEOUT_S = 5.0
MAX_OF_SEED = 40  # per seed, so that a seed with more addresses has no more weight
LookUp = Callable[[str, int], Sequence[str]]


def resolve_seed(name: str, port: int) -> list[str]:
    """Returns the peers (host:port) that a DNS seed names; [] if the seed does not reply."""
    look_up = partial(socket.getaddrinfo, name, port, type=socket.SOCK_STREAM)
    try:
        address_infos = run_within(LOOKUP_TIMEOUT_S, look_up)
    except (OSError, UnicodeError, TimedOut) as error:
        log.warning("DNS seed %s: %s", name, error)
        return []
    hosts = set()
    for _family, _type, _protocol, _name, address in address_infos:
        host = address[0]  # the port and, for IPv6, two more numbers follow
        hosts.add(str(host))
    return [_join_port(host, port) for host in hosts]


def _join_port(host: str, port: int) -> str:
    is_ipv6 = ":" in host
    if is_ipv6:
        return f"[{host}]:{port}"
    return f"{host}:{port}"


def choose_peers(
    db: Database,
    settings: Settings,
    now: datetime,
    look_up: LookUp = resolve_seed,
) -> list[str]:
    """Returns the peers (host:port) for one run of the check, without banned peers.

    - If BLOCKTILL_PEERS names peers, returns those. If all of them are banned, returns
      them nevertheless.
    - With `auto` and a proxy, returns the names of the DNS seeds, which the proxy
      resolves. If all of them are banned, returns them nevertheless.
    - With `auto` and no proxy, returns up to 8 peers in different networks. First come up
      to six peers that have responded before, then peers from DNS seeds. If the last
      known block is older than half an hour, peers from DNS seeds come first.
    """
    rows = db.rows(sources.PEERS)
    banned_places = {row.place for row in rows if (row.left_until or 0) > to_ms(now)}
    network = settings.network
    if settings.peers != (AUTO,):
        return _exclude(banned_places, settings.peers) or list(settings.peers)
    if settings.proxy:
        # The proxy resolves a seed's name to the address of one of the seed's nodes.
        seeds = [f"{name}:{network.port}" for name in network.seeds]
        return _exclude(banned_places, seeds) or seeds
    is_quiet = _is_quiet(db, now)
    good = _exclude(banned_places, [row.place for row in rows if row.good_ms])
    from_seeds = _exclude(banned_places, _ask_seeds(network, look_up))
    random.shuffle(good)
    random.shuffle(from_seeds)
    first: list[str] = []
    if not is_quiet:
        first = one_per_network(good)[: MAX_PEERS - PEERS_FROM_SEEDS]
    return one_per_network([*first, *from_seeds, *good])


def _is_quiet(db: Database, now: datetime) -> bool:
    """True if no block is known that was mined within the time QUIET."""
    top = db.get_or_none(blocks.TOP)
    return top is None or top.mined_ms < to_ms(now - QUIET)


def _exclude(banned_places: Set[str], places: Iterable[str]) -> list[str]:
    return [place for place in places if place not in banned_places]


def _ask_seeds(network: Network, look_up: LookUp) -> list[str]:
    """Returns the peers that the network's DNS seeds name. Queries all seeds at once."""
    futures = [
        run_in_thread(partial(look_up, name, network.port)) for name in network.seeds
    ]
    places: list[str] = []
    for future in futures:
        places += future.result()[:MAX_OF_SEED]
    return places


def one_per_network(places: Iterable[str]) -> list[str]:
    """Returns the first peer (host:port) of each network, at most MAX_PEERS peers.

    So somebody who has many addresses in one network cannot provide many of the peers.
    """
    place_by_network: dict[str, str] = {}
    for place in places:
        place_by_network.setdefault(network_of(place), place)
    return list(place_by_network.values())[:MAX_PEERS]


def network_of(place: str) -> str:
    """Returns the /16 network of an IPv4 address, or the /32 network of an IPv6 address.

    Returns a host name unchanged, without its port.
    """
    host, _ = host_and_port(place)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    address = getattr(address, "ipv4_mapped", None) or address
    prefix_bits = 32
    if address.version == 4:
        prefix_bits = 16
    return str(ipaddress.ip_network((address, prefix_bits), strict=False))


def note_good_peer(db: Database, place: str, height: int | None, now: datetime) -> None:
    db.run(sources.PEER_GOOD, place=place, height=height, good_ms=to_ms(now))


def ban_peer(db: Database, place: str, now: datetime) -> None:
    """Stores that the peer must not be used for one day, which begins at `now`."""
    db.run(sources.LEAVE_PEER, place=place, left_until=to_ms(now + BAN_TIME))
