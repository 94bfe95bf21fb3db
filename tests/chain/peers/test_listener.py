"""Listening to nodes that announce, on real sockets: what counts, and what bad ones cost."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from builders import REGTEST, until
from fake_peer import Bad, FakePeer, honest, of

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import compact_size, txid_bytes, txid_hex
from btcpay.chain.peers import messages
from btcpay.chain.peers.listener import MOST_HELD_BYTES, MOST_TAKEN_BYTES, Listener, size_of

Open = Callable[..., FakePeer]


def transaction(number, outputs=1):
    coin = TxIn(Outpoint(f"{number:064x}", 0), b"", 0)
    return Tx(2, (coin,), (TxOut(1000, b"\x00\x14" + bytes(20)),) * outputs, 0)


class Hearing:
    """A listener, and the txids that it has heard, in order."""

    def __init__(self, *peers):
        self.peers = peers
        places = [peer.place for peer in peers]
        self.listener = Listener(REGTEST, lambda: places, lambda: datetime.now(UTC))
        self._heard: list[str] = []
        self.listener.listen(True)

    def heard(self):
        self._heard += [txid_hex(one.parts.txids[0]) for one in self.listener.take()]
        return self._heard

    def announced(self, tx, *by):
        """These announce it, and are asked for it."""
        for peer in by:
            until(lambda peer=peer: peer.listeners, "the greeting")
            before = peer.asked.count("getdata")
            peer.announce(tx)
            until(lambda peer=peer, n=before: peer.asked.count("getdata") > n, "a question")


@pytest.fixture
def open_peer():
    with ExitStack() as stack:

        def opened(bad=honest, **more):
            return stack.enter_context(FakePeer(lambda: [None], lambda: 0, bad, **more))

        yield opened


@pytest.fixture
def listen():
    with ExitStack() as stack:

        def opened(*peers):
            hearing = Hearing(*peers)
            stack.callback(hearing.listener.listen, False)
            return hearing

        yield opened


def test_what_two_peers_announce_counts_once(open_peer, listen):
    one, two, three = peers = [open_peer() for _ in range(3)]
    first, second, third = map(transaction, range(1, 4))
    hearing = listen(*peers)
    hearing.announced(first, one)
    hearing.announced(second, two)
    hearing.announced(third, two, three)
    until(lambda: len(hearing.heard()) == 1, "what two announce")
    hearing.announced(first, three)
    until(lambda: len(hearing.heard()) == 2, "what two announce")
    two.announce(first)  # nobody needs it any more
    for peer in (one, two, three):
        peer.announce(third)
    hearing.announced(transaction(4), *peers[:2])
    until(lambda: len(hearing.heard()) == 3, "what two announce")
    assert hearing.heard() == [third.txid, first.txid, transaction(4).txid]
    assert "mempool" not in one.asked


def test_one_peer_is_enough_where_one_is_set_and_what_waits_is_asked_for(open_peer, listen):
    peer = open_peer(services=messages.NODE_NETWORK | messages.NODE_BLOOM)
    peer.announce(transaction(1))  # before anybody listens
    hearing = listen(peer)
    until(lambda: hearing.heard() == [transaction(1).txid], "what waited")
    hearing.listener.listen(False)
    until(lambda: not peer.listeners, "the end")
    hearing.listener.listen(True)
    hearing.announced(transaction(2), peer)
    until(lambda: transaction(2).txid in hearing.heard(), "another")


def once_greeted(bad):
    return of("verack", lambda peer, sock, command, body: bool(bad(peer, sock)))


def sends(command, body):
    return once_greeted(lambda peer, sock: peer.send(sock, command, body))


def drips(peer, sock):
    while not peer.released.wait(0.05):
        sock.sendall(b"\xfa")


def invents(peer, sock):
    """Without an end."""
    number = 9
    while not peer.released.is_set():
        number += 1
        made = transaction(number, outputs=10_000)
        peer.send(sock, "inv", messages.getdata_body(messages.TX, [txid_bytes(made.txid)]))
        peer.send(sock, "tx", made.raw)


INVENTORY = messages.getdata_body(messages.TX, [bytes(32)])
BAD: dict[str, Bad] = {
    "silent": lambda peer, sock, command, body: peer.released.wait(),
    "dripping": once_greeted(drips),
    "hanging up": once_greeted(lambda peer, sock: sock.shutdown(socket.SHUT_RDWR)),
    "flooding": once_greeted(invents),
    "a transaction that nobody asked for": sends("tx", transaction(1).raw),
    "a transaction of a megabyte": sends("tx", transaction(1, 32_000).raw),
    "a transaction that is none": sends("tx", b"\x02\x00\x00\x00\x01"),
    "an inventory that is cut": sends("inv", INVENTORY[:-1]),
    "an inventory of four billion": sends("inv", compact_size(2**32) + INVENTORY),
    "nothing of what it announces": lambda peer, sock, command, body: command == "getdata",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_one_bad_peer_keeps_nothing_back_and_invents_nothing(open_peer, listen, bad):
    peers = open_peer(), open_peer(), open_peer(bad)
    hearing = listen(*peers)
    hearing.announced(transaction(1), *peers[:1])
    hearing.announced(transaction(2), *peers[:2])
    until(lambda: transaction(2).txid in hearing.heard(), "what two announce")
    assert hearing.heard() == [transaction(2).txid]


def test_a_flood_is_left_and_only_so_much_of_it_is_held(open_peer, listen, caplog):
    listener, most = listen(open_peer(BAD["flooding"])).listener, messages.LIMITS["tx"]
    until(lambda: listener._held_bytes >= MOST_HELD_BYTES, "as much as is held")
    sizes = []

    def is_left():
        assert listener._held_bytes < MOST_HELD_BYTES + most
        sizes.append(sum(map(size_of, listener.take())))
        return "sends much more than there can be" in caplog.text

    until(is_left, "an end")
    assert sum(sizes) > MOST_HELD_BYTES and max(sizes) < MOST_TAKEN_BYTES + most
