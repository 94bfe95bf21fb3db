"""The check over nodes of the network: followed, reorganised, proven; beside bad ones too."""

import json
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest

from btcpay.cli.check.summary import summary_lines
from btcpay.parts.peers import choice
from btcpay.parts.peers.findings import findings
from btcpay.parts.peers.source import Peers
from btcpay.proofs.document import check_document
from btcpay.values.finding import GREEN, YELLOW
from btcpay.values.networks import AUTO
from storage.queries import blocks, payments, sources
from tests.support.fake_peer import (
    Bad,
    FakePeer,
    chain_of,
    false_block,
    headers_body,
    honest,
    of,
    over_peers,
)
from tests.support.rival import Rival

Open = Callable[..., FakePeer]


class Hasty(Peers):
    """Waits a tenth of what the product waits."""

    hedge_s = Peers.hedge_s / 10
    late_s = Peers.late_s / 10


@pytest.fixture
def shop(lied_to):
    """A shop, and what opens nodes of the network; its explorer is never to be asked."""
    till = lied_to(has_begun=False)
    till.mine()
    with ExitStack() as stack:

        def open_peer(bad=honest, seen=None, **more):
            return stack.enter_context(
                FakePeer(seen or chain_of(till), lambda: till.now, bad, **more)
            )

        yield till, open_peer


def check(till, *peers, places=()):
    """A whole run over these peers alone."""
    checker = over_peers(till, *(places or (peer.place for peer in peers)), kind=Hasty)
    report = checker.run()
    checker.finish(report)
    assert till.liar.asked == []
    return report


def test_a_payment_is_found_reorganised_and_proven_over_two_peers(shop):
    till, open_peer = shop
    peers = [open_peer(), open_peer()]
    invoice = till.shop.invoice()
    assert check(till, *peers).complete
    till.pay(invoice)
    till.mine(3)
    report = check(till, *peers)
    assert (
        report.new_statuses == {invoice["id"]: "paid"}
        and report.complete
        and report.is_agreed
    )
    assert report.blocks_read == 3 and report.read_bytes > 600
    (row,) = till.shop.service.db.rows(
        payments.PROOFS_OF_ADDRESS, invoice_id=invoice["id"]
    )
    assert sum(check_document(json.loads(row.document)).amounts_sats.values()) > 0
    till.sandbox.chain.reorganise(3, till.now)
    assert check(till, *peers).complete
    assert till.look(invoice)["status"] == "open"
    till.mine()
    assert check(till, *peers).new_statuses == {invoice["id"]: "paid"}
    assert check(till, *peers).blocks_read == 0
    assert till.balance() == (invoice["amount_sats"],) * 2
    assert "pong" in peers[0].asked


def test_blocks_of_a_pause_come_from_several_peers_at_once(shop):
    """Once the newest is there, none comes before four different ones are asked for."""
    till, open_peer = shop
    asked = set[bytes]()
    four = threading.Event()

    def held(peer, sock, command, body):
        if command == "getdata" and asked:
            asked.add(body)
            if len(asked) == 5:
                four.set()
            four.wait(timeout=30)
        elif command == "getdata":
            asked.add(body)
        return False

    invoice = till.shop.invoice()
    assert check(till, open_peer()).complete
    till.pay(invoice)
    till.mine(30)
    report = check(till, *(open_peer(held) for _ in range(5)))
    assert report.new_statuses == {invoice["id"]: "paid"} and report.complete
    assert report.blocks_read == 30
    assert four.is_set()


@pytest.mark.parametrize("behind", [1, 2, 3, 12])
def test_a_peer_that_is_behind_is_known_by_its_headers(shop, behind):
    till, open_peer = shop
    till.shop.invoice()
    till.mine(20)
    old = chain_of(till)()
    till.mine(behind)
    late = open_peer(seen=lambda: old)
    good = open_peer()
    assert check(till, good).complete
    report = check(till, late, good)
    assert report.complete and report.is_agreed == (behind <= 2)
    assert check(till, late).complete == (behind <= 2)


def test_peers_that_stand_apart_are_said_in_yellow(shop):
    """Six blocks, for 45 minutes: each may be the one that is wrong, and nothing fails."""
    till, open_peer = shop
    till.shop.invoice()
    till.mine(20)
    old = chain_of(till)()
    peers = [open_peer(), open_peer(seen=lambda: old)]
    assert check(till, *peers).complete
    till.mine(6)
    till.clock.move(minutes=45)
    report = check(till, *peers)
    assert report.complete and not report.is_agreed
    assert "only one of the sources shows the newest blocks" in "\n".join(
        summary_lines(report)
    )
    settings = replace(till.settings, peers=tuple(peer.place for peer in peers))
    good, behind, _ = findings(settings, till.shop.service.db, till.clock())
    assert (good.colour, behind.colour) == (
        GREEN,
        YELLOW,
    ) and "behind the others" in behind.sentence


def test_an_invoice_ends_once_a_block_is_an_hour_past_its_deadline(shop):
    till, open_peer = shop
    peers = [open_peer(), open_peer()]
    invoice = till.shop.invoice(expires_in_hours=0.5)
    assert check(till, *peers).complete
    for minutes, status in [(31, "open"), (58, "open"), (2, "expired")]:
        till.clock.move(minutes=minutes)
        assert (
            check(till, *peers).new_statuses == {}
        )  # the newest block is as old as before
        till.mine()
        assert check(till, *peers).complete
        assert till.look(invoice)["status"] == status


def test_no_block_from_the_future_ends_an_invoice_before_its_deadline(shop):
    till, open_peer = shop
    invoice = till.shop.invoice(expires_in_hours=0.5)
    rival = Rival(till).add(at=till.now + 7000)
    peer = open_peer(seen=lambda: rival.blocks)
    assert check(till, peer).complete and till.look(invoice)["status"] == "open"
    till.clock.move(minutes=31)
    assert check(till, peer).new_statuses == {invoice["id"]: "expired"}


def never(peer, sock, command, body):
    return peer.released.wait()


def drips(peer, sock, command, body):
    whole = peer.magic + command.encode().ljust(12, b"\x00") + b"\x40\x00\x00\x00"
    for byte in whole + bytes(68):
        sock.sendall(bytes([byte]))
        if peer.released.wait(0.2):
            break
    return True


def floods(kind, size):
    def flood(peer, sock, command, body):
        while not peer.released.is_set():
            peer.send(sock, kind, bytes(size))
        return True

    return of("getheaders", flood)


def shows(change):
    def lie(peer, sock, command, body):
        headers = [block.header for block in peer.blocks()[-4:]]
        peer.send(sock, "headers", headers_body(change(headers)))
        return True

    return of("getheaders", lie)


def hangs_up_amid_a_block(peer, sock, command, body):
    sock.sendall(
        peer.magic + b"block".ljust(12, b"\x00") + b"\x00\x10\x00\x00" + bytes(400)
    )
    sock.shutdown(socket.SHUT_RDWR)
    return True


def says(raw):
    def say(peer, sock, command, body):
        sock.sendall(raw)
        return True

    return say


BAD: dict[str, Bad] = {
    "silent from the start": never,
    "silent once greeted": of("getheaders", never),
    "dripping": of("getheaders", drips),
    "flooding": floods("tx", 100_000),
    "flooding with pings": floods("ping", 8),
    "speaking HTTP": says(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9),
    "announcing four gigabytes": says(
        b"\xfa\xbf\xb5\xdaheaders\x00\x00\x00\x00\x00" + b"\xff" * 8
    ),
    "spoiling its checksums": says(
        b"\xfa\xbf\xb5\xdaversion\x00\x00\x00\x00\x00" + bytes(8)
    ),
    "headers without work": shows(
        lambda found: [*found, found[-1][:-4] + b"\xff\xff\xff\xff"]
    ),
    "headers with holes": shows(lambda found: [found[0], *found[2:]]),
    "headers of no chain of ours": shows(lambda found: found[::-1]),
    "the same headers for ever": shows(lambda found: found[:1] * 2000),
    "no block": of("getdata", never),
    "a false block": of("getdata", false_block),
    "hanging up amid a block": of("getdata", hangs_up_amid_a_block),
    "hanging up": lambda peer, sock, command, body: (
        sock.shutdown(socket.SHUT_RDWR) or True
    ),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_one_bad_peer_keeps_no_payment_back(shop, bad):
    till, open_peer = shop
    invoice = till.shop.invoice()
    till.mine(5)
    assert check(till, open_peer()).complete
    till.pay_in_block(invoice)
    report = check(till, open_peer(bad), open_peer())
    assert report.new_statuses == {invoice["id"]: "paid"} and not report.chain_failed
    assert report.took_ms < 30_000 and report.read_bytes < 60_000_000


def claims_four_billion(peer, sock, command, body):
    if command == "version":
        said = (
            struct.pack("<iQq", 70016, peer.services, peer.now()) + bytes(60) + b"\x00"
        )
        peer.send(sock, "version", said + b"\xff" * 4)
        peer.send(sock, "verack")
    elif command == "getheaders":
        peer.send(sock, "headers", b"\x01garbled")
    return True


def test_what_one_claims_and_cannot_prove_is_a_lie_that_keeps_nothing_open(shop):
    till, open_peer = shop
    liar = open_peer(claims_four_billion)
    good = [open_peer(), open_peer()]
    invoice = till.shop.invoice(expires_in_hours=1)
    assert check(till, *good).complete
    till.clock.move(minutes=121)
    till.mine()
    till.clock.move(minutes=31)
    report = check(till, liar, *good)
    assert (
        report.complete
        and not report.stuck_reason
        and report.new_statuses == {invoice["id"]: "expired"}
    )
    left = [
        row.place for row in till.shop.service.db.rows(sources.PEERS) if row.left_until
    ]
    assert left == [liar.place]


@pytest.fixture
def found(shop):
    """With `auto`: a node that is slow until it is released, one that is gone, and a good one."""
    till, open_peer = shop
    till.shop.invoice()
    slow = open_peer(of("getheaders", never))
    good = open_peer()
    assert check(till, good).complete
    db = till.shop.service.db
    gone = socket.create_server(("127.0.0.1", 0))
    ports = [
        good.place.split(":")[1],
        slow.place.split(":")[1],
        str(gone.getsockname()[1]),
    ]
    gone.close()
    # Names, since two addresses of this machine are of one network.
    places = [f"{name}:{port}" for name, port in zip(NAMES, ports, strict=True)]
    till.shop.sql("DELETE FROM peer")
    for place in places:
        choice.note_good_peer(db, place, 0, till.clock())
    return till, places


NAMES = ("127.0.0.1", "localhost", "LOCALHOST")


def test_whoever_nobody_waited_for_is_not_left_and_one_alone_is_no_agreement(found):
    till, (good, slow, gone) = found
    till.mine()
    report = check(till, places=(AUTO,))
    assert report.blocks_read and not report.is_agreed
    rows = {row.place: row for row in till.shop.service.db.rows(sources.PEERS)}
    assert [bool(rows[one].left_until) for one in (good, slow, gone)] == [
        False,
        False,
        True,
    ]
    till.shop.sql("DELETE FROM peer")
    choice.note_good_peer(till.shop.service.db, good, 0, till.clock())
    report = check(till, places=(AUTO,))
    assert report.complete and not report.is_agreed


@pytest.mark.parametrize(
    "name", ["no block", "a false block", "hanging up amid a block"]
)
def test_one_bad_peer_of_four_keeps_no_block_of_a_pause_back(shop, name):
    till, open_peer = shop
    peers = [open_peer(BAD[name]), *(open_peer() for _ in range(3))]
    invoice = till.shop.invoice()
    assert check(till, *peers[1:]).complete
    till.pay(invoice)
    till.mine(40)
    report = check(till, *peers)
    assert report.new_statuses == {invoice["id"]: "paid"} and report.complete
    assert report.blocks_read == 40
    assert report.took_ms < 30_000 and peers[0].asked.count("getdata") < 10


def test_a_peer_of_another_network_begins_nothing(shop, caplog):
    till, open_peer = shop
    till.shop.invoice()
    report = check(till, open_peer(magic=b"\xf9\xbe\xb4\xd9"))
    assert report.chain_failed and "of another network" in caplog.text
    assert till.shop.service.db.get_or_none(blocks.TOP) is None
