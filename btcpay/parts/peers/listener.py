"""Listens to nodes of the network, which announce the ids of the transactions that wait.

Ids are noted at all times, since no node announces one twice; transactions are asked for only while
somebody wants them.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
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

NEEDED = 2  # peers that must announce a transaction; one if only one is set
SILENCE_S = 330.0  # nodes say at least a ping in two minutes, some in five
MOST_ASKED = 5_000  # transactions of one message; a mempool may hold 300,000
# Kept until it is taken; taken at once, since it may be ten times as large once it is read.
MOST_HELD_BYTES = 8_000_000
MOST_TAKEN_BYTES = 2_000_000
BYTES_EACH = 300  # beside those of the transaction itself
UNTIL_TAKEN_S = 0.1
MOST_PEERS = 8


def size_of(announced: AnnouncedTx) -> int:
    return len(announced.raw) + BYTES_EACH


class PeerListener:
    """Hears peers in threads of their own, once it is told to `listen`.

    `choose` names peers (host:port), also in place of those that are gone; at least `needed` must
    announce a transaction. No more than 20 MB a minute of each is read, and 8 MB are held.
    """

    chooses_every_s = 60.0

    def __init__(
        self,
        network: Network,
        choose: Callable[[], Sequence[str]],
        now: Callable[[], datetime],
        proxy: str = "",
        needed: int = 1,
    ) -> None:
        self._network = network
        self._choose = choose
        self._now = now
        self._proxy = proxy
        self._needed = needed
        self._chooses_at_s = 0.0
        self._is_wanted = False
        self._ears = list[AnnouncingPeer]()
        self._unasked = list[AnnouncingPeer]()
        self._found: deque[AnnouncedTx] = deque()
        self._held_bytes = 0
        self._lock = threading.Lock()

    def listen(self, is_wanted: bool) -> None:
        """Notes ids, and asks for transactions while they are wanted.

        Ids noted before are asked for then, of as many peers as must have them; for any that these
        do not send, each further call asks as many more.
        """
        if time.monotonic() >= self._chooses_at_s:
            self._chooses_at_s = time.monotonic() + self.chooses_every_s
            run_in_thread(self._fill)
        if is_wanted and not self._is_wanted:
            self._unasked = list(self._ears)
        self._is_wanted = is_wanted
        for ear in self._unasked[: self._needed] if is_wanted else ():
            self._unasked.remove(ear)
            run_in_thread(partial(self._ask, ear))

    def take(self) -> list[AnnouncedTx]:
        """The first 2 MB of the transactions that enough peers have announced, each once."""
        taken = list[AnnouncedTx]()
        with self._lock:
            end_bytes = self._held_bytes - MOST_TAKEN_BYTES
            while self._found and self._held_bytes > end_bytes:
                taken.append(self._found.popleft())
                self._held_bytes -= size_of(taken[-1])
        return taken

    def replaces(self, new: bytes, old: bytes) -> bool:
        with self._lock:
            said = [ear.said for ear in self._ears]
            words = [{id: one[id] for id in (new, old) if id in one} for one in said]
            has = [ear.has for ear in self._ears if ear.has.get(new)]
            if not (found := is_outnumbered(words, old, new)) and has:
                del has[0][new]
        return found

    def _fill(self) -> None:
        """Listens to more peers while there is room, or in place of those that are gone."""
        room = MOST_PEERS - sum(ear.connection is not None for ear in self._ears)
        places = self._choose() if room else []
        self._needed = max(self._needed, min(NEEDED, len(places)))
        known = [ear.place for ear in self._ears]
        for ear in [AnnouncingPeer(place) for place in places if place not in known][
            :room
        ]:
            if len(self._ears) >= MOST_PEERS:
                gone = next(one for one in self._ears if one.connection is None)
                gone.off.set()
                self._ears.remove(gone)
            self._ears.append(ear)
            threading.Thread(target=self._run, args=(ear,), daemon=True).start()

    def _run(self, ear: AnnouncingPeer) -> None:
        while not ear.off.wait(max(0.0, ear.rests_until_s - time.monotonic())):
            began_s = time.monotonic()
            try:
                opened = Connection(
                    self._network, ear.place, ear.count, True, self._proxy
                )
                with closing(opened) as connection:
                    ear.connection = connection
                    self._hear(ear, connection)
            except (*FAILURES, DecodeError) as error:
                if not ear.off.is_set():
                    log.warning(
                        "peer %s is not listened to for a while: %s", ear.place, error
                    )
                    ear.rest(time.monotonic() - began_s)
            ear.connection = None

    def _hear(self, ear: AnnouncingPeer, connection: Connection) -> None:
        """Raises FetchError, ProofFailed or DecodeError."""
        if connection.greeting.services & messages.NODE_BLOOM:
            connection.send("mempool")  # BIP35; others hang up
        while not ear.off.is_set():
            command, body = connection.next(("inv", "tx", "ping"), SILENCE_S)
            if command == "ping":
                connection.send("pong", body)
            elif command == "tx":
                while self._held_bytes >= MOST_HELD_BYTES and not ear.off.wait(
                    UNTIL_TAKEN_S
                ):
                    pass  # nothing is lost: the peer has to wait
                self._keep(ear, body)
            else:
                announced = messages.parse_inv(body)[:MOST_ASKED]
                with self._lock:
                    ear.note(announced, time.monotonic())
                if self._is_wanted:
                    self._ask(ear, announced)

    def _ask(
        self, ear: AnnouncingPeer, announced: Sequence[bytes] | None = None
    ) -> None:
        """Asks for what was announced, or for all that was noted, unless enough have sent it."""
        with self._lock:
            wanted = [
                txid
                for txid in (ear.said if announced is None else announced)
                if not ear.has.get(txid) and self._sent(txid) < self._needed
            ]
            ear.has |= dict.fromkeys(wanted, False)
        if wanted and (connection := ear.connection):
            connection.send(
                "getdata", messages.getdata_body(messages.WITNESS_TX, wanted)
            )

    def _keep(self, ear: AnnouncingPeer, body: bytes) -> None:
        new = AnnouncedTx(body, ear.place, self._now())
        txid = new.contents.txids[0]
        with self._lock:
            if ear.has.get(txid) is not False:
                return  # nobody asked for it
            ear.has[txid] = True
            if self._sent(txid) == self._needed:
                self._held_bytes += size_of(new)
                self._found.append(replace(new))  # which has not been read yet

    def _sent(self, txid: bytes) -> int:
        return sum(ear.has.get(txid, False) for ear in self._ears)
