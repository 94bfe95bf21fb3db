"""`blocktill restore` where nobody but nodes of the network is asked: blocks say what was paid."""

import json
import threading
from contextlib import ExitStack

import pytest

from btcpay.backup import address_counters
from btcpay.merchants.account import derive
from btcpay.settings import settings
from btcpay.values.errors import CommandError
from storage import versions
from storage.queries import merchants
from tests.support import postgres
from tests.support.databases import ON_POSTGRES
from tests.support.fake_esplora import Terminal
from tests.support.fake_peer import FakePeer, chain_of, of
from tests.support.other_database import backed_up, on, rows_of

pytestmark = pytest.mark.both_databases


@pytest.fixture
def till(tmp_path, ticker, clock, lied_to):
    """A shop on a SQLite file, whatever this run of the tests is about; no explorer is asked."""
    till = lied_to(BLOCKTILL_DATABASE_URL=f"sqlite:///{tmp_path}/blocktill.db")
    yield till
    assert not till.liar.count("/address/")


@pytest.fixture
def open_peer(till):
    with ExitStack() as stack:

        def open_one(**more):
            chain = more.pop("blocks", chain_of(till))
            return stack.enter_context(FakePeer(chain, lambda: till.now, **more))

        yield open_one


@pytest.fixture
def place(tmp_path):
    """The URL of a new database."""
    if not ON_POSTGRES:
        yield f"sqlite:///{tmp_path}/place.db"
        return
    url = postgres.server().create()
    versions.open_ready(url, "regtest").close()
    yield url
    postgres.server().drop(url)


def over(*peers):
    places = " ".join(peer.place for peer in peers)
    return {"BLOCKTILL_EXPLORERS": "none", "BLOCKTILL_PEERS": places}


def draft(till, index):
    """A payment to an address that this database has not given out."""
    row = till.shop.service.db.get(merchants.BY_ID, id=till.shop.merchant_id)
    address = derive(row.descriptor, index, till.settings.network)
    return till.sandbox.wallet.draft({address: 10_000})


def pay(till, index):
    till.sandbox.chain.accept(draft(till, index), till.now)


def planned(till, skip, *peers):
    """Restoring, below the command line: the place of the only merchant's counter."""
    read = settings.read(till.shop.environ | over(*peers))
    (moved,) = address_counters.plan(till.shop.service.db, read, skip, till.clock, {})
    return moved.before, moved.used, moved.next_index


def test_no_address_that_a_block_pays_is_given_out_twice(
    till, open_peer, tmp_path, place
):
    known = till.shop.invoice()
    till.check()
    file = backed_up(till, tmp_path / "kept.db")
    lost = [till.shop.invoice() for _ in range(60)]
    till.pay(known)
    for index in (50, 0, 7):
        till.pay(lost[index])
        till.mine()
    till.mine(20)
    environ = over(open_peer(), open_peer()) | {"BLOCKTILL_DATABASE_URL": place}
    output, _ = Terminal(till).run("restore", str(file), "--yes", "--json", **environ)
    (moved,) = json.loads(output)["merchants"]
    assert moved["used"] == [1, 8, 51]  # the known invoice has index 0
    assert (moved["before"], moved["next_index"], moved["gap_limit"]) == (1, 152, 101)
    with on(place, till) as again:
        assert again.look(known)["status"] == "open"
        assert again.check().new_statuses == {known["id"]: "paid"}
        assert again.shop.invoice()["deposit_address"] not in {
            invoice["deposit_address"] for invoice in lost
        }


def test_the_counter_moves_as_an_index_would_move_it(till, open_peer, monkeypatch):
    """A hundred unused ones end the look; the order in which they were paid does not matter."""
    till.check()
    peers = [open_peer() for _ in range(5)]
    for index in (350, 200, 99):
        pay(till, index)
        till.mine()
    assert planned(till, 0, *peers) == (0, (99,), 100)
    assert planned(till, 101, *peers) == (0, (99, 200), 302)
    assert planned(till, 150, *peers) == (0, (99, 200, 350), 501)
    monkeypatch.setattr(address_counters, "RUNS_IN_BLOCKS", 2)
    with pytest.raises(
        CommandError, match="202 addresses are too few to search for: raise --skip"
    ):
        planned(till, 101, *peers)


def test_a_backup_that_knows_no_block_will_do(till, open_peer):
    """Of a merchant who had neither an invoice nor a check by then."""
    till.shop.sql("DELETE FROM block")
    till.clock.move(hours=3)
    pay(till, 5)
    till.mine(30)
    assert planned(till, 0, open_peer()) == (0, (5,), 6)


def test_a_payment_in_a_block_that_replaced_known_ones_is_seen(till, open_peer):
    till.mine(3)
    till.shop.invoice()
    till.check()
    till.sandbox.chain.reorganise(3, till.now, [draft(till, 5)])
    assert planned(till, 0, open_peer()) == (1, (5,), 6)


def test_in_place_a_check_that_ran_before_hides_no_payment(
    till, open_peer, tmp_path, place
):
    till.shop.invoice()
    till.check()
    environ = over(open_peer()) | {"BLOCKTILL_DATABASE_URL": place}
    file = str(backed_up(till, tmp_path / "kept.db"))
    Terminal(till).run("restore", file, "--yes", "--skip", "0", **environ)
    pay(till, 5)
    till.mine(30)
    Terminal(till).run(
        "check", **environ
    )  # reads all of it, and knows nothing of that address
    words = ("restore", "--in-place", "--yes", "--skip", "0", "--json")
    (moved,) = json.loads(Terminal(till).run(*words, **environ)[0])["merchants"]
    assert (moved["before"], moved["used"], moved["next_index"]) == (1, [5], 6)


def test_one_peer_of_two_cannot_hide_a_payment(till, open_peer):
    """Though it is the first to answer."""
    old = chain_of(till)()
    answered = threading.Event()
    pay(till, 5)
    till.mine(2)

    def answers(peer, sock, command, body):
        peer._answer(sock, command, body)
        answered.set()
        return True

    first = open_peer(blocks=lambda: old, bad=of("getheaders", answers))
    second = open_peer(bad=of("getheaders", lambda *_: not answered.wait(60)))
    assert planned(till, 0, first, second) == (0, (5,), 6)


def test_a_source_whose_time_for_a_run_is_used_up_is_asked_anew(
    till, open_peer, monkeypatch
):
    pay(till, 5)
    till.mine(30)
    slow = open_peer(bad=of("getdata", lambda peer, *_: peer.released.wait(0.1)))
    monkeypatch.setattr("btcpay.parts.peers.peer.MOST_CHAIN_S", 1.0)
    assert planned(till, 0, slow) == (0, (5,), 6)
    assert slow.asked.count("version") > 2


def test_a_peer_that_is_behind_what_was_known_is_not_believed(till, open_peer):
    till.shop.invoice()
    old = chain_of(till)()
    till.mine_and_check(5)
    with pytest.raises(CommandError, match="were known"):
        planned(till, 0, open_peer(blocks=lambda: old))


def test_where_nobody_can_be_asked_it_says_who_should_be_and_nothing_happens(
    till, open_peer, tmp_path, place
):
    file = backed_up(till, tmp_path / "kept.db")
    with FakePeer(chain_of(till), lambda: till.now) as gone:
        environ = over(gone) | {"BLOCKTILL_DATABASE_URL": place}
    before = rows_of(place) if ON_POSTGRES else None
    said = Terminal(till).run("restore", str(file), "--yes", status=1, **environ)[1]
    assert "nothing was changed, the chain must be asked first" in said
    assert (
        "Name nodes that run in BLOCKTILL_PEERS, or an explorer for this command"
        in said
    )
    if ON_POSTGRES:
        assert rows_of(place) == before
    assert not list(tmp_path.glob("place.db")) and not list(tmp_path.glob(".*"))
