"""Listens to nodes of the network, which announce the transactions that wait."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime

from btcpay.bitcoin.wire import Malformed
from btcpay.chain.peers import messages
from btcpay.chain.peers.connection import Connection
from btcpay.chain.sources import FAILURES, Announced
from btcpay.values.errors import FetchError
from btcpay.values.networks import Network

log = logging.getLogger(__name__)

NEEDED = 2  # peers that must announce a transaction; one, where one is set
SILENCE_S = 330.0  # nodes say at least a ping in two minutes, some in five
# A peer whose connection ended rests; twice as long each time, unless it lasted.
FIRST_REST_S, LONGEST_REST_S = 5.0, 600.0
MOST_ASKED = 5_000  # transactions of one message; a mempool may hold 300,000
MOST_KNOWN = 20_000  # ids of each peer: those of an hour of mainnet
MOST_MINUTELY_BYTES = 20_000_000  # of each peer; mainnet announces and sends half a million
# Kept until it is taken; taken at once, since it may be ten times as large once it is read.
MOST_HELD_BYTES, MOST_TAKEN_BYTES = 8_000_000, 2_000_000
BYTES_EACH = 300  # beside those of the transaction itself
UNTIL_TAKEN_S = 0.1
MOST_PEERS = 8


def size_of(announced: Announced) -> int:
    return len(announced.raw) + BYTES_EACH


class _Ear:
    """One peer. `has`: by txid, True once the peer has sent what it was asked for."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.has: dict[bytes, bool] = {}
        self.connection: Connection | None = None
        self.rest_s = self.rests_until_s = 0.0
        self._minute, self._minutely_bytes = 0, 0

    def count(self, size: int) -> None:
        minute = int(time.monotonic() / 60)
        if minute != self._minute:
            self._minute, self._minutely_bytes = minute, 0
        self._minutely_bytes += size
        if self._minutely_bytes > MOST_MINUTELY_BYTES:
            raise FetchError("sends much more than there can be")

    def rest(self, lasted_s: float) -> None:
        before_s = 0.0 if lasted_s > LONGEST_REST_S else self.rest_s
        self.rest_s = min(max(before_s * 2, FIRST_REST_S), LONGEST_REST_S)
        self.rests_until_s = time.monotonic() + self.rest_s


class Listener:
    """Hears peers in threads of their own; `choose` names them (host:port) each time it begins.

    No more than 20 MB a minute of each peer is read, and 8 MB are held.
    """

    def __init__(
        self,
        network: Network,
        choose: Callable[[], Sequence[str]],
        now: Callable[[], datetime],
        proxy: str = "",
    ) -> None:
        self._network, self._choose, self._now, self._proxy = network, choose, now, proxy
        self._ears = list[_Ear]()
        self._found: deque[Announced] = deque()
        self._held_bytes = 0
        self._lock = threading.Lock()
        self._off: threading.Event | None = None

    def listen(self, is_wanted: bool) -> None:
        if is_wanted and self._off is None:
            self._off = threading.Event()
            self._ears = [_Ear(place) for place in self._choose()[:MOST_PEERS]]
            self._needed = min(NEEDED, len(self._ears))
            for ear in self._ears:
                threading.Thread(target=self._run, args=(ear, self._off), daemon=True).start()
        elif self._off and not is_wanted:
            self._off.set()
            self._off = None
            for ear in self._ears:
                if connection := ear.connection:
                    connection.close()

    def take(self) -> list[Announced]:
        """The first 2 MB of the transactions that enough peers have announced, each once."""
        taken = list[Announced]()
        with self._lock:
            end_bytes = self._held_bytes - MOST_TAKEN_BYTES
            while self._found and self._held_bytes > end_bytes:
                taken.append(self._found.popleft())
                self._held_bytes -= size_of(taken[-1])
        return taken

    def _run(self, ear: _Ear, off: threading.Event) -> None:
        while not off.wait(max(0.0, ear.rests_until_s - time.monotonic())):
            began_s = time.monotonic()
            try:
                opened = Connection(self._network, ear.place, ear.count, True, self._proxy)
                with closing(opened) as connection:
                    ear.connection = connection
                    self._hear(ear, connection, off)
            except (*FAILURES, Malformed) as error:
                if not off.is_set():
                    log.warning("peer %s is not listened to for a while: %s", ear.place, error)
                    ear.rest(time.monotonic() - began_s)

    def _hear(self, ear: _Ear, connection: Connection, off: threading.Event) -> None:
        """Raises FetchError or Malformed."""
        if connection.greeting.services & messages.NODE_BLOOM:
            connection.send("mempool")  # BIP35; others hang up
        while not off.is_set():
            command, body = connection.next(("inv", "tx", "ping"), SILENCE_S)
            if command == "ping":
                connection.send("pong", body)
            elif command == "tx":
                while self._held_bytes >= MOST_HELD_BYTES and not off.wait(UNTIL_TAKEN_S):
                    pass  # nothing is lost: the peer has to wait
                self._keep(ear, body)
            elif wanted := self._wanted(ear, messages.parse_inv(body)[:MOST_ASKED]):
                connection.send("getdata", messages.getdata_body(messages.WITNESS_TX, wanted))

    def _wanted(self, ear: _Ear, announced: Sequence[bytes]) -> list[bytes]:
        """The announced transactions that it has not sent yet, and that too few others have."""
        with self._lock:
            wanted = [
                txid
                for txid in announced
                if not ear.has.get(txid) and self._announced(txid) < self._needed
            ]
            for txid in wanted:
                ear.has[txid] = False
            while len(ear.has) > MOST_KNOWN:
                del ear.has[next(iter(ear.has))]
        return wanted

    def _keep(self, ear: _Ear, body: bytes) -> None:
        new = Announced(body, ear.place, self._now())
        txid = new.parts.txids[0]
        with self._lock:
            if ear.has.get(txid) is not False:
                return  # nobody asked for it
            ear.has[txid] = True
            if self._announced(txid) == self._needed:
                self._held_bytes += size_of(new)
                self._found.append(replace(new))  # which has not been read yet

    def _announced(self, txid: bytes) -> int:
        return sum(ear.has.get(txid, False) for ear in self._ears)
