"""The choice of peers for a run: of different networks, some strangers, liars not for a day."""

import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from btcpay.parts.peers import choice
from btcpay.parts.peers.connection import Connection
from btcpay.parts.peers.findings import findings
from btcpay.parts.peers.source import Peers
from btcpay.values.finding import GREEN, RED, YELLOW
from btcpay.values.networks import AUTO, NETWORKS
from btcpay.values.times import to_ms
from storage.queries import sources
from tests.support.builders import REGTEST
from tests.support.fake_peer import FakePeer, chain_of, false_block, of, over_peers
from tests.support.tunnels import Socks

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("place", "network"),
    [
        ("198.51.100.7:8333", "198.51.0.0/16"),
        ("198.51.7.1:8333", "198.51.0.0/16"),
        ("[2001:db8:1::5]:8333", "2001:db8::/32"),
        ("[::ffff:198.51.100.7]:8333", "198.51.0.0/16"),
        ("abc.onion:8333", "abc.onion"),
    ],
)
def test_a_peer_is_of_a_network(place, network):
    assert choice.network_of(place) == network


def test_eight_of_different_networks_are_chosen():
    places = [f"10.{number}.0.{host}:8333" for number in range(12) for host in (1, 2)]
    assert choice.one_per_network(places) == [
        f"10.{number}.0.1:8333" for number in range(8)
    ]


@pytest.fixture
def auto(till):
    """The database, and settings with which peers are looked up; what the seeds name."""
    named: dict[str, list[str]] = {}
    settings = replace(till.settings, network=NETWORKS["mainnet"], peers=(AUTO,))

    def chosen(later=timedelta(), look_up=None, **changes):
        changed = replace(settings, **changes)
        now = till.clock() + later
        asked = look_up or (lambda name, _: named.get(name, []))
        return choice.choose_peers(till.shop.service.db, changed, now, asked)

    return till, named, chosen


def begun(till):
    """A shop that has seen a block just now."""
    till.shop.invoice()
    till.mine()
    assert till.check().complete
    return till.shop.service.db


@pytest.mark.both_databases
def test_two_of_eight_are_strangers_or_all_when_no_block_comes_and_liars_are_left_for_a_day(
    auto,
):
    till, named, chosen = auto
    db = begun(till)
    seeds = NETWORKS["mainnet"].seeds
    now = till.clock()
    good = {f"11.{number}.0.1:8333" for number in range(8)}
    assert chosen() == []  # no seed answers
    named[seeds[0]] = [f"10.{number}.0.1:8333" for number in range(5)]
    named[seeds[5]] = [f"10.{number}.0.2:8333" for number in range(4, 9)]
    assert len(chosen()) == 8
    for place in good:
        choice.note_good_peer(db, place, 100, now)
    for minutes, kept in [(0, 6), (29, 6), (31, 0)]:  # since the tip
        assert len(good.intersection(chosen(timedelta(minutes=minutes)))) == kept
    assert any(chosen() != chosen() for _ in range(9))  # nobody has a place of his own
    named.clear()
    assert good == set(chosen()) == set(chosen(DAY))  # who else is there?
    choice.ban_peer(db, "11.6.0.1:8333", now)
    assert "11.6.0.1:8333" not in chosen() + chosen(DAY - timedelta(seconds=1))
    assert "11.6.0.1:8333" in chosen(DAY)
    choice.note_good_peer(db, "11.9.0.1:8333", 101, now + timedelta(minutes=1))
    choice.note_good_peer(db, "11.8.0.1:8333", 101, now + timedelta(minutes=2))
    choice.ban_peer(db, "12.0.0.1:8333", now)
    db.run(sources.FORGET_PEERS, now=to_ms(now))
    kept = {row.place for row in db.rows(sources.PEERS)}
    assert {"11.6.0.1:8333", "11.8.0.1:8333", "11.9.0.1:8333", "12.0.0.1:8333"} < kept
    assert 8 < len(kept) <= 10  # the last eight, and who is left alone
    db.run(sources.FORGET_PEERS, now=to_ms(now + DAY + timedelta(seconds=1)))
    assert len(db.rows(sources.PEERS)) == 8


def test_all_seeds_are_asked_at_once(auto):
    _, _, chosen = auto
    all_of_them = threading.Barrier(len(NETWORKS["mainnet"].seeds))

    def look_up(name, port):
        return [f"10.{all_of_them.wait(timeout=30)}.0.1:{port}"]

    assert len(chosen(look_up=look_up)) == 8


def test_the_check_forgets_all_peers_when_it_is_told_to(auto, blocktill):
    db = begun(auto[0])
    choice.ban_peer(db, "12.0.0.1:8333", auto[0].clock())
    choice.note_good_peer(db, "11.0.0.1:8333", 100, auto[0].clock())
    assert len(json.loads(blocktill.run("check", "--json")[0])["peers"]) == 2
    assert json.loads(blocktill.run("check", "--json", "--new-peers")[0])["peers"] == []


def test_a_seed_that_no_name_server_answers_for_is_passed_over(
    monkeypatch, caplog, released
):
    monkeypatch.setattr(choice, "LOOKUP_TIMEOUT_S", 0.1)
    monkeypatch.setattr(
        choice.socket, "getaddrinfo", lambda *_, **__: released.wait(30)
    )
    assert choice.resolve_seed("seed.example", 8333) == []
    assert "DNS seed seed.example: took longer than 0.1 s" in caplog.text
    monkeypatch.undo()
    assert choice.resolve_seed("a" * 64, 8333) == []
    assert choice.resolve_seed("127.0.0.1", 8333) == ["127.0.0.1:8333"]


def test_behind_a_proxy_the_seeds_themselves_are_peers_and_no_name_is_looked_up(auto):
    _, named, chosen = auto
    named["seed.bitcoin.sipa.be"] = ["10.0.0.1:8333"]
    places = chosen(proxy="socks5h://127.0.0.1:9050")
    assert places == [f"{name}:8333" for name in NETWORKS["mainnet"].seeds]


def test_a_peer_that_is_set_is_left_only_beside_another(auto):
    till, _, chosen = auto
    places = ("10.0.0.5:8333", "10.0.0.6:8333")
    choice.ban_peer(till.shop.service.db, places[0], till.clock())
    assert chosen(peers=places) == [places[1]]
    assert chosen(peers=places[:1]) == [places[0]]


def test_an_onion_peer_is_reached_through_the_proxy_which_looks_its_name_up(till):
    peer = FakePeer(chain_of(till), lambda: till.now)
    with peer, Socks(int(peer.place.split(":")[1])) as tor:
        connection = Connection(
            REGTEST, "abc.onion:8333", lambda _: None, proxy=tor.url
        )
        assert connection.greeting.height == len(peer.blocks()) - 1
        connection.close()
        assert tor.asked == [("abc.onion", 8333)]


def test_a_run_notes_who_was_good_and_leaves_who_has_lied(till):
    till.shop.invoice()
    till.mine(5)

    lies = of("getdata", false_block)
    chain = chain_of(till)
    db = till.shop.service.db
    with (
        FakePeer(chain, lambda: till.now) as good,
        FakePeer(chain, lambda: till.now, lies) as bad,
    ):
        places = (bad.place, good.place)
        for _ in range(2):
            checker = over_peers(till, *places)
            assert checker.run().complete
            till.mine()
        found = {row.place: row for row in db.rows(sources.PEERS)}
        assert found[good.place].height == len(chain()) - 2
        assert found[good.place].left_until is None
        assert [one.host for one in Peers(checker.settings, db, till.clock).all] == [
            good.place
        ]
        assert found[bad.place].left_until


def test_doctor_says_how_far_each_is_and_that_nothing_is_paid_when_none_answers(till):
    places = ("10.0.0.5:8333", "10.0.0.6:8333")
    db = till.shop.service.db

    def said(*wanted):
        settings = replace(till.settings, peers=wanted or places)
        return [
            (one.colour, one.sentence) for one in findings(settings, db, till.clock())
        ]

    silent = (GREEN, "the last check did not listen")
    assert said() == [*[(YELLOW, "has not answered any check")] * 2, silent]
    assert said(AUTO) == [(YELLOW, "none was found yet"), silent]
    choice.note_good_peer(db, places[0], 120, till.clock())
    choice.ban_peer(db, places[1], till.clock())
    first, second, _ = said()
    assert first == (GREEN, "at block 120, 0 s ago") == said(AUTO)[0]
    assert second[0] == YELLOW and "not asked until" in second[1]
    till.clock.move(minutes=61)
    assert [colour for colour, _ in said()] == [RED, YELLOW, GREEN]


def test_doctor_asks_nobody_to_repair_explorers_where_none_is_set(till, blocktill):
    till.shop.invoice()
    till.mine()
    with FakePeer(chain_of(till), lambda: till.now) as peer:
        environ = {"BLOCKTILL_EXPLORERS": "none", "BLOCKTILL_PEERS": peer.place}
        blocktill.run("check", **environ)
        found = json.loads(blocktill.run("doctor", "--json", **environ)[0])
    assert [one["name"] for one in found if one["colour"] != GREEN] == ["listening"]
