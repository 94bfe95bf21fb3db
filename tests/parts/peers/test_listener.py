"""Listening to nodes that announce, on real sockets: what counts, and what bad ones cost."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from btcpay.bitcoin.tx import Outpoint, Tx, TxIn, TxOut
from btcpay.bitcoin.wire import hash_from_hex, hash_to_hex, ser_compact_size
from btcpay.parts.peers import messages
from btcpay.parts.peers.announcing_peer import (
    MAX_ANNOUNCED,
    AnnouncingPeer,
    is_outnumbered,
)
from btcpay.parts.peers.listener import (
    MAX_HELD_BYTES,
    MAX_TAKEN_BYTES,
    PeerListener,
    size_of,
)
from tests.support.builders import REGTEST, until
from tests.support.fake_peer import Bad, FakePeer, deafen, honest, of

Open = Callable[..., FakePeer]


def transaction(number, outputs=1):
    coin = TxIn(Outpoint(f"{number:064x}", 0), b"", 0)
    return Tx(2, (coin,), (TxOut(1000, b"\x00\x14" + bytes(20)),) * outputs, 0)


class Quick(PeerListener):
    """Chooses its peers a hundred times as often."""

    chooses_every_s = PeerListener.chooses_every_s / 100


class Hearing:
    """A listener, and the txids that it has heard, in order."""

    def __init__(self, *peers, is_wanted=True):
        self.places = [peer.place for peer in peers]
        self.is_wanted = is_wanted
        self.listener = Quick(REGTEST, lambda: self.places, lambda: datetime.now(UTC))
        self._heard: list[str] = []
        self.listener.listen(is_wanted)

    def heard(self):
        self.listener.listen(self.is_wanted)
        self._heard += [
            hash_to_hex(one.contents.txids[0]) for one in self.listener.take()
        ]
        return self._heard

    def announced(self, tx, *by):
        """These announce it, and are asked for it."""
        for peer in by:
            until(lambda peer=peer: peer.listeners, "the greeting")
            before = peer.asked.count("getdata")
            peer.announce(tx)
            until(
                lambda peer=peer, n=before: peer.asked.count("getdata") > n,
                "a question",
            )


@pytest.fixture
def open_peer():
    with ExitStack() as stack:

        def opened(bad=honest, **more):
            return stack.enter_context(FakePeer(lambda: [None], lambda: 0, bad, **more))

        yield opened


@pytest.fixture
def listen():
    with ExitStack() as stack:

        def opened(*peers, **more):
            hearing = Hearing(*peers, **more)
            stack.callback(deafen, hearing.listener)
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


def test_one_peer_is_enough_where_one_is_set_and_what_waits_is_asked_for(
    open_peer, listen
):
    peer = open_peer(services=messages.NODE_NETWORK | messages.NODE_BLOOM)
    peer.announce(transaction(1))  # before anybody listens
    hearing = listen(peer)
    until(lambda: hearing.heard() == [transaction(1).txid], "what waited")
    hearing.announced(transaction(2), peer)
    until(lambda: transaction(2).txid in hearing.heard(), "another")


A = b"a" * 32
B = b"b" * 32


def words(*each):
    """For each peer, the txids that it announced, in order."""
    return [{txid: at for at, txid in enumerate(said, 1)} for said in each]


# The words of each peer, and the one of A and B that stands.
WORDS = {
    "it alone": ([[A]] * 2, A),
    "two of eight say another": ([[A]] * 6 + [[B]] * 2, A),
    "two of eight change their word": ([[A]] * 6 + [[A, B]] * 2, A),
    "as many change their word as keep it": ([[A]] * 4 + [[A, B]] * 4, A),
    "more change their word than keep it": ([[A]] * 3 + [[A, B]] * 4, B),
    "all announce the higher fee": ([[A, B]] * 8, B),
    "three who came late outnumber two": ([[A]] * 2 + [[B]] * 3, B),
    "half of them say the first once more": ([[A, B, A]] * 4 + [[A, B]] * 4, A),
    "one of two changes its word": ([[A], [A, B]], A),
    "both of two change their word": ([[A, B], [A, B]], B),
    "the only one changes its word": ([[A, B]], B),
    "half of them, and nobody knows who announced the first": ([[B]] * 4 + [[]] * 4, A),
    "more than half of them, and nobody knows who announced the first": (
        [[B]] * 5 + [[]] * 3,
        B,
    ),
    "both of two, and nobody knows who announced the first": ([[B], [B]], B),
    "the only one, and nobody knows who announced the first": ([[B]], B),
}


@pytest.mark.parametrize(("said", "stands"), WORDS.values(), ids=WORDS)
def test_a_transaction_stands_until_more_peers_announce_another(said, stands):
    assert is_outnumbered(words(*said), A, B) == (stands == B)


def noted(hearing, tx):
    """The number of peers that have announced it."""
    return sum(
        hash_from_hex(tx.txid) in peer.announced_s for peer in hearing.listener._peers
    )


def test_what_was_announced_while_nobody_wanted_it_is_asked_for_as_soon_as_somebody_does(
    open_peer, listen
):
    liars = [
        open_peer(of("getdata", lambda *_: True)) for _ in range(2)
    ]  # announce, send nothing
    peers = [*liars, open_peer(), open_peer()]
    hearing = listen(*peers, is_wanted=False)
    until(lambda: all(peer.listeners for peer in peers), "the greetings")
    for peer in peers:
        peer.announce(transaction(1))
    liars[0].announce(transaction(2))
    until(
        lambda: (
            (noted(hearing, transaction(1)), noted(hearing, transaction(2))) == (4, 1)
        ),
        "ids",
    )
    assert hearing.heard() == [] and not any("getdata" in peer.asked for peer in peers)
    hearing.is_wanted = True
    until(lambda: hearing.heard() == [transaction(1).txid], "what two have")
    until(
        lambda: [peer.asked.count("getdata") for peer in peers] == [1] * 4,
        "every question",
    )
    hearing.is_wanted = False
    hearing.heard()
    for peer in peers:
        peer.announce(transaction(3))
    until(lambda: noted(hearing, transaction(3)) == 4, "ids")
    assert [peer.asked.count("getdata") for peer in peers] == [1] * 4


def test_only_the_ids_of_a_quarter_of_an_hour_are_noted_and_not_too_many():
    peer = AnnouncingPeer("127.0.0.1:8333")
    ids = [number.to_bytes(32, "little") for number in range(MAX_ANNOUNCED + 2)]
    peer.note(ids[:2], 0.0)
    peer.note(ids[1:2], 60.0)
    peer.note(ids[2:3], 901.0)
    assert list(peer.announced_s) == ids[1:3]
    peer.note(ids[3:], 902.0)
    assert (
        len(peer.announced_s) == MAX_ANNOUNCED
        and ids[-1] in peer.announced_s
        and ids[1] not in peer.announced_s
    )


def test_a_peer_that_is_gone_is_replaced(open_peer, listen):
    gone = [open_peer() for _ in range(7)]
    spare = [open_peer() for _ in range(2)]
    stays = open_peer()
    hearing = listen(stays, *gone)
    until(lambda: all(peer.listeners for peer in [stays, *gone]), "the greetings")
    hearing.places = [stays.place, *(peer.place for peer in spare)]
    for peer in gone:
        peer.__exit__()
    until(
        lambda: not hearing.heard() and all(peer.listeners for peer in spare), "others"
    )
    for peer in [stays, *spare]:
        peer.announce(transaction(1))
    until(lambda: hearing.heard() == [transaction(1).txid], "what the living announce")


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
        peer.send(
            sock, "inv", messages.getdata_body(messages.TX, [hash_from_hex(made.txid)])
        )
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
    "an inventory of four billion": sends("inv", ser_compact_size(2**32) + INVENTORY),
    "nothing of what it announces": lambda peer, sock, command, body: (
        command == "getdata"
    ),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_one_bad_peer_keeps_nothing_back_and_invents_nothing(open_peer, listen, bad):
    peers = open_peer(), open_peer(), open_peer(bad)
    hearing = listen(*peers)
    hearing.announced(transaction(1), *peers[:1])
    hearing.announced(transaction(2), *peers[:2])
    until(lambda: transaction(2).txid in hearing.heard(), "what two announce")
    assert hearing.heard() == [transaction(2).txid]


@pytest.mark.slow
def test_a_flood_is_left_and_only_so_much_of_it_is_held(open_peer, listen, caplog):
    listener = listen(open_peer(BAD["flooding"])).listener
    most = messages.MAX_BYTES_BY_COMMAND["tx"]
    until(lambda: listener._held_bytes >= MAX_HELD_BYTES, "as much as is held")
    sizes = []

    def is_left():
        assert listener._held_bytes < MAX_HELD_BYTES + most
        sizes.append(sum(map(size_of, listener.take())))
        return "sends much more than there can be" in caplog.text

    until(is_left, "an end")
    assert sum(sizes) > MAX_HELD_BYTES and max(sizes) < MAX_TAKEN_BYTES + most
