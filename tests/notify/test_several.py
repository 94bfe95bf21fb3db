"""Deliveries by several processes: of a server each takes a part of the receivers."""

from collections import Counter
from contextlib import ExitStack

import pytest

from btcpay.notify import receivers
from btcpay.notify.outbox import Outbox
from btcpay.notify.outcome import Answer
from storage import locks
from storage.database import open_database
from tests.support.builders import at_once
from tests.support.databases import ON_POSTGRES
from tests.support.statements import sent

pytestmark = pytest.mark.both_databases
TAKEN = Answer(True, 204, "")
RECEIVERS = 40
EVENTS = 5


@pytest.fixture
def waiting(shop):
    """Events that wait for many receivers, each of a merchant of its own."""
    owners = [shop.add_merchant(f"shop {number}") for number in range(RECEIVERS)]
    for owner in owners:
        receivers.add(
            shop.service.db,
            owner,
            f"http://127.0.0.1:9/{owner}",
            None,
            [],
            shop.clock(),
        )
        for _ in range(EVENTS):
            shop.post("/invoices", {"amount_usd": 25}, shop.issue("write", owner))
    return shop


def deliver(shop, send):
    """A run as a process of its own makes it, with the locks of one."""
    url = shop.environ["BLOCKTILL_DATABASE_URL"]
    settings = shop.service.settings
    db = open_database(url)
    with ExitStack() as held:
        held.callback(db.close)
        outbox = Outbox(db, settings, shop.clock, send)
        return outbox.run(
            run_s=600,  # however slow this machine is
            take=lambda part: held.enter_context(locks.only_one(db, url, part)),
        ).delivered


def test_each_event_is_sent_once_by_one_of_several_and_a_receivers_in_order(waiting):
    came = []

    def send(receiver, event, _at):
        came.append((receiver.id, event.number))
        return TAKEN

    shares = at_once(3, lambda _: deliver(waiting, send))
    assert sum(shares) == len(came) == RECEIVERS * EVENTS
    assert set(Counter(came).values()) == {1}
    firsts = dict(reversed(came))
    assert all(firsts[id] == min(n for one, n in came if one == id) for id in firsts)


@pytest.mark.skipif(
    not ON_POSTGRES, reason="SQLite has one writer, and one process delivers"
)
def test_a_process_that_hangs_keeps_its_part_alone(waiting, released):
    """Another process delivers what waits for a receiver that this one has not taken."""
    first = []
    others = []

    def hang(receiver, *_):
        first.append(receiver.id)
        if len(first) == 1:
            others.append(deliver(waiting, lambda *_: TAKEN))
        return TAKEN

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("btcpay.notify.in_flight.MOST_AT_ONCE", 1)
        shares = deliver(waiting, hang) + sum(others)
    assert shares == RECEIVERS * EVENTS and others[0] > 0


@pytest.mark.skipif(not ON_POSTGRES, reason="counts what is sent to a server")
def test_a_delivery_takes_at_most_six_statements(waiting, monkeypatch):
    counted = sent(monkeypatch)
    deliver(waiting, lambda *_: TAKEN)
    runs = 60  # of a run, whatever is delivered: its parts and their locks, new numbers
    assert len(counted) <= 6 * RECEIVERS * EVENTS + runs
