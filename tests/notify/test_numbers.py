"""A reader goes from one number to the next and misses none, whoever writes, reads or forgets."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from btcpay.invoices.links import new_link
from btcpay.notify.events import delete_old_events, events_after
from btcpay.notify.kinds import EventKind
from btcpay.notify.publish import NewEvent, News, publish
from schemas.resources import Resources
from storage.models import PaymentLink
from storage.queries import events
from storage.statement import blank
from tests.support.databases import ON_POSTGRES

pytestmark = pytest.mark.both_databases

WRITERS = 3
EACH = 12


def make(shop, title=""):
    """A link, which is an event; its id."""
    db = shop.service.db
    with db.write():
        wanted = {"amount_mode": "flexible", "title": title}
        return new_link(db, shop.clock(), shop.merchant_id, wanted).id


def numbered(shop, since=0, limit=1000):
    """Numbers and links."""
    found = events_after(shop.service.db, Resources(""), since, limit)
    return [(event.number, event.data["payment_link"]["id"]) for event in found]


def test_what_was_undone_leaves_no_gap(shop):
    first = make(shop)
    with pytest.raises(LookupError), shop.service.db.write():
        link = blank(PaymentLink, id=first, merchant_id=shop.merchant_id)
        told = NewEvent(link, News(EventKind.PAYMENT_LINK_DEACTIVATED))
        publish(shop.service.db, [told], shop.clock())
        raise LookupError
    second = make(shop)
    assert numbered(shop) == [(1, first), (2, second)]


@pytest.mark.skipif(not ON_POSTGRES, reason="SQLite has one writer at a time")
def test_what_is_committed_late_gets_a_later_number(shop):
    """Its row was there first, and was not seen."""
    inserted = threading.Event()
    may_commit = threading.Event()

    def slow():
        with shop.service.db.write():
            made = make(shop, "slow")
            inserted.set()
            assert may_commit.wait(60)
        return made

    with ThreadPoolExecutor(1) as pool:
        slow_one = pool.submit(slow)
        assert inserted.wait(60)
        fast = make(shop, "fast")
        assert numbered(shop) == [(1, fast)]
        may_commit.set()
        assert numbered(shop, 1) == [] or slow_one.done()
        assert (2, slow_one.result()) in numbered(shop)


def test_readers_that_number_beside_writers_see_each_event_once(shop):
    seen: list[list[tuple[int, str]]] = [[], []]
    is_over = threading.Event()

    def follow(mine):
        while not is_over.is_set() or numbered(shop, len(mine)):
            mine += numbered(shop, len(mine), limit=5)
        shop.service.db.close()

    def write():
        try:
            return [make(shop) for _ in range(EACH)]
        finally:
            shop.service.db.close()

    with ThreadPoolExecutor(WRITERS + 2) as pool:
        readers = [pool.submit(follow, mine) for mine in seen]
        writers = [pool.submit(write) for _ in range(WRITERS)]
        made = [link for writer in writers for link in writer.result()]
        is_over.set()
        for reader in readers:
            reader.result()
    assert seen[0] == seen[1]
    assert [number for number, _ in seen[0]] == list(range(1, WRITERS * EACH + 1))
    assert sorted(link for _, link in seen[0]) == sorted(made)


def test_many_are_numbered_in_batches(shop, monkeypatch):
    monkeypatch.setattr(events, "BATCH", 1)
    made = [make(shop) for _ in range(3)]
    assert events.number_new(shop.service.db) == 3
    assert numbered(shop) == list(enumerate(made, 1))


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("days", "left"),
    [(29, [1, 2, 3]), (31, [3])],
    ids=["after 29 days", "after 31 days"],
)
def test_old_events_are_forgotten_but_for_the_newest(shop, days, left):
    for _ in range(3):
        make(shop)
    forgotten = delete_old_events(shop.service.db, shop.clock() + days * DAY)
    assert forgotten == 3 - len(left)
    assert [number for number, _ in numbered(shop)] == left
    fresh = make(shop)
    assert numbered(shop)[-1] == (4, fresh)
