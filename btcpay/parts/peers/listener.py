"""Listens to Bitcoin nodes, which announce the ids of unconfirmed transactions.

All announced txids are stored, since a node announces each one only once. The
transactions themselves are requested only while the check wants them.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial

from btcpay.bitcoin.wire import DecodeError
from btcpay.chain.sources import FAILURES, AnnouncedTx
from btcpay.http.deadline import run_in_thread
from btcpay.parts.peers import messages
from btcpay.parts.peers.announcing_peer import AnnouncingPeer, is_outnumbered
from btcpay.parts.peers.connection import Connection
from btcpay.values.networks import Network

log = logging.getLogger(__name__)

# The number of peers that must send a transaction before it counts. One is enough if only one
# peer is configured.
QUORUM = 2
SILENCE_S = 330.0  # most nodes send a ping every two minutes, some every five
MAX_ASKED = 5_000  # requested in one message; a mempool may have 300,000
# The maximum number of bytes held, and of bytes that one call of `take` returns. Parsed
# transactions may need ten times as much memory.
MAX_HELD_BYTES = 8_000_000
MAX_TAKEN_BYTES = 2_000_000
BYTES_EACH = 300  # overhead, in addition to the raw transaction
UNTIL_TAKEN_S = 0.1
MAX_PEERS = 8


def size_of(announced: AnnouncedTx) -> int:
    """Returns how many bytes of memory the transaction needs while it waits for `take`."""
    return len(announced.raw) + BYTES_EACH


class PeerListener:
    """Listens to peers, each in its own thread. The first call of `listen` starts the threads.

    - `choose`: returns peers (host:port). It is called again to replace lost peers.
    - `quorum`: the number of peers that must send a transaction before `take` returns
      it. It is raised to QUORUM once `choose` has returned at least QUORUM peers.

    A peer that sends more than 20 MB a minute is disconnected. While 8 MB of
    transactions wait for `take`, no more are received.
    """

    chooses_every_s = 60.0

    def __init__(
        self,
        network: Network,
        choose: Callable[[], Sequence[str]],
        now: Callable[[], datetime],
        proxy: str = "",
        quorum: int = 1,
    ) -> None:
        self._network = network
        self._choose = choose
        self._now = now
        self._proxy = proxy
        self._quorum = quorum
        self._chooses_at_s = 0.0
        self._is_wanted = False
        self._peers = list[AnnouncingPeer]()
        self._peers_to_ask = list[AnnouncingPeer]()
        self._announced = deque[AnnouncedTx]()
        self._held_bytes = 0
        self._lock = threading.Lock()

    def listen(self, is_wanted: bool) -> None:
        """Keeps the connections open, and requests transactions while `is_wanted` is True.

        Returns at once; call this method at short intervals. When `is_wanted` becomes
        True, the call also requests the transactions that were announced before, from
        `quorum` peers. Until each peer was asked, each later call requests them from
        `quorum` other peers, in case the earlier peers do not send all of them.
        """
        now_s = time.monotonic()
        if now_s >= self._chooses_at_s:
            self._chooses_at_s = now_s + self.chooses_every_s
            run_in_thread(self._replace_gone)
        if is_wanted and not self._is_wanted:
            self._peers_to_ask = list(self._peers)
        self._is_wanted = is_wanted
        if not is_wanted:
            return
        for peer in self._peers_to_ask[: self._quorum]:
            self._peers_to_ask.remove(peer)
            run_in_thread(partial(self._ask_announced, peer))

    def take(self) -> list[AnnouncedTx]:
        """Returns transactions that `quorum` peers have sent, oldest first, about 2 MB at most.

        Each transaction is returned only once, with one exception. If `replaces` says
        that a transaction does not replace another one yet, the transaction is returned
        again as soon as one more peer has sent it.
        """
        txs = list[AnnouncedTx]()
        with self._lock:
            end_bytes = self._held_bytes - MAX_TAKEN_BYTES
            while self._announced and self._held_bytes > end_bytes:
                tx = self._announced.popleft()
                self._held_bytes -= size_of(tx)
                txs.append(tx)
        return txs

    def replaces(self, new: bytes, old: bytes) -> bool:
        """True if more peers announce the transaction `new` than `old`.

        Both are txids. If the result is False, `take` returns `new` again once one more
        peer sends it.
        """
        with self._lock:
            announcements = [peer.times_of((new, old)) for peer in self._peers]
            if is_outnumbered(announcements, old, new):
                return True
            senders = [peer for peer in self._peers if peer.has_sent.get(new)]
            if senders:
                # One sender is forgotten, so that the next one completes the quorum again.
                del senders[0].has_sent[new]
            return False

    def _replace_gone(self) -> None:
        """Connects to new peers, so that up to MAX_PEERS are connected.

        New peers replace peers that are not connected.
        """
        connected_count = sum(peer.connection is not None for peer in self._peers)
        room = MAX_PEERS - connected_count
        if not room:
            return
        places = self._choose()
        self._quorum = max(self._quorum, min(QUORUM, len(places)))
        known_places = {peer.place for peer in self._peers}
        new_places = [place for place in places if place not in known_places]
        for place in new_places[:room]:
            if len(self._peers) >= MAX_PEERS:
                self._drop_lost_peer()
            peer = AnnouncingPeer(place)
            self._peers.append(peer)
            threading.Thread(target=self._run, args=(peer,), daemon=True).start()

    def _drop_lost_peer(self) -> None:
        """Stops and forgets the first peer that is not connected."""
        lost_peers = [peer for peer in self._peers if peer.connection is None]
        lost_peers[0].stop.set()
        self._peers.remove(lost_peers[0])

    def _run(self, peer: AnnouncingPeer) -> None:
        """Connects to the peer, and again after each failure, until the peer is stopped.

        Waits between a failure and the next attempt, longer after each failure.
        """
        while not peer.stop.wait(max(0.0, peer.rests_until_s - time.monotonic())):
            began_s = time.monotonic()
            try:
                connection = Connection(
                    self._network,
                    peer.place,
                    peer.count_bytes,
                    relay=True,
                    proxy=self._proxy,
                )
                with closing(connection):
                    peer.connection = connection
                    self._read_messages(peer, connection)
            except (*FAILURES, DecodeError) as error:
                if not peer.stop.is_set():
                    log.warning(
                        "peer %s is not listened to for a while: %s", peer.place, error
                    )
                    peer.rest(time.monotonic() - began_s)
            peer.connection = None

    def _read_messages(self, peer: AnnouncingPeer, connection: Connection) -> None:
        """Receives and handles the peer's messages until the peer is stopped.

        Raises FetchError, ProofFailed or DecodeError.
        """
        if connection.greeting.services & messages.NODE_BLOOM:
            connection.send("mempool")  # BIP35; nodes without NODE_BLOOM hang up
        while not peer.stop.is_set():
            command, body = connection.next(("inv", "tx", "ping"), SILENCE_S)
            if command == "ping":
                connection.send("pong", body)
            elif command == "tx":
                self._wait_for_room(peer)
                self._store(peer, body)
            else:
                txids = messages.parse_inv(body)[:MAX_ASKED]
                with self._lock:
                    peer.note(txids, time.monotonic())
                if self._is_wanted:
                    self._ask(peer, txids)

    def _wait_for_room(self, peer: AnnouncingPeer) -> None:
        """Waits until less than MAX_HELD_BYTES are held, or until the peer is stopped.

        Meanwhile nothing is received from the peer, so that no transaction is lost.
        """
        while self._held_bytes >= MAX_HELD_BYTES:
            if peer.stop.wait(UNTIL_TAKEN_S):
                return

    def _ask_announced(self, peer: AnnouncingPeer) -> None:
        """Requests all transactions that the peer has announced."""
        self._ask(peer, peer.announced_s)

    def _ask(self, peer: AnnouncingPeer, txids: Iterable[bytes]) -> None:
        """Requests these transactions, except those that enough peers have sent.

        `txids` is iterated while the lock is held, since it may be a collection that
        other threads change.
        """
        with self._lock:
            wanted_txids = [txid for txid in txids if self._is_wanted_from(peer, txid)]
            for txid in wanted_txids:
                peer.has_sent[txid] = False
        connection = peer.connection
        if wanted_txids and connection:
            body = messages.getdata_body(messages.WITNESS_TX, wanted_txids)
            connection.send("getdata", body)

    def _is_wanted_from(self, peer: AnnouncingPeer, txid: bytes) -> bool:
        """True if neither this peer nor `quorum` other peers have sent the transaction."""
        if peer.has_sent.get(txid):
            return False
        return self._count_senders(txid) < self._quorum

    def _store(self, peer: AnnouncingPeer, body: bytes) -> None:
        """Stores a requested transaction for `take`, once `quorum` peers have sent it.

        Ignores a transaction that was not requested from this peer.
        """
        announced = AnnouncedTx(body, peer.place, self._now())
        txid = announced.contents.txids[0]
        with self._lock:
            was_asked_for = peer.has_sent.get(txid) is False
            if not was_asked_for:
                return
            peer.has_sent[txid] = True
            # Only the sender that completes the quorum adds the transaction.
            if self._count_senders(txid) == self._quorum:
                self._held_bytes += size_of(announced)
                # A copy without the cached parsed contents, which need memory.
                self._announced.append(replace(announced))

    def _count_senders(self, txid: bytes) -> int:
        return sum(peer.has_sent.get(txid, False) for peer in self._peers)
